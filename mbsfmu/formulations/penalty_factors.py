"""Penalty factors of the augmented Lagrangian."""

from __future__ import annotations

PENALTY = 1e11
"""Penalty factor α in N/m and N m/rad, the paper's [Jaiswal2021, sect. 5]."""

MOST_STIFFENING = 1e6
"""Upper bound of the penalty factor relative to the inertia times 4/h²: beyond, round-off of the sum moves light
bodies.
"""
STIFFENING = 1e4
"""Lower bound relative to the same: multipliers converge by the ratio of the two in each iteration …"""
REDUNDANT_STIFFENING = 100.0
"""… or this bound with redundant equations, whose multipliers accumulate α times the round-off of Φ."""

WEAK = 1e-2
"""Fraction of a violation that a projection may leave; if it leaves more, constraints have a weak direction, and the
penalty factor is increased …
"""
WEAK_IN_STEPS = 1e-4
"""… or the same for an increment of Newton's iteration, which ends with one below its tolerance …"""
FIRM_SHARE = 1e-6
"""… until it leaves this fraction: positions then hold to round-off after one more increment …"""
LARGEST_STIFFENING = 1e10
"""… unless it takes more than this factor: such a direction is singular, as at change points, and is not stiffened."""

DISTINCT = 1e-9
"""Fraction of the first response to a constraint violation below which a later one is round-off."""
ROUND_OFF = 1e-12
"""The same for the motion of a projection, relative to velocities or accelerations above one."""


def raised_penalty_factor(left: float, most: float) -> float:
    """Return the increase of the penalty factor for a remaining fraction of a violation, up to `most`."""
    if left <= most:
        return 1.0
    factor = left / FIRM_SHARE / max(1.0 - left, 1.0 / LARGEST_STIFFENING)
    return factor if factor <= LARGEST_STIFFENING else 1.0


def suitable_penalty(inertia: float, step: float, redundant: bool) -> float:
    """Return the paper's factor, or one suitable for the largest inertia in kg m² or kg at a step in s."""
    scale = 4.0 / step**2 * inertia
    least = REDUNDANT_STIFFENING if redundant else STIFFENING
    return max(min(PENALTY, MOST_STIFFENING * scale), least * scale) if inertia > 0.0 else PENALTY
