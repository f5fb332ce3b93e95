"""Systems with solvers: running, stepping, saving and restoring."""
