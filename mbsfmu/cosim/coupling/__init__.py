"""Coupling algorithms: what is connected, exchanged and extrapolated, and in which order units step."""
