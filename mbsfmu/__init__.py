"""Multibody mechanisms and hydraulic circuits as FMI 2.0 co-simulation units."""
