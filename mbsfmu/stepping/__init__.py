"""Elements of steps: state, history of a rule, stages, convergence of iterations."""
