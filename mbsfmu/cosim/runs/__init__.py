"""Coupled runs: loaded, prepared, stepped, recorded, saved."""
