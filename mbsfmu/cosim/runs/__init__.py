"""Coupled runs: loading, preparation, steps, records, saved runs."""
