"""Machines alive in a page: their own compiled code, driven by hand."""
