"""FMUs for model exchange that joints join, integrated as one system.

FMUs for model exchange that joints join, integrated as one system.

At given states the accelerations of the handles are affine in the wrenches F on them, a = ζ F + b, as in the method of
divide and conquer [Featherstone1999]; ζ is the inverse inertia that the handles of an FMU have for each other. With the
rows G of the joints, F = Gᵀ λ, and the constraints' acceleration vanishes where

    G ζ Gᵀ λ = -G b - Ġ V.

Redundant components get the least λ. The integrator leaves gaps of the order of its tolerance. A projection closes
them: positions by the nearest states, velocities by impulses at the joints, which also follow from jumps at events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.compiled.library import ClosingTable, ExchangeTable, PortTable
from mbsfmu.cosim.compiled.member_step import set_inputs, take
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.graph import CoupledJoint
from mbsfmu.cosim.coupling.sweeps import Settings, names_of
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuEnded, FmuError, Port
from mbsfmu.cosim.fmus.model_exchange import FmuIntegrator, IntegratedModel, ModelExchangeInstance, Refused
from mbsfmu.cosim.joints.joint_closing import JointAlgorithm
from mbsfmu.cosim.joints.joint_equations import BoundHandle, BoundJoint, speeds

_RANK = 1e-6
"""Singular values below this share of the largest one are of components without effect, or of redundant ones."""
_EXACT = 1e-12
"""What the constraints' acceleration may be left, as a share of its terms."""
_NOISE = 1e-8
"""The same where it gets no less: FMUs that iterate themselves give accelerations that are less exact."""
_MOST_ITERATIONS, _MOST_PROJECTIONS = 20, 8
_SLOW = 0.01  # an iteration that leaves more than this share is worth new derivatives
_SHARE = 0.1
"""Share of the tolerance of a joint from which on it is closed by a projection."""
_LARGEST_GAP = 1e-6
"""What an event may open a joint by in m and rad; more is no round-off."""
_DIFFERENCE = 1e-7
"""Perturbation of states as a share of their magnitudes, by which derivatives of gaps are found."""


class _Member:
    """An FMU with its handles.

    Attributes
    ----------
    model
        The FMU.
    states
        Its place among the states of all.
    loads, accelerations
        Places of its loads and of its accelerations among those of all handles.
    """

    def __init__(self, model: ModelExchangeInstance, handles: Sequence[tuple[int, BoundHandle]], first: int) -> None:
        self.model = model
        self.states = slice(first, first + len(model.current_states))
        names, places = list[str](), list[int]()
        for number, handle in handles:
            names += handle.inputs
            places += [6 * number + place for place in handle.places]
        self._loads, self.loads = model.port(names), np.array(places, dtype=np.intp)
        seen = [(number, *handle.accelerations()) for number, handle in handles]
        self._accelerations = model.port([name for _, found, _ in seen for name in found])
        self.accelerations = np.array([6 * number + place for number, _, found in seen for place in found], np.intp)
        self._by_differences = not model.gives_directional_derivatives

    def load(self, wrenches: Floats) -> None:
        """Set its loads from the wrenches on all handles, shape (6 · handles,)."""
        self._loads.values[:] = wrenches[self.loads]
        self._loads.write()

    def read(self) -> Floats:
        """Return the accelerations of its handles, overwritten in the next call."""
        return self._accelerations.read()

    def derivatives(self, wrenches: Floats) -> tuple[Floats, Floats]:
        """Return derivatives of its rates and of its accelerations by its loads, where it is with these wrenches."""
        if not self._by_differences:
            unknowns = [*self.model.derivatives, *self._accelerations.names]
            try:
                found = self.model.directional_derivative(unknowns, self._loads.names)
            except FmuError as error:
                if error.fatal:
                    raise
                self._by_differences = True
            else:
                count = len(self.model.derivatives)
                return found[:count], found[count:]
        return self._differences(wrenches)

    def _differences(self, wrenches: Floats) -> tuple[Floats, Floats]:
        """Return the same by loads of 1 N or 1 N m more: differences of affine functions are exact."""
        at = np.concatenate([self.model.rates_here(), self.read()])
        result = np.zeros((len(at), len(self.loads)))
        for column, place in enumerate(self.loads):
            moved = wrenches.copy()
            moved[place] += 1.0
            self.load(moved)
            result[:, column] = np.concatenate([self.model.rates_here(), self.read()]) - at
        self.load(wrenches)
        count = self.states.stop - self.states.start
        return result[:count], result[count:]


class JoinedModels(IntegratedModel):
    """FMUs for model exchange with joints between them, as one system of differential equations.

    Parameters
    ----------
    joints
        The joints.
    models
        The FMUs, at the start.

    Attributes
    ----------
    tolerances
        Absolute tolerances of the states for a relative one of 1, shape (states,).
    wrenches
        Wrenches (force, moment) on all handles, the two of a joint after each other, shape (12 · joints,).
    evaluations
        Number of evaluations of the rates.

    Raises
    ------
    InputError
        When an FMU gives no accelerations, or there are no states.
    """

    CHANGES = (
        "wrenches",
        "evaluations",
        "_length",
        "_follows_event",
        "_mobility",
        "_effect",
        "_slopes",
        "_knows_mobility",
        "_knows_slopes",
        "_gap_before",
    )

    def __init__(self, joints: Sequence[BoundJoint], models: Sequence[ModelExchangeInstance]) -> None:
        self.name = names_of([model.name for model in models])
        self._joints, self._models = joints, models
        handles = list(enumerate(handle for joint in joints for handle in joint.handles))
        self._members = list[_Member]()
        count = 0
        for model in models:
            own = [(number, handle) for number, handle in handles if handle.instance is model]
            self._members.append(_Member(model, own, count))
            count = self._members[-1].states.stop
        if not count:
            raise InputError(f"{self.name} have no continuous states; nothing moves that a joint could hold")
        places = np.cumsum([0, *(joint.equations.count for joint in joints)]).tolist()
        self._parts = [slice(begin, end) for begin, end in pairwise(places)]
        self._limits = np.concatenate([np.full(joint.equations.count, joint.joint.tolerance) for joint in joints])
        self.tolerances = self._nominals()
        relative = min(model.relative_tolerance for model in models)
        self.integrator = FmuIntegrator(self.name, self, models[0].solver, relative)
        self.wrenches = np.zeros(6 * len(handles))
        self.evaluations = 0
        self._step = self._time = 0.0
        self._follows_event = True
        self._mobility = np.zeros((6 * len(handles), 6 * len(handles)))  # of accelerations by wrenches
        self._effect = np.zeros((count, 6 * len(handles)))  # of rates by wrenches
        self._slopes = np.zeros((places[-1], count))  # of gaps by states
        self._knows_mobility = self._knows_slopes = False
        self._gap_before = np.inf

    @property
    def _length(self) -> float:
        return self.integrator.length

    @_length.setter
    def _length(self, length: float) -> None:
        self.integrator.length = length

    # -- steps ----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Find the wrenches at the start."""
        self._time = self._models[0].time
        with self._guarded():
            self._close()

    def step(self, time: float, step: float) -> None:
        """Make a step in s; inputs are set.

        Raises
        ------
        FmuError
            When an FMU refuses.
        SimulationError
            When they cannot be integrated, events do not end, or a joint cannot be closed.
        FmuEnded
            When an FMU ended the run before the end of the step; at the end, it is noted in its `ends`.
        """
        self._step = step
        reached = self._time = max(model.begin_step(time) for model in self._models)
        if not self.is_over:
            with self._guarded():
                reached = self._go(reached, max(time + step, reached))
        ended = None
        for model in self._models:
            try:
                model.end_step(reached, time, step)
            except FmuEnded as error:
                ended = error
        if ended is not None:
            raise ended

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Let evaluations that are refused for good end the run."""
        try:
            yield
        except Refused as refused:
            raise FmuError(f"{self.name} at t = {self._time:.9g} s: {refused.reason}", False) from None
        finally:
            for model in self._models:
                model.restore_environment()

    @property
    def following(self) -> float:
        """Time of the next event that an FMU has named, in s; infinity for none."""
        return min(model.following for model in self._models)

    @property
    def is_over(self) -> bool:
        """Whether an FMU has ended the run."""
        return any(model.is_over for model in self._models)

    @property
    def is_continuous(self) -> bool:
        """Whether there are continuous states."""
        return True

    def jumped(self) -> bool:
        """Return whether inputs differ from their values at the end of the last step."""
        return any(model.jumped() for model in self._models)

    def states_now(self) -> Floats:
        """Return the states where the FMUs are."""
        return np.concatenate([model.current_states for model in self._models])

    def arrive(self, time: float, states: Floats) -> tuple[Floats, bool]:
        """Bring the FMUs to the end of a step of the integrator, and close the joints there."""
        self._put(time, states)
        states = self._projected(time, states)
        self._close()
        asks = [model.complete(time) for model in self._models]
        return states, any(asks)

    def count_event(self, time: float, *, inside: bool) -> None:
        """Count an event of all FMUs: each has been in event mode."""
        for model in self._models:
            model.count_event(time, inside=inside)

    @contextmanager
    def event(self) -> Iterator[None]:
        """Enter event mode in all FMUs, and leave it at the end; velocities that jump get the joints' impulses."""
        with ExitStack() as stack:
            for model in self._models:
                stack.enter_context(model.event())
            yield
        self._follows_event, self._knows_mobility, self._knows_slopes = True, False, False
        self.tolerances = self._nominals()
        if self.is_over:
            return
        gaps = self._gaps(self._motions())
        worst = int(np.argmax(np.abs(gaps)))
        if abs(gaps[worst]) > _LARGEST_GAP:
            raise SimulationError(
                f"the joint {self._joint_of(worst)} is opened by {abs(gaps[worst]):.3g} m or rad at an event at "
                f"t = {self._time:.9g} s; positions must not jump there"
            )
        self._projected(self._time, self.states_now())
        self._close()

    # -- equations ------------------------------------------------------------------------------------------

    def rates(self, time: float, states: Floats) -> Floats:
        """Return derivatives of the states in 1/s, with the wrenches that keep the joints closed."""
        self.evaluations += 1
        self._put(time, states)
        self._close()
        return np.concatenate([model.rates_here() for model in self._models])

    def indicators(self, time: float, states: Floats) -> Floats:
        """Return event indicators of all FMUs."""
        if not any(model.has_indicators for model in self._models):
            return np.zeros(0)
        self._put(time, states)
        self._close()
        return np.concatenate([model.indicators_here() for model in self._models])

    def jacobian(self) -> None:
        """Return that derivatives of the closed system are found by differences."""
        return

    def _nominals(self) -> Floats:
        """Return the nominal values of the states."""
        return np.concatenate([each.model.tolerances[: each.states.stop - each.states.start] for each in self._members])

    def _put(self, time: float, states: Floats) -> None:
        self._time = time
        for member in self._members:
            member.model.put(time, states[member.states])

    # -- wrenches -------------------------------------------------------------------------------------------

    def _close(self) -> None:
        """Load the handles by the wrenches that keep the joints closed, where the FMUs are.

        Raises
        ------
        Refused
            When there are none.
        """
        motions = self._motions()
        rows, bias = self._rows(motions), self._bias(motions)
        accelerations = self._loaded(self.wrenches)
        fresh, before, towards, inverse = False, np.inf, rows, rows
        for iteration in range(_MOST_ITERATIONS):
            if not self._knows_mobility:
                self._find_mobility()
                fresh = True
            if fresh or not iteration:
                towards = rows @ self._mobility
                inverse = np.linalg.pinv(towards @ rows.T, rcond=_RANK)
            free = rows @ accelerations - towards @ self.wrenches + bias
            change = -rows.T @ (inverse @ free) - self.wrenches
            # Where the whole is at rest, accelerations vanish, and what they are the differences of does not.
            terms = np.abs(rows) @ np.abs(accelerations) + np.abs(bias) + np.abs(towards) @ np.abs(self.wrenches)
            scale = float(np.max(terms, initial=0.0))
            size = float(np.max(np.abs(towards @ change)))
            if iteration and (size <= _EXACT * scale or (fresh and before <= size <= _NOISE * scale)):
                return
            if not np.isfinite(size):
                raise Refused("the accelerations of the handles are not finite")
            if iteration and not fresh and size > _SLOW * before:
                self._knows_mobility, before = False, np.inf
                continue
            before = size
            self.wrenches = self.wrenches + change
            accelerations = self._loaded(self.wrenches)
        raise Refused("no wrench keeps the joints closed: accelerations of handles are not affine in it")

    def _loaded(self, wrenches: Floats) -> Floats:
        """Load all handles, and return their accelerations, shape (6 · handles,)."""
        result = np.zeros(len(wrenches))
        for member in self._members:
            member.load(wrenches)
            result[member.accelerations] = member.read()
        return result

    def _find_mobility(self) -> None:
        """Find the derivatives of accelerations and of rates by the wrenches."""
        for member in self._members:
            effect, mobility = member.derivatives(self.wrenches)
            self._effect[member.states, member.loads] = effect
            self._mobility[np.ix_(member.accelerations, member.loads)] = mobility
        self._knows_mobility = True

    def reactions(self) -> Floats:
        """Return the wrenches on the second handles, shape (6 · joints,)."""
        return self.wrenches.reshape(-1, 2, 6)[:, 1].ravel()

    def _rows(self, motions: list[tuple[Floats, Floats]]) -> Floats:
        """Return G of all joints, shape (constraints, 12 · joints)."""
        rows = np.zeros((len(self._limits), len(self.wrenches)))
        for number, (joint, part, each) in enumerate(zip(self._joints, self._parts, motions, strict=True)):
            rows[part, 12 * number : 12 * number + 12] = np.hstack(joint.equations.rows(*each))
        return rows

    def _bias(self, motions: list[tuple[Floats, Floats]]) -> Floats:
        each = zip(self._joints, motions, strict=True)
        return np.concatenate([joint.equations.bias(*motion) for joint, motion in each])

    # -- projection -----------------------------------------------------------------------------------------

    def _gaps(self, motions: list[tuple[Floats, Floats]]) -> Floats:
        each = zip(self._joints, motions, strict=True)
        return np.concatenate([joint.equations.gap(*motion) for joint, motion in each])

    def _motions(self) -> list[tuple[Floats, Floats]]:
        return [joint.motions() for joint in self._joints]

    def _projected(self, time: float, states: Floats) -> Floats:
        """Return states in which the joints are closed, and bring the FMUs there; the same array where they are.

        Raises
        ------
        SimulationError
            When they cannot be closed.
        """
        left = _MOST_PROJECTIONS
        while True:
            motions = self._motions()
            gaps, rows = self._gaps(motions), self._rows(motions)
            rates = rows @ np.concatenate([speeds(side) for motion in motions for side in motion])
            opened = float(np.max(np.abs(gaps) / self._limits))
            parting = float(np.max(np.abs(rates) / self._limits)) * self._step
            if opened <= _SHARE and parting <= _SHARE:
                return states
            if not left:
                break
            left -= 1
            states = self._closed(time, states, gaps) if opened > _SHARE else self._slowed(states, rows, rates)
            self._put(time, states)
        if opened <= 1.0 and parting <= 1.0:
            return states
        worst = int(np.argmax(np.maximum(np.abs(gaps), np.abs(rates) * self._step) / self._limits))
        raise SimulationError(
            f"the joint {self._joint_of(worst)} cannot be closed at t = {time:.9g} s: it stays open by "
            f"{abs(gaps[worst]):.3g} m or rad, and moves apart at {abs(rates[worst]):.3g} m/s or rad/s"
        )

    def _closed(self, time: float, states: Floats, gaps: Floats) -> Floats:
        """Return states with smaller gaps: the nearest ones, in nominal values."""
        if not self._knows_slopes or np.max(np.abs(gaps)) > _SLOW * self._gap_before:
            self._find_slopes(time, states, gaps)
        self._gap_before = float(np.max(np.abs(gaps)))
        scales = self.tolerances
        return states - scales * _least(self._slopes * scales, gaps)

    def _find_slopes(self, time: float, states: Floats, gaps: Floats) -> None:
        """Find the derivatives of gaps by states, by differences; the FMUs are brought elsewhere."""
        scales = self.tolerances
        for place, value in enumerate(states):
            moved = states.copy()
            moved[place] += _DIFFERENCE * max(scales[place], abs(value))
            self._put(time, moved)
            self._slopes[:, place] = (self._gaps(self._motions()) - gaps) / (moved[place] - value)
        self._knows_slopes = True

    def _slowed(self, states: Floats, rows: Floats, rates: Floats) -> Floats:
        """Return states after impulses at the joints that end the velocities over them."""
        if not self._knows_mobility:
            self._find_mobility()
        return states + self._effect @ (rows.T @ _least(rows @ self._mobility @ rows.T, -rates))

    def _joint_of(self, row: int) -> CoupledJoint:
        return next(joint.joint for joint, part in zip(self._joints, self._parts, strict=True) if row < part.stop)


def _least(matrix: Floats, values: Floats) -> Floats:
    """Return the solution of least norm, without what hardly has an effect."""
    return np.asarray(np.linalg.lstsq(matrix, values, rcond=_RANK)[0], dtype=np.float64)


class JointIntegration(JointAlgorithm):
    """Integrates FMUs for model exchange together, with the joints closed in every evaluation.

    Parameters
    ----------
    exchange, settings, joints
        As for `JointAlgorithm`.

    Raises
    ------
    InputError
        When an FMU gives no accelerations.
    """

    CHANGES = (*JointAlgorithm.CHANGES, "_models")

    def __init__(self, exchange: CouplingData, settings: Settings, joints: Sequence[BoundJoint]) -> None:
        super().__init__(exchange, settings, joints)
        models = [each.instance for each in self.together if isinstance(each.instance, ModelExchangeInstance)]
        self._models = JoinedModels(joints, models)

    def history(self) -> OutputHistory:
        """Return a history that starts with the present outputs, at closed joints with their reactions."""
        for joint in self.joints:
            joint.begin()
        self._models.begin()
        self.reactions[:] = self._models.reactions()
        return super().history()

    compiles = False

    def is_saved(self, member: CoupledInstance) -> bool:
        """Return whether steps save the state of a member: where they are made again."""
        del member
        return self.again > 0

    def closing(self, port_table: Callable[[Port], PortTable]) -> ClosingTable:
        """Return which members one integrator takes over a step."""
        del port_table
        return self._place(ClosingTable(integrates=True))

    def integrate(self, table: ExchangeTable) -> None:
        """Integrate the FMUs over a step."""
        table.sweeps += 1
        first = table.closing[0].first_member
        for turn in range(first, first + table.closing[0].member_count):
            take(table, table.members[turn])
            set_inputs(table, table.members[turn], table.step)
        self._models.step(table.times[table.first + table.made], table.step)
        self.reactions[:] = self._models.reactions()


def check_rates(joints: Sequence[BoundJoint], rates: Mapping[str, int]) -> None:
    """Check that no FMU of joints has steps of its own in a communication step.

    Raises
    ------
    InputError
        When one has.
    """
    for name in (handle.instance.name for joint in joints for handle in joint.handles):
        if rates.get(name, 1) != 1:
            raise InputError(
                f"the rate of {name} is {rates[name]}, but joints let one integrator choose the steps of FMUs for "
                "model exchange; leave the rate out"
            )
