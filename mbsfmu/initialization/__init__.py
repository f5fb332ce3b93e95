"""Initialization of a system: loop closure, independent coordinates, accelerations and multipliers."""
