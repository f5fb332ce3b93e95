"""Equations of mechanisms as NumPy functions of numbers or symbols."""
