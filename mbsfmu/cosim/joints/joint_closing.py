"""Coupling of mechanisms by joints, closed at each communication point.

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

from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, c_ssize_t

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.compiled.layout import ClosingTable, HandleTable, JointTable
from mbsfmu.cosim.coupling.coupled_joint import JOINT_KINDS
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.iterated import pointer_to
from mbsfmu.cosim.coupling.learned_inverse import LearnedInverse
from mbsfmu.cosim.coupling.sweeps import Settings, names_of
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuCalls, Port
from mbsfmu.cosim.joints.bound_joints import BoundJoint
from mbsfmu.cosim.joints.joint_algorithm import Advance, JointAlgorithm
from mbsfmu.cosim.joints.joint_trials import OPEN, JointTrials, LoadedHandle

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
