"""Analyses of a model about a point: linear systems, their modes and frequency responses."""
