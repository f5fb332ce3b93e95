"""Schematics of hydraulic circuits, coloured by pressure."""
