"""Mechanisms as systems, in joint coordinates and in absolute ones."""
