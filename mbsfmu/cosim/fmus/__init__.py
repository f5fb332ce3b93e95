"""Loaded FMUs, whatever version of FMI and interface they are of."""
