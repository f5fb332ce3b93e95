"""Error measure: the largest error of all variables, relative to their ranges."""

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
"""Fraction of the largest range in the same unit below which a variable's own range is not used."""
SMALL_CHANGE = 1e-6
"""The same relative to the largest magnitude in that unit: the range of a constant variable is round-off."""
LEAST_RANGE = 1e-9
"""Least range in any unit; of forces and moments `SMALL_CHANGE` of the weight where that is more."""
MEANINGLESS = 0.5
"""Relative error beyond which an estimate from linearized steps only means that the error is large."""
LARGE_ERROR = 0.01
"""Relative error above which a warning is given."""
ALIKE = {"N.m": "N"}
"""Units with a common range: reactions are moments and forces."""
NOT_KNOWN = sys.float_info.max
"""Value for an unknown error, because FMI has no infinite numbers."""
LEFT_OUT = ("drift",)
"""Name endings of outputs that are errors themselves."""

SAME_STEPS = "the error is too small to be seen: a second run with a hundredth of the tolerance makes the same steps"
"""Note if updates and kinks of signals require shorter steps than the tolerance."""


class ErrorEstimate(NamedTuple):
    """Error estimate of a run.

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
        """Return the estimate from the largest relative error, without a number if it is too large."""
        if share > MEANINGLESS:
            return cls(None, variable, f"the error of {variable} is more than {100.0 * MEANINGLESS:.0f} % of its range")
        return cls(share, variable, "")

    def warning(self, remedy: str) -> str:
        """Return the warning on an inaccurate run with advice; empty if accurate."""
        if self.share is None:
            return "" if self.note in (NOT_ESTIMATED.note, ONE_POINT.note, SAME_STEPS) else f"{self.note}: {remedy}"
        if self.share <= LARGE_ERROR:
            return ""
        return (
            f"the error of {self.variable} is estimated at {100.0 * self.share:.2g} % of its range, the largest of all "
            f"variables: {remedy}"
        )


ONE_POINT = ErrorEstimate(None, None, "not estimated: variables have no range where one point follows the start")
"""Estimate of a run without outputs between its start and its end."""
NOT_ESTIMATED = ErrorEstimate(None, None, "not estimated; --check-error, in Python check_error=True, runs once more")
"""Estimate of solvers and formulations without an error estimate."""


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
    least
        Least range of each group.
    relative
        Indices of Cardan angles from references that may move, and of their derivatives.
    """

    def __init__(self, system: System) -> None:
        direct = (*system.coordinates, *system.velocities, *system.accelerations, *system.states)
        variables = (*direct, *system.outputs, *system.reactions)
        self.names = tuple(each.name for each in variables)
        self.groups = unit_groups(variables)
        self.least = np.full(int(self.groups.max(initial=-1)) + 1, LEAST_RANGE)
        for each, group in zip(variables, self.groups.tolist(), strict=True):
            if group >= 0 and _unit(each) == "N":
                self.least[group] = max(LEAST_RANGE, SMALL_CHANGE * system.weight)
        angles = [
            index + near for index in system.gimbal_angles for near in (-1, 0, 1)
        ]  # the second of three angles is near gimbal lock
        self.relative = [order * len(system.coordinates) + index for order in range(3) for index in angles]

    def worst(self, largest: Floats, lowest: Floats, highest: Floats) -> tuple[float, str]:
        """Return the largest of `shares` and its variable; zero and no name if there are none."""
        if not self.names:
            return 0.0, ""
        shares = self.shares(largest, lowest, highest)
        worst = int(np.argmax(shares))
        return float(shares[worst]), self.names[worst]

    def shares(self, largest: Floats, lowest: Floats, highest: Floats) -> Floats:
        """Return the largest errors relative to the variables' ranges, from their least and greatest values."""
        shares = np.zeros(len(largest))
        ranges, magnitudes = highest - lowest, np.maximum(np.abs(lowest), np.abs(highest))
        for group in range(int(self.groups.max(initial=-1)) + 1):
            of_group = self.groups == group
            widest, greatest = ranges[of_group].max(), magnitudes[of_group].max()
            least = max(SMALL_RANGE * widest, SMALL_CHANGE * greatest, self.least[group])
            shares[of_group] = largest[of_group] / np.maximum(ranges[of_group], least)
        return shares


def unit_groups(variables: Sequence[Variable]) -> NDArray[np.intp]:
    """Return the number of the unit of each variable, in order of appearance; -1 for omitted variables."""
    numbers: dict[str, int] = {}
    groups = []
    for each in variables:
        left_out = each.name.rpartition(".")[2] in LEFT_OUT
        groups.append(-1 if left_out else numbers.setdefault(_unit(each), len(numbers)))
    return np.array(groups, dtype=int)


def _unit(variable: Variable) -> str:
    return ALIKE.get(variable.unit, variable.unit)
