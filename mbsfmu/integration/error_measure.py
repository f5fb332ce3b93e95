"""Error measure: the largest error of all variables, relative to their ranges, and its record in a run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.integration.error_transport import FARTHEST, LOSSES, Loss, exact_state
from mbsfmu.modelling.parameters import (
    LEFT_OUT,
    POSITIONS,
    SMALL_RANGE,
    VARIES,
    compared_ranges,
    vector_sizes,
    vectors_of,
)
from mbsfmu.modelling.variables import Variable
from mbsfmu.stepping.state import State
from mbsfmu.systems.system import System
from mbsfmu.tracing.workspace import Floats

SMALL_CHANGE = 1e-6
"""Fraction of the largest magnitude in the same unit below which a variable's own range is not used."""
ROUNDING = 1e3 * sys.float_info.epsilon
"""Least range of accelerations z̈ ≈ 4 Δz/h² relative to 4 z/h² and the root of the number of points: a thousand times
the round-off of z, which grows with the root of the number of steps."""
LEAST_RANGE = 1e-9
"""Least range in any unit; of forces and moments `SMALL_CHANGE` of the weight where that is more, without gravity of
the largest energy by a metre or radian, and of powers of the largest energy by a second."""
MEANINGLESS = 0.5
"""Relative error beyond which an estimate from linearized steps only means that the error is large."""
LARGE_ERROR = 0.01
"""Relative error above which a warning is given."""
ALIKE = {"N.m": "N"}
"""Units with a common range: reactions are moments and forces."""
NOT_KNOWN = sys.float_info.max
"""Value for an unknown error, because FMI has no infinite numbers."""
ACCELERATIONS = {"m/s2": "m", "rad/s2": "rad"}
"""Units of accelerations, and of the positions that they are differences of."""
TURNED = {"m": ("rad", 0), "m/s": ("rad/s", 1), "m/s2": ("rad/s", 2), "rad/s2": ("rad/s", 2)}
"""Units of what turning causes: a turn by an angle φ, at most 1 rad, moves points by r φ at a lever arm r; one with ω
has speeds r ω and accelerations r ω² and ω². Where a machine only turns, these are what is usual in the unit."""

SAME_STEPS = "the error is too small to be seen: a second run with a hundredth of the tolerance makes the same steps"
"""Note if updates and kinks of signals require shorter steps than the tolerance."""

_ADVICE = "take a larger tolerance", "take shorter output steps"
"""Ends of notes that bring an advice of their own."""


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
            if self.note in (NOT_ESTIMATED.note, ONE_POINT.note, SAME_STEPS):
                return ""
            return self.note if self.note.endswith(_ADVICE) else f"{self.note}: {remedy}"
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
    energies
        Variables that count too, where they are no outputs already.
    second_order
        Whether accelerations are differences of positions.
    arm
        Lever arm in m of what turns.

    Attributes
    ----------
    names
        Of the variables that are compared.
    groups
        Number of the unit of each variable, those that are left out apart, which have -1; shape (v,).
    least
        Least range of each group.
    positions
        Whether the unit of each group is one of positions.
    differences
        Group of the positions whose differences are the accelerations of each group; -1 for other groups.
    energies
        Group of the energies that forces and powers of each group are held against; -1 for other groups.
    turned_by, powers, arms
        Group of the angles or their rates that move what each group measures, or -1; the power of these rates, 0 for
        angles; and the lever arm.
    vectors
        Number of the vector of which each variable is a component, shape (v,): of forces and moments of one joint, of
        energies of one mechanism, else of what is named alike but for x, y, z.
    squares
        Number of the vector of angular velocities whose square each angular acceleration is held against; -1 for other
        variables, shape (v,).
    relative
        Indices of Cardan angles from references that may move, and of their derivatives.
    """

    def __init__(
        self, system: System, energies: Sequence[Variable] = (), *, second_order: bool = False, arm: float = 1.0
    ) -> None:
        direct = (*system.coordinates, *system.velocities, *system.accelerations, *system.states)
        known = {variable.name for variable in system.outputs}
        others = [variable for variable in energies if variable.name not in known]
        variables = (*direct, *system.outputs, *system.reactions, *others)
        self.names = tuple(each.name for each in variables)
        self.groups = unit_groups(variables)
        units = {_unit(each): group for each, group in zip(variables, self.groups.tolist(), strict=True) if group >= 0}
        self.least = np.full(len(units), LEAST_RANGE)
        self.energies = np.full(len(units), -1)
        if "N" in units:
            self.least[units["N"]] = max(LEAST_RANGE, SMALL_CHANGE * system.weight)
            self.energies[units["N"]] = -1 if system.weight else units.get("J", -1)
        if "W" in units:
            self.energies[units["W"]] = units.get("J", -1)
        self.positions = np.array([unit in POSITIONS for unit in sorted(units, key=units.__getitem__)], dtype=bool)
        self.differences = np.full(len(units), -1)
        for unit, of in ACCELERATIONS.items() if second_order else ():
            self.differences[units.get(unit, [])] = units.get(of, -1)
        self.turned_by, self.powers = np.full((2, len(units)), -1)
        self.arms = np.ones(len(units))
        for unit, (by, power) in TURNED.items():
            if unit in units:
                self.turned_by[units[unit]], self.powers[units[unit]] = units.get(by, -1), power
                self.arms[units[unit]] = 1.0 if unit.startswith("rad") else arm
        self.vectors, self.squares = vectors_of(self.names, [_unit(each) for each in variables])
        angles = [index for angles in system.turning_angles for index in angles]
        self.relative = [order * len(system.coordinates) + index for order in range(3) for index in angles]

    def worst(self, largest: Floats, lowest: Floats, highest: Floats, rounding: float = 0.0) -> tuple[float, str]:
        """Return the largest of `shares` and its variable; zero and no name if there are none."""
        if not self.names:
            return 0.0, ""
        shares = self.shares(largest, lowest, highest, rounding)
        worst = int(np.argmax(shares))
        return float(shares[worst]), self.names[worst]

    def shares(self, largest: Floats, lowest: Floats, highest: Floats, rounding: float = 0.0) -> Floats:
        """Return the largest errors relative to the variables' ranges.

        Parameters
        ----------
        largest
            Errors, shape (v,).
        lowest, highest
            Least and greatest values of the exact solution, as far as it is known, shape (v,).
        rounding
            `grown_rounding` of equal steps.
        """
        shares = np.zeros(len(largest))
        if not len(self.least):
            return shares
        ranges, magnitudes = highest - lowest, np.maximum(np.abs(lowest), np.abs(highest))
        scales = vector_sizes(self.vectors, self.squares, np.where(self.positions[self.groups], ranges, magnitudes))
        greatest = [magnitudes[self.groups == group].max() for group in range(len(self.least))]
        widest = [ranges[self.groups == group].max() for group in range(len(self.least))]
        for group, floor in enumerate(self.least.tolist()):
            of_group = self.groups == group
            errors, own, scale = largest[of_group], ranges[of_group], scales[of_group]
            least = [SMALL_RANGE * widest[group], SMALL_CHANGE * greatest[group], floor]
            by, power, turned = self.turned_by[group], self.powers[group], 0.0
            if by >= 0 and power:
                with np.errstate(over="ignore"):
                    turned = self.arms[group] * greatest[by] ** power
                least.append(SMALL_CHANGE * turned)
            elif by >= 0:
                least.append(SMALL_RANGE * self.arms[group] * min(widest[by], 1.0))
            if self.differences[group] >= 0:
                least.append(rounding * greatest[self.differences[group]])
            if self.energies[group] >= 0:
                least.append(SMALL_CHANGE * greatest[self.energies[group]])
            compared = compared_ranges(errors, own, scale)
            still = (own < VARIES * errors) & (own < SMALL_CHANGE * turned)
            compared = np.where(still, np.maximum(compared, turned), compared)
            shares[of_group] = errors / np.maximum(compared, max(least))
        return shares


def grown_rounding(step: float, points: float) -> float:
    """Return the least range of accelerations relative to positions in 1/s², for steps in s and a number of points."""
    return ROUNDING * 4.0 / step**2 * float(np.sqrt(points))


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


LOOKS = 4
"""Number of comparisons of outputs between consecutive powers of two of the number of points …"""
MOST_APART = 16
"""… at most so many points apart: errors of friction and contacts last for about ten steps …"""
GROWN = 2.0
"""… and if an error has grown by this factor since the last comparison …"""
NOTICED = 1e-5
"""… to more than this fraction of its variable's range."""


class ErrorRecord:
    """Record of a run's error from output to output.

    Coordinates, velocities, accelerations and states are recorded at every point, outputs and reactions at some.

    Parameters
    ----------
    formulation
        A formulation whose states have errors.

    Attributes
    ----------
    measure
        What is recorded, and how that is compared.
    size
        How many numbers a state keeps.
    """

    def __init__(self, formulation: Formulation) -> None:
        self._formulation = formulation
        system = formulation.functions.system
        direct = (*system.coordinates, *system.velocities, *system.accelerations, *system.states)
        self.measure = ErrorMeasure(system, second_order=formulation.second_order, arm=formulation.functions.lever_arm)
        self._direct = len(direct)
        self.size = 3 * len(self.measure.names) + len(direct) + 2

    def followed(self, state: State, before: Floats, parameters: Floats, inputs: Floats) -> State:
        """Return the present state of a run with its updated error record."""
        record, direct = before.copy(), self._direct
        record[-1] = record[-1] or state.error_record[-1]
        largest, lowest, highest, looked, (count, _) = np.split(record, self._ends)
        signed = state.error[:direct]
        error = np.abs(signed)
        values = np.concatenate([state.coordinates, state.velocities, state.accelerations, state.states])
        first = count == 0.0
        if first:
            lowest[:], highest[:] = np.inf, -np.inf
        _note(largest[:direct], lowest[:direct], highest[:direct], signed, values)
        record[-2] = count = count + 1.0
        whole = int(count)
        due = whole % min(MOST_APART, max(1, (1 << whole.bit_length() - 1) // LOOKS)) == 0
        ranges = highest[:direct] - lowest[:direct]
        if due or ((error > GROWN * looked) & (error > NOTICED * ranges)).any():
            looked[:] = np.maximum(looked, error)
            found = self._compared(state, parameters, inputs)
            if found is None:
                record[-1] = record[-1] or Loss.UNSOLVED
            else:
                _note(largest[direct:], lowest[direct:], highest[direct:], *found)
        return state.with_error(state.error, state.error_history, record)

    @property
    def _ends(self) -> list[int]:
        count = len(self.measure.names)
        return [count, 2 * count, 3 * count, 3 * count + self._direct]

    def _compared(self, state: State, parameters: Floats, inputs: Floats) -> tuple[Floats, Floats] | None:
        """Return errors and values of outputs and reactions; None if the exact ones cannot be computed."""
        functions = self._formulation.functions
        functions.parameters[:] = parameters
        functions.inputs[:] = inputs
        values = self._others(state)
        try:
            errors = values - self._others(self._formulation.closed(exact_state(self._formulation, state)))
        except SimulationError:
            return None
        return (errors, values) if (np.abs(errors) <= FARTHEST).all() else None

    def _others(self, state: State) -> Floats:
        self._formulation.load(state)
        outputs = self._formulation.functions.outputs()[0].copy()
        return np.concatenate([outputs, self._formulation.reactions()])

    def share(self, state: State, step: float) -> float:
        """Return the largest relative error so far, with a step in s; zero at the start, `NOT_KNOWN` if unknown."""
        return self._worst(state.error_record, step)[0]

    def _worst(self, record: Floats, step: float) -> tuple[float, str]:
        """Return the largest relative error and its variable."""
        largest, lowest, highest, _, (count, loss) = np.split(record, self._ends)
        if loss:
            return NOT_KNOWN, ""
        if count == 0.0:
            return 0.0, ""
        return self.measure.worst(largest, lowest, highest, grown_rounding(step, count))

    def estimate(self, record: Floats, step: float) -> ErrorEstimate:
        """Return the error estimate of the run in steps in s that ended with this record in its state."""
        share, name = self._worst(record, step)
        if share == NOT_KNOWN:
            return ErrorEstimate(None, None, f"the error is not known: {LOSSES[Loss(int(record[-1]))]}")
        if name and record[-2] == 1.0:
            return ONE_POINT
        return ErrorEstimate.of(share, name) if name else NOT_ESTIMATED


def _note(largest: Floats, lowest: Floats, highest: Floats, errors: Floats, values: Floats) -> None:
    """Update the record with errors of values, and with the values of the exact solution, in place."""
    exact = values - errors
    np.maximum(largest, np.abs(errors), out=largest)
    np.minimum(lowest, exact, out=lowest)
    np.maximum(highest, exact, out=highest)
