"""Coupled systems: connections, algebraic loops, order of updates."""
