"""How stiff the springs of the augmented Lagrangian are."""

from __future__ import annotations

PENALTY = 1e11
"""Penalty factor α in N/m and N m/rad, the paper's [Jaiswal2021, sect. 5]."""

MOST_STIFFENING = 1e6
"""The penalty factor is at most so many times the inertia by 4/h²: beyond, the sum's round-off moves light bodies."""
STIFFENING = 1e4
"""It is at least so many times that: multipliers converge by the ratio of the two in each iteration …"""
REDUNDANT_STIFFENING = 100.0
"""… or so many times where equations are redundant, whose multipliers add up α times the round-off of Φ."""


def suitable_penalty(inertia: float, step: float, redundant: bool) -> float:
    """Return the paper's factor, or what suits the largest inertia in kg m² or kg at a step in s."""
    scale = 4.0 / step**2 * inertia
    least = REDUNDANT_STIFFENING if redundant else STIFFENING
    return max(min(PENALTY, MOST_STIFFENING * scale), least * scale) if inertia > 0.0 else PENALTY
