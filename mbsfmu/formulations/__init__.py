"""Systems of equations, and the formulations that make a time step of them."""
