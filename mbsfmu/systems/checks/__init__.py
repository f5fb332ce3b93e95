"""Checks of user-defined parts: they can be traced, and their equations are consistent."""
