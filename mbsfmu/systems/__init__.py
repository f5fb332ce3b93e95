"""Equations of a model in one form: mechanisms, circuits, blocks, and coupled systems."""
