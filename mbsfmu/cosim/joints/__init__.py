"""Joints between FMUs: their equations, handles, and how they are closed."""
