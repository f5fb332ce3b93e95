"""Trial steps of the FMUs of joints, from one state with different wrenches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from mbsfmu.cosim.compiled.layout import ClosingTable
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.iterated import pointer_to
from mbsfmu.cosim.fmus.fmu_instance import Floats
from mbsfmu.cosim.joints.bound_joints import BoundHandle, BoundJoint, columns_of
from mbsfmu.cosim.joints.joint_algorithm import Advance
from mbsfmu.cosim.joints.joint_equations import speeds

OPEN = "before the joints are closed"
"""Slot of the states at the start of a step."""


class LoadedHandle:
    """A handle of a joint with the member of its FMU.

    Attributes
    ----------
    handle, member
        The handle and the member.
    widening
        What the slope of a wrench is multiplied by. An FMU that holds its inputs gets k equal stairs, of which those of
        a line of slope s have the first moment of a line of slope (1 - 1/k²) s.
    """

    def __init__(self, handle: BoundHandle, exchange: CouplingData) -> None:
        self.handle, self.member = handle, exchange.member(handle.instance.name)
        self.columns = columns_of(handle, exchange.columns)
        rate = self.member.rate
        self.widening = 1.0 if self.member.ramps else rate**2 / (rate**2 - 1.0)

    def load(self, polynomials: Floats, begin: Floats, end: Floats) -> None:
        """Write a wrench that runs straight between two values, each of shape (6,), into the polynomials."""
        begin, end = begin[self.handle.places], end[self.handle.places]
        slope = self.widening * (end - begin)
        polynomials[0, self.columns] = 0.5 * (begin + end - slope)
        polynomials[1, self.columns] = slope


class JointTrials:
    """Trial steps with multipliers that run straight over the step.

    Parameters
    ----------
    joints
        The joints.
    exchange
        The members.
    table
        Numbers and arrays that compiled code works on as well.

    Attributes
    ----------
    ends
        The handles of each joint.
    members
        The members that joints join.
    parts
        Places of the joints among all constraints.
    count
        Number of all constraints.
    at_begin, at_end
        Rows G₁ and G₂ of all joints that wrenches have at both ends of the step, shape (2, count, 6). At the end they
        are extrapolated in the first trial, and stay as the second one has them from the first.
    following
        The same at the end of the first trial.
    before
        The same at the start of the last two steps, shape (2, 2, count, 6).
    """

    CHANGES = ("before", "_length", "_rows_known")

    def __init__(self, joints: Sequence[BoundJoint], exchange: CouplingData, table: ClosingTable) -> None:
        self.joints, self._table = joints, table
        self.ends = [tuple(LoadedHandle(handle, exchange) for handle in joint.handles) for joint in joints]
        together = {end.member.instance.name for ends in self.ends for end in ends}
        self.members = [member for member in exchange.members if member.instance.name in together]
        places = np.cumsum([0, *(joint.equations.count for joint in joints)]).tolist()
        self.parts = [slice(begin, end) for begin, end in pairwise(places)]
        self.count = int(places[-1])
        shape = (2, self.count, 6)
        self.at_begin, self.at_end, self.following = (np.zeros(shape) for _ in range(3))
        self.before = np.zeros((2, *shape))
        self._rows_now = np.zeros(shape)
        table.joint_count, table.count, table.member_count = len(joints), self.count, len(self.members)
        table.at_begin, table.at_end = pointer_to(self.at_begin), pointer_to(self.at_end)
        table.following, table.before = pointer_to(self.following), pointer_to(self.before)
        table.rows = pointer_to(self._rows_now)

    @property
    def follows(self) -> bool:
        """Whether directions at the end of the step follow from the next trial."""
        return bool(self._table.follows)

    @follows.setter
    def follows(self, follows: bool) -> None:
        self._table.follows = follows

    @property
    def _rows_known(self) -> int:
        """Number of the last steps of one length whose rows at the start are known."""
        return self._table.rows_known

    @_rows_known.setter
    def _rows_known(self, count: int) -> None:
        self._table.rows_known = count

    @property
    def _length(self) -> float:
        """Length of the last step in s; 0 before the first one."""
        return self._table.rows_length

    @_length.setter
    def _length(self, length: float) -> None:
        self._table.rows_length = length

    def begin(self, polynomials: Floats, advance: Advance, time: float, step: float) -> None:
        """Begin a step in s from where the FMUs are.

        Parameters
        ----------
        polynomials
            Of all columns; those of wrenches are overwritten.
        advance
            Steps members with these polynomials.
        time, step
            In s.
        """
        self.go_on(polynomials, advance, step)
        for member in self.members:
            member.instance.save(OPEN, time)
        self.at_begin[:] = now = self._rows(self._motions())
        known, (last, second) = self._rows_known if step == self._length else 0, self.before
        self.at_end[:] = now if not known else 2.0 * now - last if known == 1 else 3.0 * (now - last) + second
        second[:], last[:] = last, now
        self._rows_known, self._length = min(known + 1, 2), step
        self._is_open = self.follows = True

    def go_on(self, polynomials: Floats, advance: Advance, step: float) -> None:
        """Go on with a step in s in which trials were made; the parameters are those of `begin`."""
        self._polynomials, self._advance, self._step, self._is_open = polynomials, advance, step, False

    def evaluate(self, multipliers: Floats) -> Floats:
        """Make the step; return what the joints are open by at its end.

        Parameters
        ----------
        multipliers
            At both ends of the step, shape (2, count).

        Returns
        -------
        Floats
            Gaps in m and rad, and their rates times the step, shape (2 · count,).
        """
        self._load(multipliers)
        self._restore(self.members)
        self._advance(self.members)
        motions = self._motions()
        rows = self._rows(motions)
        if self.follows:
            self.following[:] = rows
        return self._residual(motions, rows)

    def follow(self) -> float:
        """Take directions of the wrench at the end of the step from the first trial; return by what they change."""
        if not self.follows:
            return 0.0
        self.follows = False
        change = float(np.max(np.abs(self.following - self.at_end)))
        self.at_end[:] = self.following
        return change

    def differences(self, multipliers: Floats, perturbations: Floats) -> Floats:
        """Return the Jacobian of the residual by the multipliers at both ends, shape (2 · count, 2 · count).

        Differences are central: what is left of curvature would pass for an effect of redundant components.

        Parameters
        ----------
        multipliers
            Of the trial before.
        perturbations
            What each multiplier is moved by, shape (2 · count,).
        """
        jacobian = np.zeros((2 * self.count, 2 * self.count))
        for index, part in enumerate(self.parts):
            members = list({end.member.instance.name: end.member for end in self.ends[index]}.values())
            for place in range(part.start, part.stop):
                for row in (0, 1):
                    column = row * self.count + place
                    found = []
                    for sign in (1.0, -1.0):
                        moved = multipliers.copy()
                        moved[row, place] += sign * perturbations[column]
                        self._load(moved)
                        self._restore(members)
                        self._advance(members)
                        motions = self._motions()
                        found.append(self._residual(motions, self._rows(motions)))
                    jacobian[:, column] = (found[0] - found[1]) / (2.0 * perturbations[column])
            self._load(multipliers)
            self._restore(members)
            self._advance(members)
        return jacobian

    def reactions(self, multipliers: Floats) -> Floats:
        """Return the mean wrenches on the second handles over the step of the last trial, shape (6 · joints,)."""
        result = []
        for part in self.parts:
            begin, end = _wrenches(self.at_begin, part, multipliers[0]), _wrenches(self.at_end, part, multipliers[1])
            result.append(0.5 * (begin[1] + end[1]))
        return np.concatenate(result)

    def _motions(self) -> list[tuple[Floats, Floats]]:
        return [joint.motions() for joint in self.joints]

    def _rows(self, motions: list[tuple[Floats, Floats]]) -> Floats:
        """Return G₁ and G₂ of all joints, shape (2, count, 6)."""
        rows = np.zeros((2, self.count, 6))
        for joint, part, each in zip(self.joints, self.parts, motions, strict=True):
            rows[0, part], rows[1, part] = joint.equations.rows(*each)
        return rows

    def _residual(self, motions: list[tuple[Floats, Floats]], rows: Floats) -> Floats:
        """Return gaps, and their rates times the step, by G₁ and G₂ of all joints."""
        residual = np.zeros(2 * self.count)
        for joint, part, (first, second) in zip(self.joints, self.parts, motions, strict=True):
            residual[part] = joint.equations.gap(first, second)
            rates = _products(rows[0, part], speeds(first)) + _products(rows[1, part], speeds(second))
            residual[part.start + self.count : part.stop + self.count] = self._step * rates
        return residual

    def _load(self, multipliers: Floats) -> None:
        """Write the wrenches of multipliers into the polynomials."""
        for ends, part in zip(self.ends, self.parts, strict=True):
            begin, end = _wrenches(self.at_begin, part, multipliers[0]), _wrenches(self.at_end, part, multipliers[1])
            for side, handle in enumerate(ends):
                handle.load(self._polynomials, begin[side], end[side])

    def _restore(self, members: Sequence[CoupledInstance]) -> None:
        """Restore members, unless they have not moved."""
        if not self._is_open:
            for member in members:
                member.instance.restore(OPEN)
        self._is_open = False


def _products(rows: Floats, vector: Floats) -> Floats:
    """Return rows times a vector, summed in order as compiled code does."""
    return np.add.accumulate(rows * vector, axis=1)[:, -1]


def _wrenches(rows: Floats, part: slice, multipliers: Floats) -> Floats:
    """Return the wrenches of a joint's multipliers on both handles, shape (2, 6), summed in order."""
    return np.add.reduce(rows[:, part] * multipliers[part, np.newaxis], 1, initial=0.0)
