"""How errors are measured: as shares of the ranges of variables, the largest of all counts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mbsfmu.modelling.variables import Variable
from mbsfmu.systems.system import System
from mbsfmu.tracing.workspace import Floats

SMALL_RANGE = 1e-3
"""Share of the largest range in the same unit below which a variable's own range does not count."""
SMALL_CHANGE = 1e-6
"""The same of the largest magnitude in that unit: what stands still has a range of round-off."""
LEAST_RANGE = 1e-9
"""The least range that counts, in whatever unit."""
MEANINGLESS = 0.5
"""Share of the range beyond which an estimate from linearized steps says no more than that the error is large."""
LARGE_ERROR = 0.01
"""Share of the range from which on an error is told as a warning."""
ALIKE = {"N.m": "N"}
"""Units whose ranges are compared with those of another one: reactions are moments and forces."""
NOT_KNOWN = sys.float_info.max
"""What stands for an error that is not known; the FMI has no infinite numbers."""
LEFT_OUT = ("drift",)
"""Last parts of names of outputs that are errors themselves."""

SAME_STEPS = "the error is too small to be seen: a second run with a hundredth of the tolerance makes the same steps"
"""Where updates and bends of signals ask for shorter steps than the tolerance does."""


class ErrorEstimate(NamedTuple):
    """How far a run is off.

    Attributes
    ----------
    share
        Largest error as a share of the range of its variable; None where it is not known.
    variable
        Name of the variable whose error is largest; None where nothing is known.
    note
        Why there is no number; empty where there is one.
    """

    share: float | None
    variable: str | None
    note: str

    @classmethod
    def of(cls, share: float, variable: str) -> Self:
        """Return the estimate of a largest share, which is no number where it is too large to mean one."""
        if share > MEANINGLESS:
            return cls(None, variable, f"the error of {variable} is more than {100.0 * MEANINGLESS:.0f} % of its range")
        return cls(share, variable, "")

    def warning(self, remedy: str) -> str:
        """Return what to tell of a run that is inaccurate, with what to do; empty where nothing is to be told."""
        if self.share is None:
            return "" if self.note in (NOT_ESTIMATED.note, SAME_STEPS) else f"{self.note}: {remedy}"
        if self.share <= LARGE_ERROR:
            return ""
        return (
            f"the error of {self.variable} is estimated at {100.0 * self.share:.2g} % of its range, the largest of all "
            f"variables: {remedy}"
        )


NOT_ESTIMATED = ErrorEstimate(None, None, "not estimated; --check-error, in Python check_error=True, runs once more")
"""Of solvers and formulations that do not estimate their errors."""


class ErrorMeasure:
    """Compares errors of coordinates, velocities, accelerations, states, outputs and reactions with their ranges.

    Parameters
    ----------
    system
        Whose variables they are.

    Attributes
    ----------
    names
        Of the variables that are compared.
    groups
        Number of the unit of each variable, those that are left out apart, which have -1; shape (v,).
    relative
        Indices of Cardan angles from references that may move, and of their derivatives.
    """

    def __init__(self, system: System) -> None:
        direct = (*system.coordinates, *system.velocities, *system.accelerations, *system.states)
        variables = (*direct, *system.outputs, *system.reactions)
        self.names = tuple(each.name for each in variables)
        self.groups = unit_groups(variables)
        angles = [
            index + near for index in system.gimbal_angles for near in (-1, 0, 1)
        ]  # second of three angles are steep
        self.relative = [order * len(system.coordinates) + index for order in range(3) for index in angles]

    def worst(self, largest: Floats, lowest: Floats, highest: Floats) -> tuple[float, str]:
        """Return the largest of `shares`, and of which variable it is; zero and no name where there are none."""
        if not self.names:
            return 0.0, ""
        shares = self.shares(largest, lowest, highest)
        worst = int(np.argmax(shares))
        return float(shares[worst]), self.names[worst]

    def shares(self, largest: Floats, lowest: Floats, highest: Floats) -> Floats:
        """Return the largest errors as shares of the ranges of variables, by their least and greatest values."""
        shares = np.zeros(len(largest))
        ranges, magnitudes = highest - lowest, np.maximum(np.abs(lowest), np.abs(highest))
        for group in range(int(self.groups.max(initial=-1)) + 1):
            of_group = self.groups == group
            widest, greatest = ranges[of_group].max(), magnitudes[of_group].max()
            least = max(SMALL_RANGE * widest, SMALL_CHANGE * greatest, LEAST_RANGE)
            shares[of_group] = largest[of_group] / np.maximum(ranges[of_group], least)
        return shares


def unit_groups(variables: Sequence[Variable]) -> NDArray[np.intp]:
    """Return the number of the unit of each variable, in the order in which units come; -1 where one is left out."""
    numbers: dict[str, int] = {}
    groups = []
    for each in variables:
        left_out = each.name.rpartition(".")[2] in LEFT_OUT
        unit = ALIKE.get(each.unit, each.unit)
        groups.append(-1 if left_out else numbers.setdefault(unit, len(numbers)))
    return np.array(groups, dtype=int)
