"""Tolerances of step control."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CouplingTolerances:
    """Tolerances of step control.

    Attributes
    ----------
    relative
        Share of a variable's magnitude (of a bond's power) so far.
    absolute
        Share of a variable's nominal value (W, of a bond's power).
    smallest, largest
        Bounds of the steps in s.
    is_absolute_given
        Whether the user has given the absolute one: it then counts for variables without a nominal value as well.
    """

    relative: float
    absolute: float
    smallest: float
    largest: float
    is_absolute_given: bool = False
