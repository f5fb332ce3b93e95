"""Coupling algorithms: what is connected, exchanged and extrapolated, and in which order FMUs step."""
