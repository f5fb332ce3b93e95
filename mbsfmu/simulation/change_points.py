"""Detection of change points, where the loop equations lose rank."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.equations.linear import Floats, pivot_columns, pivots
from mbsfmu.integration.solver import StepError
from mbsfmu.stepping.adaptive import NOT_SMOOTH
from mbsfmu.stepping.state import State
from mbsfmu.systems.functions import SystemFunctions

logger = logging.getLogger(__name__)

KEPT = 0.3
"""Relative decrease of a minor's least pivot at which another minor is chosen."""
STRIDE = 0.1
"""Fraction of the least pivot by which coordinates may move without a new check: no pivot can vanish within it."""
HALVINGS = 40
CAUSE = ": the loop at joint %s is at a change point, where the loop equations lose rank; %s"
"""Cause of a failed step at a change point, with the joint and the advice."""


@dataclass(frozen=True)
class Minor:
    """A square submatrix of Φ_z that is regular while the loop equations have full rank, or nearly so.

    Attributes
    ----------
    rows, columns
        Indices of loop equations and coordinates, ascending, shapes (r,): where loops have few coordinates in common,
        so do pivots then.
    outermost
        The row that stands out least.
    size
        Least pivot in magnitude where it was chosen.
    sign
        Sign of its determinant there.
    """

    rows: np.typing.NDArray[np.intp]
    columns: np.typing.NDArray[np.intp]
    outermost: int
    size: float
    sign: float


class RankWatch:
    """Watches the rank of the loop equations at and between the points of a run.

    At a change point the sign of every minor of Φ_z changes; the sign of one is followed. If it changes, the motion
    between two points is interpolated from positions and velocities at both, and the rank where the minor vanishes
    separates change points from points where another minor would be regular.

    Parameters
    ----------
    functions
        Functions of the system.
    rank
        Number of independent loop equations.
    arm
        A length in m by which distances are measured.
    near
        Where the last equation stands out of the span of the others by less than this share of the first, rank is lost.
    advice
        What passes change points.

    Attributes
    ----------
    near, advice
        As given.
    warned
        Whether a change point of the run was told of.
    joints
        Name of the joint that each loop equation belongs to.
    equations, lengths
        What loop equations and coordinates are divided by to be the same in all FMUs and sizes, shapes (m,) and (n,).
    """

    def __init__(self, functions: SystemFunctions, rank: int, arm: float, near: float, advice: str) -> None:
        self._functions = functions
        self._rank = rank
        self.near, self.advice = near, advice
        self.joints = [functions.system.constraints[row].partition(" (")[0] for row in functions.rows]
        self.equations, self.lengths = functions.equation_lengths(arm), functions.coordinate_lengths(arm)
        self.warned = False
        self.forget()

    def begin(self, time: float, state: State) -> None:
        """Start a new run without warnings."""
        self.warned = False
        self.forget()
        self.follow(time, state)

    def forget(self) -> None:
        """Treat the next point as independent of the last one."""
        self._last: tuple[float, State, Minor] | None = None
        self._least = 0.0  # pivot at the last point

    def follow(self, time: float, state: State) -> None:
        """Check the next point in s of a run; warn of the first change point in the log."""
        if not self._rank or self.warned:
            return
        found: tuple[float, int] | None = None
        last = self._last
        if last is not None and _same(last[1].references, state.references):
            moved = np.abs(state.coordinates - last[1].coordinates)
            if np.all(moved <= STRIDE * self._least * self.lengths):
                return
            self._functions.references[:] = state.references
            size, sign = self._minor_at(state.coordinates, last[2])
            if sign == last[2].sign and size >= KEPT * last[2].size:
                self._last, self._least = (time, state, last[2]), size
                return
            if sign != last[2].sign:
                found = self._between(last, time, state)
        self._functions.references[:] = state.references
        minor, measure = self._choose(state.coordinates)
        self._last, self._least = (time, state, minor), minor.size
        if found is None and measure < self.near:
            found = time, minor.outermost
        if found is not None:
            self._warn(*found)

    def explained(self, error: StepError) -> SimulationError:
        """Return the error of a failed step with its cause, if it began at a change point."""
        if not self._rank:
            return error
        self._functions.references[:] = error.state.references
        minor, measure = self._choose(error.state.coordinates)
        if measure >= self.near:
            return error
        return SimulationError(
            str(error).removesuffix(NOT_SMOOTH) + CAUSE % (self.joints[minor.outermost], self.advice)
        )

    def _warn(self, time: float, row: int) -> None:
        self.warned = True
        logger.warning(
            "%s: at t = %.6g s the loop at joint %s comes to a change point, where the loop equations lose rank: they "
            "determine neither the reactions near it nor which way the loop goes on",
            self._functions.system.name,
            time,
            self.joints[row],
        )

    def _jacobian(self, coordinates: Floats) -> Floats:
        """Return the dimensionless Φ_z."""
        self._functions.coordinates[:] = coordinates
        return np.asarray(self._functions.closure()[1] / np.divide.outer(self.equations, self.lengths))

    def _choose(self, coordinates: Floats) -> tuple[Minor, float]:
        """Return a minor by pivoting, and the relative distance of the last equation."""
        jacobian, rank = self._jacobian(coordinates), self._rank
        lengths, columns = pivot_columns(jacobian, rank)
        rows = pivot_columns(jacobian[:, columns].T, rank)[1]
        minor = Minor(np.sort(rows), np.sort(columns), int(rows[-1]), 0.0, 0.0)
        size, sign = self._minor_at(coordinates, minor)
        return replace(minor, size=size, sign=sign), lengths[rank - 1] / lengths[0]

    def _minor_at(self, coordinates: Floats, minor: Minor) -> tuple[float, float]:
        """Return least pivot and sign of a minor."""
        place = minor.rows[:, np.newaxis], minor.columns
        self._functions.coordinates[:] = coordinates
        scales = np.divide.outer(self.equations[minor.rows], self.lengths[minor.columns])
        sizes, sign = pivots(self._functions.closure()[1][place] / scales)
        return float(np.min(sizes)), sign

    def _between(self, last: tuple[float, State, Minor], time: float, state: State) -> tuple[float, int] | None:
        """Return the point of rank loss between two points, and the equation closest to dependence."""
        begin, before, minor = last
        length = time - begin
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            same = self._minor_at(_along(before, state, length, middle), minor)[1] == minor.sign
            low, high = (middle, high) if same else (low, middle)
        chosen, measure = self._choose(_along(before, state, length, low))
        return (begin + low * length, chosen.outermost) if measure < self.near else None


def _same(references: Floats, others: Floats) -> bool:
    return not references.size or np.array_equal(references, others)


def _along(before: State, after: State, length: float, share: float) -> Floats:
    """Return coordinates at a fraction of an interval in s, cubic from positions and velocities at its ends."""
    rest = 1.0 - share
    moved = length * (rest * before.velocities - share * after.velocities)
    straight = before.coordinates * rest + after.coordinates * share
    bend = (rest - share) * (before.coordinates - after.coordinates)
    return np.asarray(straight + share * rest * (bend + moved))
