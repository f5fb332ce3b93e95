"""Loaded FMUs of any FMI version and interface."""
