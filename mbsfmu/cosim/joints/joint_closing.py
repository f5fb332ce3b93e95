"""Coupling of mechanisms by joints, closed at each communication point after trial steps (`compiled.joint_step`).

FMUs must tell the two values of a wrench apart, at the beginning and the end of a communication step: they make two
steps or more of their own in it, for one step of the trapezoidal rule gives position and velocity by the same mean.
Therefore FMUs of joints are stepped twice in it, where `rates` says nothing else. One that holds its inputs gets stairs
with the same mean and first moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.compiled.joint_differences import find_differences
from mbsfmu.cosim.compiled.library import (
    MADE,
    ClosingTable,
    ExchangeTable,
    HandleTable,
    JointTable,
    PortTable,
    compiled_library,
    pointer_to,
)
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.graph import JOINT_KINDS
from mbsfmu.cosim.coupling.iterated_coupling import LearnedInverse
from mbsfmu.cosim.coupling.sweeps import OneSweep, Settings, names_of
from mbsfmu.cosim.fmus.fmu_instance import Floats, Port
from mbsfmu.cosim.joints.joint_equations import BoundHandle, BoundJoint, columns_of

OPEN = "before the joints are closed"
"""Name under which states at the start of a step are saved."""


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

    @property
    def order_of_steps(self) -> list[tuple[CoupledInstance, bool]]:
        """The members in the order in which they step, with whether later ones take what they give."""
        if self._groups is not None:
            return [(member, True) for members in self._groups for member in members]
        others = [member for member in self.exchange.members if member not in self.together]
        return [(member, False) for member in (*others, *self.together)]

    slot = OPEN

    def is_saved(self, member: CoupledInstance) -> bool:
        """Return whether steps save the state of a member: of those that joints join, and where they are made again."""
        return member in self.together or super().is_saved(member)

    def _place(self, table: ClosingTable) -> ClosingTable:
        """Write into a table which members joints join."""
        members = [member for member, _ in self.order_of_steps]
        table.first_member, table.member_count = members.index(self.together[0]), len(self.together)
        return table


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
    Redundant components get the least multipliers.

    Parameters
    ----------
    exchange, settings, joints
        As for `JointAlgorithm`.

    Attributes
    ----------
    table
        Numbers and arrays of the closing.
    ends
        The handles of each joint.
    parts
        Places of the joints among all constraints, whose number is `count`.
    at_begin, at_end
        Rows G₁ and G₂ of all joints that wrenches have at both ends of the step, shape (2, count, 6). At the end they
        are extrapolated in the first trial, and stay as the second one has them from the first.
    following
        The same at the end of the first trial.
    before
        The same at the start of the last two steps, shape (2, 2, count, 6).
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
        "before",
        "_rank",
        "_lines",
        "_known",
        "_length",
        "_moves",
        "_rows_known",
        "_rows_length",
    )

    def __init__(self, exchange: CouplingData, settings: Settings, joints: Sequence[BoundJoint]) -> None:
        super().__init__(exchange, settings, joints)
        places = np.cumsum([0, *(joint.equations.count for joint in joints)]).tolist()
        self.parts = [slice(begin, end) for begin, end in pairwise(places)]
        self.count = int(places[-1])
        self.ends = [tuple(LoadedHandle(handle, exchange) for handle in joint.handles) for joint in joints]
        unknowns, shape = 2 * self.count, (2, self.count, 6)
        sizes = [part.stop - part.start for part in self.parts]
        self._limits = np.tile(np.repeat([joint.joint.tolerance for joint in joints], sizes), 2)
        self._is_moment = np.tile(np.concatenate([joint.equations.are_moments for joint in joints]), 2)
        self._lines = np.zeros((_REMEMBERED, 2, self.count))  # of the last steps: multipliers at both ends
        self.at_begin, self.at_end, self.following, self._rows = (np.zeros(shape) for _ in range(4))
        self.before = np.zeros((2, *shape))
        self.multipliers, self.directions = np.zeros((2, self.count)), np.zeros((unknowns, unknowns))
        self.residual, self._last, self._change = (np.zeros(unknowns) for _ in range(3))
        self._moves = np.ones(2)  # perturbations of forces and moments
        self.jacobians = 0
        arrays = {
            "lines": self._lines,
            "directions": self.directions,
            "limits": self._limits,
            "multipliers": self.multipliers,
            "residual": self.residual,
            "last": self._last,
            "change": self._change,
            "at_begin": self.at_begin,
            "at_end": self.at_end,
            "following": self.following,
            "before": self.before,
            "rows": self._rows,
        }
        self.table = ClosingTable(
            joint_count=len(joints),
            count=self.count,
            maximum=_MOST_ITERATIONS,
            slow=_SLOW,
            most_turned=_TURNED,
            remembered=_REMEMBERED,
            **{name: pointer_to(array) for name, array in arrays.items()},
        )
        self.inverse = LearnedInverse(unknowns, self.table.inverse)

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
    def _rows_known(self) -> int:
        """Number of the last steps of one length whose rows at the start are known."""
        return self.table.rows_known

    @_rows_known.setter
    def _rows_known(self, count: int) -> None:
        self.table.rows_known = count

    @property
    def _rows_length(self) -> float:
        """Length of the last step in s whose rows are known; 0 before the first one."""
        return self.table.rows_length

    @_rows_length.setter
    def _rows_length(self, length: float) -> None:
        self.table.rows_length = length

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

    def failure(self, time: float) -> SimulationError:
        """Return the error of the step from a time in s, with the joint that is open most."""
        residual, count = self.residual, self.count
        worst = int(np.argmax(np.abs(residual) / self._limits)) % count
        joint = next(each.joint for each, part in zip(self.joints, self.parts, strict=True) if worst < part.stop)
        return SimulationError(
            f"the joint {joint} does not close in the step from t = {time:.9g} s: it stays open by "
            f"{abs(residual[worst]):.3g} m or rad, and moves apart by {abs(residual[count + worst]):.3g} in a step, "
            f"after {_MOST_ITERATIONS} iterations; take a smaller step, or a larger tolerance than {joint.tolerance:g}"
        )

    # -- the Jacobian ---------------------------------------------------------------------------------------

    def make_jacobian(self, table: ExchangeTable) -> None:
        """Find the Jacobian where a step is.

        Raises
        ------
        SimulationError
            When the FMUs cannot tell the two ends of a wrench apart, or one refuses.
        """
        self._renew(table)
        self.table.is_fresh = True

    def _renew(self, table: ExchangeTable) -> None:
        """Find the Jacobian in a step, its pseudo-inverse, and the directions that have an effect."""
        step, count = table.step, self.count
        jacobian = self._jacobian(table) / (step * step)
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

    def _jacobian(self, table: ExchangeTable) -> Floats:
        """Return the Jacobian by differences large enough to be seen."""
        jacobian = np.zeros((self.multipliers.size, self.multipliers.size))
        for _ in range(_TRIES):
            self.jacobians += 1
            perturbations = self._moves[self._is_moment.astype(int)]
            jacobian = self._differences(table, perturbations)
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

    def _differences(self, table: ExchangeTable, perturbations: Floats) -> Floats:
        """Return derivatives of what joints are open by; by Python where an FMU needs it."""
        jacobian = np.zeros((len(perturbations), len(perturbations)))
        self.table.jacobian, self.table.perturbations = pointer_to(jacobian), pointer_to(perturbations)
        counts = [(member.instance, member.instance.steps) for member in self.together]
        if table.is_compiled and compiled_library().mbsfmu_differences(table) == MADE:
            return jacobian
        for turn in range(table.member_count):
            table.members[turn].part = 0
        for instance, count in counts:
            instance.steps = count
        find_differences(table)
        return jacobian

    # -- tables ---------------------------------------------------------------------------------------------

    @property
    def other_ports(self) -> list[Port]:
        """What reads the motions of the handles."""
        return [handle.port for joint in self.joints for handle in joint.handles]

    def closing(self, port_table: Callable[[Port], PortTable]) -> ClosingTable:
        """Return the table, with the joints and the ports that read their motions."""
        joints = (JointTable * len(self.joints))()
        self._kept = list[object]()
        for joint, ends, part, table in zip(self.joints, self.ends, self.parts, joints, strict=True):
            handles = (HandleTable * 2)(*(self._handle_table(end, port_table) for end in ends))
            table.handles, table.kind = handles, JOINT_KINDS.index(joint.joint.kind)
            table.first, table.count = part.start, part.stop - part.start
            table.reference = pointer_to(joint.equations.reference)
            self._kept += [handles, joint.equations.reference]
        self._kept.append(joints)
        self.table.joints = joints
        return self._place(self.table)

    def _handle_table(self, end: LoadedHandle, port_table: Callable[[Port], PortTable]) -> HandleTable:
        handle = end.handle
        motion = handle.motion()
        self._kept += [motion, handle.read_places, end.columns, handle.places]
        return HandleTable(
            port=port_table(handle.port),
            motion_places=pointer_to(handle.read_places),
            motion=pointer_to(motion),
            columns=pointer_to(end.columns),
            load_places=pointer_to(handle.places),
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
