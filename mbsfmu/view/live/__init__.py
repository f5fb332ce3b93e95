"""Coupled FMUs that run at real time behind a page."""
