"""Plots in pages."""
