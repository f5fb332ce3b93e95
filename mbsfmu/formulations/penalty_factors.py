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

WEAK = 1e-2
"""Share of a violation that a projection may leave; where it leaves more, constraints have a direction that hardly
moves bodies, and the penalty factor is increased …"""
WEAK_IN_STEPS = 1e-4
"""… or the same of an increment of Newton's iteration, which ends with one that is below its tolerance …"""
FIRM_SHARE = 1e-6
"""… until it leaves this share: positions then hold to round-off behind one more increment …"""
LARGEST_STIFFENING = 1e10
"""… unless it takes more than this: such a direction is singular, as at change points, and stays soft."""

DISTINCT = 1e-9
"""Share of the first motion that answers to an open constraint, below which a later one is round-off."""
ROUND_OFF = 1e-12
"""The same of what a projection moves, as a share of velocities or accelerations that exceed one."""


def raised_penalty_factor(left: float, most: float) -> float:
    """Return how many times the penalty factor is too small where this share of a violation is left, of `most`."""
    if left <= most:
        return 1.0
    factor = left / FIRM_SHARE / max(1.0 - left, 1.0 / LARGEST_STIFFENING)
    return factor if factor <= LARGEST_STIFFENING else 1.0


def suitable_penalty(inertia: float, step: float, redundant: bool) -> float:
    """Return the paper's factor, or what suits the largest inertia in kg m² or kg at a step in s."""
    scale = 4.0 / step**2 * inertia
    least = REDUNDANT_STIFFENING if redundant else STIFFENING
    return max(min(PENALTY, MOST_STIFFENING * scale), least * scale) if inertia > 0.0 else PENALTY
