"""How far a run is off until now: the largest errors of everything that is read, as shares of its ranges."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.integration.error_transport import LOSSES, Loss
from mbsfmu.modelling.variables import Variable
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

LOOKS = 4
"""Of points that a run comes to, outputs are compared at so many between one power of two and the next …"""
MOST_APART = 16
"""… and at one of so many at least: friction and contacts have errors that last for some ten steps …"""
GROWN = 2.0
"""… and where an error has grown by this factor since the last comparison …"""
NOTICED = 1e-5
"""… to more than this share of the range of its variable."""
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


class ErrorEstimate(NamedTuple):
    """How far a run is off.

    Attributes
    ----------
    share
        Largest error as a share of the range of its variable; None where it is not known.
    variable
        Name of the variable whose error is largest; None where nothing is known.
    note
        Why there is no number; empty where there is one, or where no estimate is made.
    """

    share: float | None
    variable: str | None
    note: str

    def warning(self, remedy: str) -> str:
        """Return what to tell of a run that is inaccurate, with what to do; empty where nothing is to be told."""
        if self.share is None:
            return f"{self.note}: {remedy}" if self.note else ""
        if self.share <= LARGE_ERROR:
            return ""
        return (
            f"the error of {self.variable} is estimated at {100.0 * self.share:.2g} % of its range, the largest of all "
            f"variables: {remedy}"
        )


NOT_ESTIMATED = ErrorEstimate(None, None, "")
"""Of solvers and formulations that do not estimate their errors."""


class ErrorRecord:
    """Follows the error of a run from output to output.

    Recorded are coordinates, velocities, accelerations and states at every point, outputs and reactions at some.

    Parameters
    ----------
    formulation
        A formulation whose states have errors.

    Attributes
    ----------
    names
        Of the variables that are recorded.
    groups
        Number of the unit of each variable, those that are left out apart, which have -1; shape (v,).
    size
        How many numbers a state keeps.
    """

    def __init__(self, formulation: Formulation) -> None:
        self._formulation = formulation
        system = formulation.functions.system
        direct = (*system.coordinates, *system.velocities, *system.accelerations, *system.states)
        variables = (*direct, *system.outputs, *system.reactions)
        self.names = tuple(each.name for each in variables)
        self.groups = unit_groups(variables)
        self._direct = len(direct)
        self.size = 3 * len(variables) + len(direct) + 2

    def followed(self, state: State, before: Floats, parameters: Floats, inputs: Floats) -> State:
        """Return a state that a run has come to with the record of its error, which goes on from the one before."""
        record, direct = before.copy(), self._direct
        record[-1] = record[-1] or state.error_record[-1]
        largest, lowest, highest, looked, (count, _) = np.split(record, self._ends)
        error = np.abs(state.error[:direct])
        values = np.concatenate([state.coordinates, state.velocities, state.accelerations, state.states])
        first = count == 0.0
        if first:
            lowest[:], highest[:] = np.inf, -np.inf
        _note(largest[:direct], lowest[:direct], highest[:direct], error, values)
        record[-2] = count = count + 1.0
        whole = int(count)
        due = whole % min(MOST_APART, max(1, (1 << whole.bit_length() - 1) // LOOKS)) == 0
        ranges = highest[:direct] - lowest[:direct]
        if due or ((error > GROWN * looked) & (error > NOTICED * ranges)).any():
            looked[:] = np.maximum(looked, error)
            found = self._compared(state, parameters, inputs)
            if found is None:
                record[-1] = Loss.UNSOLVED
            else:
                _note(largest[direct:], lowest[direct:], highest[direct:], *found)
        return state.with_error(state.error, state.error_history, record)

    @property
    def _ends(self) -> list[int]:
        count = len(self.names)
        return [count, 2 * count, 3 * count, 3 * count + self._direct]

    def _compared(self, state: State, parameters: Floats, inputs: Floats) -> tuple[Floats, Floats] | None:
        """Return errors and values of outputs and reactions; None where the exact ones are not found."""
        functions, n, k = self._formulation.functions, len(state.coordinates), len(state.states)
        functions.parameters[:] = parameters
        functions.inputs[:] = inputs
        values = self._others(state)
        error = state.error
        exact = state.moved(
            coordinates=state.coordinates - error[:n],
            velocities=state.velocities - error[n : 2 * n],
            states=state.states - error[3 * n : 3 * n + k],
        )
        try:
            errors = np.abs(values - self._others(self._formulation.consistent(exact)))
        except SimulationError:
            return None
        return (errors, values) if np.isfinite(errors).all() else None

    def _others(self, state: State) -> Floats:
        self._formulation.load(state)
        outputs = self._formulation.functions.outputs()[0].copy()
        return np.concatenate([outputs, self._formulation.reactions()])

    def share(self, state: State) -> float:
        """Return the largest share until now, zero at the start of a run; `NOT_KNOWN` where it is not known."""
        return self._worst(state)[0]

    def _worst(self, state: State) -> tuple[float, str]:
        """Return the largest share, and of which variable it is."""
        largest, lowest, highest, _, (count, loss) = np.split(state.error_record, self._ends)
        if loss:
            return NOT_KNOWN, ""
        if count == 0.0:
            return 0.0, ""
        shares = self.shares(largest, lowest, highest)
        worst = int(np.argmax(shares))
        return float(shares[worst]), self.names[worst]

    def estimate(self, state: State) -> ErrorEstimate:
        """Return how far the run is off that has led to a state."""
        share, name = self._worst(state)
        if share == NOT_KNOWN:
            return ErrorEstimate(None, None, f"the error is not known: {LOSSES[Loss(int(state.error_record[-1]))]}")
        if not name:
            return NOT_ESTIMATED
        if share > MEANINGLESS:
            note = f"the error of {name} is more than {100.0 * MEANINGLESS:.0f} % of its range"
            return ErrorEstimate(None, name, note)
        return ErrorEstimate(share, name, "")

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


def _note(largest: Floats, lowest: Floats, highest: Floats, errors: Floats, values: Floats) -> None:
    """Take notice of errors and values, in place."""
    np.maximum(largest, errors, out=largest)
    np.minimum(lowest, values, out=lowest)
    np.maximum(highest, values, out=highest)
