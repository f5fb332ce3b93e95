"""Coupling of mechanisms by joints, closed at each communication point after trial steps.

Coupling of mechanisms by joints, closed at each communication point.

The wrench of a joint runs straight over a communication step, from one value to another. Both are free: they close the
joint's position and its velocity at the end of the step, which are two equations for each constraint. So the wrench is
the best straight line through the true reaction: the difference has neither mean nor first moment over the step, in
what the FMUs integrate. Nothing of it depends on the wrench of the step before, so nothing rings, as multipliers of the
trapezoidal rule do where a joint is closed in position alone.

FMUs must tell the two values apart: they make two steps or more of their own in a communication step, for one step of
the trapezoidal rule gives position and velocity by the same mean. Therefore FMUs of joints are stepped twice in it,
where `rates` says nothing else. One that holds its inputs gets stairs with the same mean and first moment.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, c_ssize_t
from itertools import pairwise

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.compiled.library import ClosingTable, HandleTable, JointTable
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.graph import JOINT_KINDS
from mbsfmu.cosim.coupling.iterated_coupling import LearnedInverse, pointer_to
from mbsfmu.cosim.coupling.sweeps import OneSweep, Settings, names_of
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuCalls, Port
from mbsfmu.cosim.joints.joint_equations import BoundHandle, BoundJoint, columns_of, speeds

Advance = Callable[[Sequence[CoupledInstance]], None]
"""Steps members with the polynomials of a step."""


class JointAlgorithm(OneSweep):
    """Base of algorithms with joints, whose FMUs step together.

    All other connections are those of `jacobi`, or of `gauss-seidel`, where the FMUs of joints take one turn together.

    Parameters
    ----------
    exchange, settings
        As for `Algorithm`.
    joints
        The joints.

    Attributes
    ----------
    joints
        The joints.
    together
        The members that they join.
    """

    CHANGES = (*OneSweep.CHANGES, "reactions")

    def __init__(self, exchange: CouplingData, settings: Settings, joints: Sequence[BoundJoint]) -> None:
        super().__init__(exchange, settings)
        self.joints = joints
        names = {handle.instance.name for joint in joints for handle in joint.handles}
        self.together = [member for member in exchange.members if member.instance.name in names]
        self.reactions = np.zeros(6 * len(joints))
        self.in_turn = settings.algorithm == "gauss-seidel"
        self._groups = self._turns_of_groups() if self.in_turn else None

    def _turns_of_groups(self) -> list[list[CoupledInstance]]:
        """Return the members that step together, turn after turn."""
        groups = list[list[CoupledInstance]]()
        for member, _ in self.turns:
            if member not in self.together:
                groups.append([member])
            elif self.together not in groups:
                groups.append(self.together)
        return groups

    def history(self) -> OutputHistory:
        """Return a history that starts with the present outputs, at closed joints."""
        for joint in self.joints:
            joint.begin()
        return super().history()

    def _one_sweep(self, history: OutputHistory, polynomials: Floats, time: float, step: float) -> Floats:
        given, polynomials = polynomials, np.zeros((self.exchange.rows, len(self.exchange.columns)))
        polynomials[: len(given)] = given

        advance = self._advancing(polynomials, history.correction, time, step)
        if self._groups is None:
            advance([member for member in self.exchange.members if member not in self.together])
            self._step_together(polynomials, advance, history.correction, time, step)
            return self.exchange.read()
        for members in self._groups:
            if members is self.together:
                self._step_together(polynomials, advance, history.correction, time, step)
            else:
                self.sweeps += 1
                advance(members)
            for member in members:
                found = history.interpolate(step, member.outputs.read(), member.place)
                polynomials[: len(found), member.place] = found
        return self.exchange.outputs

    def _advancing(self, polynomials: Floats, correction: Floats | None, time: float, step: float) -> Advance:
        """Return what steps members with polynomials; the arguments are those of `_step_together`."""

        def advance(members: Sequence[CoupledInstance]) -> None:
            self._advance_all(members, polynomials, time, step, correction)

        return advance

    @abstractmethod
    def _step_together(
        self, polynomials: Floats, advance: Advance, correction: Floats | None, time: float, step: float
    ) -> None:
        """Step the members that joints join.

        Parameters
        ----------
        polynomials
            Of all columns.
        advance
            Steps members with them.
        correction
            What is added to the integral of each entry over the step; None for nothing.
        time, step
            Beginning and length of the communication step in s.
        """


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


Differences = Callable[[Floats, Floats], Floats]
"""Derivatives of the residual by the multipliers, from these and what each is moved by."""

STEPS = 2
"""Steps of an FMU of a joint in a communication step, where `rates` says nothing else."""
ROWS = 2
"""Coefficients of the straight lines that wrenches run along."""
_REMEMBERED = 3
"""Steps from which the multipliers of the next one are extrapolated."""
_MOST_ITERATIONS = 25
_SLOW = 0.3  # an inverse that shrinks what is open by less than this is worth a new one
_RESPONSE = 1e-4
"""What perturbed multipliers shall move joints by, in m and rad: much beside round-off of the FMUs, little beside what
makes their motion nonlinear."""
_TURNED = 1e-4
"""Change of the directions of wrenches in a correction, shares of 1, beyond which the inverse learns nothing of it."""
_GROWTH = 1e6  # of a perturbation in one try to meet the response
_TRIES = 4
_RANK = 1e-5
"""Singular values below this share of the largest one are of components without effect, or of redundant ones; those of
differences are exact to about 1e-6."""
_DISTINCT = 0.1
"""Share of the response in position that must differ from that of a mean velocity: 0.32 where FMUs integrate a wrench
exactly, 0.24 in two steps of the trapezoidal rule, in one of them what the motion turns in a step."""


class JointClosing(JointAlgorithm):
    """Closes joints at the end of each communication step by Newton's method on their multipliers.

    The Jacobian comes from differences of steps from saved states, once, and every correction teaches it more.
    Redundant components get the least multipliers. Compiled code does the same in `compiled/joint_closing.h`.

    Parameters
    ----------
    exchange, settings, joints
        As for `JointAlgorithm`.

    Attributes
    ----------
    table
        Numbers and arrays of the closing; compiled code works on the same.
    trials
        What makes trial steps.
    inverse
        Inverse of the Jacobian over the square of the step.
    multipliers
        Those of the last trial at both ends of the step, shape (2, count).
    residual
        What joints are open by after it, with the rates times the step, shape (2 · count,).
    directions
        Multipliers that have an effect, as many rows as the Jacobian has rank, shape (2 · count, 2 · count).
    jacobians
        Number of Jacobians by differences.
    """

    CHANGES = (
        *JointAlgorithm.CHANGES,
        "jacobians",
        "inverse",
        "directions",
        "trials",
        "_rank",
        "_lines",
        "_known",
        "_length",
        "_moves",
    )

    def __init__(self, exchange: CouplingData, settings: Settings, joints: Sequence[BoundJoint]) -> None:
        super().__init__(exchange, settings, joints)
        self.table = table = ClosingTable(
            maximum=_MOST_ITERATIONS, slow=_SLOW, most_turned=_TURNED, remembered=_REMEMBERED
        )
        self.trials = trials = JointTrials(joints, exchange, table)
        unknowns = 2 * trials.count
        sizes = [part.stop - part.start for part in trials.parts]
        self._limits = np.tile(np.repeat([joint.joint.tolerance for joint in joints], sizes), 2)
        self._is_moment = np.tile(np.concatenate([joint.equations.are_moments for joint in joints]), 2)
        self._lines = np.zeros((_REMEMBERED, 2, trials.count))  # of the last steps: multipliers at both ends
        self.inverse = LearnedInverse(unknowns, table.inverse)
        self.multipliers, self.directions = np.zeros((2, trials.count)), np.zeros((unknowns, unknowns))
        self.residual, self._last, self._change = (np.zeros(unknowns) for _ in range(3))
        self._moves = np.ones(2)  # perturbations of forces and moments
        self.jacobians = 0
        table.lines, table.directions = pointer_to(self._lines), pointer_to(self.directions)
        table.limits = pointer_to(self._limits)
        table.multipliers, table.residual = pointer_to(self.multipliers), pointer_to(self.residual)
        table.last, table.change = pointer_to(self._last), pointer_to(self._change)

    @property
    def _known(self) -> int:
        """Number of last steps of one length."""
        return self.table.known

    @_known.setter
    def _known(self, count: int) -> None:
        self.table.known = count

    @property
    def _length(self) -> float:
        """Length of the last step in s; 0 before the first one."""
        return self.table.length

    @_length.setter
    def _length(self, length: float) -> None:
        self.table.length = length

    @property
    def _rank(self) -> int:
        """Number of directions of multipliers that have an effect."""
        return self.table.rank

    @_rank.setter
    def _rank(self, rank: int) -> None:
        self.table.rank = rank

    @property
    def order(self) -> int:
        """Order of the coupling error over a run: 2, or what other connections make of it."""
        return min(super().order, 2) if self.exchange.connections else 2

    def _step_together(
        self, polynomials: Floats, advance: Advance, correction: Floats | None, time: float, step: float
    ) -> None:
        del correction  # `advance` has it
        self.trials.begin(polynomials, advance, time, step)
        self._close(time, step)

    # -- closing --------------------------------------------------------------------------------------------

    def _close(self, time: float, step: float) -> None:
        """Find the multipliers that close the joints at the end of a step in s, and make the step.

        Raises
        ------
        SimulationError
            When there are none.
        """
        # Without what has no effect: directions of redundant components turn, and extrapolation makes them grow.
        self.multipliers[:] = self._effective(self._predicted(step))
        self._evaluate()
        fresh, size = False, np.inf
        for iteration in range(_MOST_ITERATIONS):
            before, size = size, float(np.max(np.abs(self.residual) / self._limits))
            if size <= 1.0:
                self._take(step)
                return
            if not self.inverse.is_known or (not fresh and iteration > 1 and not size < _SLOW * before):
                self._renew(step, self.trials.differences)
                fresh = True
            self._change[:] = -self.inverse.apply(self.residual)
            self.multipliers += self._change.reshape(2, -1) / (step * step)
            turned = self.trials.follow()
            self._last[:] = self.residual
            self._evaluate()
            if turned <= _TURNED:
                self.inverse.learn(self._change, self.residual - self._last)
        raise self.failure(time)

    def _evaluate(self) -> None:
        self.sweeps += 1
        self.residual[:] = self.trials.evaluate(self.multipliers)

    def _take(self, step: float) -> None:
        """Take the multipliers of an accepted step in s."""
        self._lines[1:] = self._lines[:-1].copy()
        self._lines[0] = self.multipliers
        self._known = min(self._known + 1, _REMEMBERED) if self._length == step else 1
        self._length = step
        self.reactions[:] = self.trials.reactions(self.multipliers)

    def _predicted(self, step: float) -> Floats:
        """Return the multipliers at both ends of the coming step in s: those of the last steps go on."""
        last, before, first = self._lines
        if self._length == step and self._known > 1:
            return 3.0 * (last - before) + first if self._known == _REMEMBERED else 2.0 * last - before
        slope = (last[1] - last[0]) / self._length if self._length else 0.0 * last[1]
        return np.stack([last[1], last[1] + step * slope])

    def _effective(self, multipliers: Floats) -> Floats:
        """Return multipliers without their part that had no effect where the Jacobian was found."""
        if not self.inverse.is_known:
            return multipliers
        directions = self.directions[: self._rank]
        shares = np.add.accumulate(directions * multipliers.ravel(), axis=1)[:, -1:]
        return np.add.reduce(directions * shares, 0, initial=0.0).reshape(multipliers.shape)

    def failure(self, time: float) -> SimulationError:
        """Return the error of the step from a time in s, with the joint that is open most."""
        residual, count = self.residual, self.trials.count
        worst = int(np.argmax(np.abs(residual) / self._limits)) % count
        joint = next(each.joint for each, part in zip(self.joints, self.trials.parts, strict=True) if worst < part.stop)
        return SimulationError(
            f"the joint {joint} does not close in the step from t = {time:.9g} s: it stays open by "
            f"{abs(residual[worst]):.3g} m or rad, and moves apart by {abs(residual[count + worst]):.3g} in a step, "
            f"after {_MOST_ITERATIONS} iterations; take a smaller step, or a larger tolerance than {joint.tolerance:g}"
        )

    # -- the Jacobian ---------------------------------------------------------------------------------------

    def renew_within(
        self, polynomials: Floats, correction: Floats | None, time: float, step: float, differences: Differences
    ) -> None:
        """Find the Jacobian where compiled code is, in a step in s with its polynomials.

        Parameters
        ----------
        polynomials, correction
            Of all columns, and what is added to the integral of each entry over the step.
        time, step
            Beginning and length of the step in s.
        differences
            As for compiled code; see `JointTrials.differences`.

        Raises
        ------
        SimulationError
            When the FMUs cannot tell the two ends of a wrench apart, or one refuses.
        """
        self.trials.go_on(polynomials, self._advancing(polynomials, correction, time, step), step)
        self._renew(step, differences)

    def _renew(self, step: float, differences: Differences) -> None:
        """Find the Jacobian in a step in s, its pseudo-inverse, and the directions that have an effect.

        Raises
        ------
        SimulationError
            When the FMUs cannot tell the two ends of a wrench apart.
        """
        jacobian = self._jacobian(differences) / (step * step)
        count = self.trials.count
        distinct = jacobian[:count] - 0.5 * jacobian[count:]
        if np.linalg.norm(distinct) < _DISTINCT * np.linalg.norm(jacobian[:count]):
            raise SimulationError(
                f"position and velocity of joints cannot both be closed in steps of {step:g} s: "
                f"{names_of([each.instance.name for each in self.together])} integrate a wrench by its mean "
                f"alone; let them make {STEPS} steps or more in a communication step, by rates"
            )
        left, values, right = np.linalg.svd(jacobian)
        kept = values > _RANK * values[0]
        self._rank = int(np.count_nonzero(kept))
        self.directions[: self._rank] = right[kept]
        self.inverse.set_inverse((right[kept].T / values[kept]) @ left[:, kept].T)

    def _jacobian(self, differences: Differences) -> Floats:
        """Return the Jacobian by differences large enough to be seen."""
        jacobian = np.zeros((self.multipliers.size, self.multipliers.size))
        for _ in range(_TRIES):
            self.jacobians += 1
            perturbations = self._moves[self._is_moment.astype(int)]
            jacobian = differences(self.multipliers, perturbations)
            responses = np.max(np.abs(jacobian), axis=0) * perturbations
            factors = np.ones(2)
            for kind in (0, 1):
                largest = float(np.max(responses[self._is_moment == kind], initial=0.0))
                if largest > 0.0 and not 0.1 * _RESPONSE <= largest <= 10.0 * _RESPONSE:
                    factors[kind] = np.clip(_RESPONSE / largest, 1.0 / _GROWTH, _GROWTH)
            self._moves = self._moves * factors
            if (factors == 1.0).all():
                break
        return jacobian

    # -- compiled code --------------------------------------------------------------------------------------

    @property
    def compiled_turns(self) -> list[tuple[CoupledInstance, bool]]:
        """The members in the order in which they step in compiled code, with whether later ones take what they give."""
        if self._groups is not None:
            return [(member, True) for members in self._groups for member in members]
        others = [member for member in self.exchange.members if member not in self.together]
        return [(member, False) for member in (*others, *self.together)]

    def compiled_slot(self, member: CoupledInstance) -> str | None:
        """Return the slot of the states of a member that compiled code saves in steps; None for none."""
        return OPEN if member in self.together else None

    @property
    def compiled_ports(self) -> list[Port]:
        """What reads the motions of the handles."""
        return [handle.port for joint in self.joints for handle in joint.handles]

    def enter(self, calls: FmuCalls) -> ClosingTable:
        """Return the table, with the joints as compiled code sees them."""
        members = [member for member, _ in self.compiled_turns]
        joints = (JointTable * len(self.joints))()
        self._kept = list[object]()
        for joint, ends, part, table in zip(self.joints, self.trials.ends, self.trials.parts, joints, strict=True):
            handles = (HandleTable * 2)(*(self._handle_table(end, calls) for end in ends))
            table.handles, table.kind = handles, JOINT_KINDS.index(joint.joint.kind)
            table.first, table.count = part.start, part.stop - part.start
            table.reference = pointer_to(joint.equations.reference)
            self._kept += [handles, joint.equations.reference]
        self._kept.append(joints)
        self.table.joints = joints
        self.table.first_member = members.index(self.together[0])
        return self.table

    def _handle_table(self, end: LoadedHandle, calls: FmuCalls) -> HandleTable:
        handle = end.handle
        motion = handle.motion()
        self._kept += [motion, handle.read_places, end.columns, handle.places]
        return HandleTable(
            port=handle.port.table(calls),
            motion_places=handle.read_places.ctypes.data_as(POINTER(c_ssize_t)),
            motion=pointer_to(motion),
            columns=end.columns.ctypes.data_as(POINTER(c_ssize_t)),
            load_places=handle.places.ctypes.data_as(POINTER(c_ssize_t)),
            load_count=len(handle.places),
            widening=end.widening,
            member=self.together.index(end.member),
        )


def joint_rates(joints: Sequence[BoundJoint], rates: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of steps in a communication step, with those of the FMUs of joints.

    Raises
    ------
    InputError
        When an FMU that holds its inputs shall make one step.
    """
    result = dict(rates)
    for handle in (handle for joint in joints for handle in joint.handles):
        name = handle.instance.name
        if result.setdefault(name, STEPS) == 1 and not handle.instance.interpolates:
            raise InputError(
                f"the rate of {name} is 1, but it holds its inputs over a step; with a joint it needs {STEPS} or more"
            )
    return result
