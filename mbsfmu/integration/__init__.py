"""Solvers: implicit rules with Newton's iteration, Rosenbrock methods, explicit methods."""
