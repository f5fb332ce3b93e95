"""Stability limit of the communication step, by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

CLOSE = 1.05
"""Ratio of the smallest diverging to the largest stable step at which the bisection ends."""


@dataclass(frozen=True)
class StabilityLimit:
    """Stability limit of an algorithm between two steps in s.

    Attributes
    ----------
    stable
        The largest step found at which it does not diverge; None where all that were tried do.
    diverging
        The smallest step found at which it diverges, above `stable`; None where none of them does.
    """

    stable: float | None
    diverging: float | None


def stability_limit(
    is_stable: Callable[[float], bool],
    known: Mapping[float, bool],
    smallest: float,
    largest: float,
    close: float = CLOSE,
) -> StabilityLimit:
    """Return the limit between stable and diverging steps.

    Known steps are used first, then doubled up to the largest or halved down to the smallest until the limit is
    enclosed, then bisected on a logarithmic scale. The result is the first limit from below; stability above a
    diverging step is not searched.

    Parameters
    ----------
    is_stable
        Whether a step in s does not diverge.
    known
        Some steps for which that is known; at least one.
    smallest, largest
        Between which steps in s to look.
    close
        Quotient of the two steps at which the search ends.
    """
    diverging = min((step for step, stable in known.items() if not stable), default=None)
    below = [step for step, stable in known.items() if stable and (diverging is None or step < diverging)]
    stable = max(below, default=None)
    while diverging is None and stable is not None and stable < largest:
        step = min(2.0 * stable, largest)
        stable, diverging = (step, None) if is_stable(step) else (stable, step)
    while stable is None and diverging is not None and diverging > smallest:
        step = max(0.5 * diverging, smallest)
        stable, diverging = (step, diverging) if is_stable(step) else (None, step)
    while stable is not None and diverging is not None and diverging > close * stable:
        middle = math.sqrt(stable * diverging)
        stable, diverging = (middle, diverging) if is_stable(middle) else (stable, middle)
    return StabilityLimit(stable, diverging)
