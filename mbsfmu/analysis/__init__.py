"""Analyses of a model: linear systems, modes, frequency responses, sensitivities, fits."""
