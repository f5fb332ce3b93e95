"""Solvers: implicit steps by Newton's iteration, Rosenbrock methods, explicit methods."""
