"""Static equilibrium: the search for it, its stability, and why there is none."""
