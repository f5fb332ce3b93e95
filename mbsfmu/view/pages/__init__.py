"""Skeleton and elements of pages."""
