"""Coupling algorithms: connections, data exchange, extrapolation, and order of steps."""
