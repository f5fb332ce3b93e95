"""Foundations without models: errors, options, registries, files, times."""
