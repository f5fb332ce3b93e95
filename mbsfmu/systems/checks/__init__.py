"""Checks of users' parts: they can be traced, and their equations fit each other."""
