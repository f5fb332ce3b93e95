"""Mechanisms as systems, in joint or absolute coordinates."""
