"""The run loop: current time and state, discontinuities of inputs, updates of discrete states."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.times import tolerance
from mbsfmu.formulations.native_needs import StepKind
from mbsfmu.initialization.initialization import Start, check_limits
from mbsfmu.initialization.prescribed import check_motion
from mbsfmu.integration.solver import Inputs, Solver
from mbsfmu.integration.steps_past_stop import MOST_AHEAD, looks_ahead
from mbsfmu.simulation.change_points import RankWatch
from mbsfmu.simulation.input_values import InputValues
from mbsfmu.simulation.sampling import Sampler
from mbsfmu.simulation.variable_table import NO_EVENT, readings
from mbsfmu.stepping.state import State
from mbsfmu.systems.checks.parameter_checks import contradiction_of
from mbsfmu.systems.system import starts
from mbsfmu.tracing.workspace import Floats


@dataclass(frozen=True)
class Place:
    """A point of a run to which it can return.

    Attributes
    ----------
    time, passed, sampled, state, effective, discrete
        As the course has them.
    """

    time: float
    passed: float
    sampled: float
    state: State | None
    effective: Floats
    discrete: Floats


class RunLoop:
    """The state at a time, and its continuation at discontinuities and updates.

    Parameters
    ----------
    solver
        Advances its states.
    inputs
        The inputs over time.
    rank_watch
        Looks where loop equations lose rank.
    calculated
        Number of calculated parameters.

    Attributes
    ----------
    solver, formulation, functions, inputs, rank_watch
        What it is made of.
    sampler
        Makes the updates.
    time
        Present time in s.
    passed, sampled
        Times in s up to which events have passed, and discrete states were updated.
    parameters
        Values of all parameters.
    contradiction
        Why parameters that were changed in the middle of a run cannot be together, or None: then neither steps can be
        made nor readings found until they are set right, and the state stays the one of the parameters before.
    calculated
        Values of the calculated parameters, found at the start.
    effective
        The inputs that the state is consistent with.
    state
        None before initialization.
    stepped
        Whether a step was made since then.
    """

    def __init__(self, solver: Solver, inputs: InputValues, rank_watch: RankWatch, calculated: int) -> None:
        self.solver = solver
        self.formulation = solver.formulation
        self.functions = solver.formulation.functions
        self.inputs = inputs
        self.rank_watch = rank_watch
        self.sampler = Sampler(self.functions)
        self._calculated = calculated
        self.reset()

    def reset(self) -> None:
        """Reset to start values, without a state."""
        self.time = self.passed = self.sampled = 0.0
        self.threads = float(self.formulation.threads)
        self.parameters = starts(self.functions.system.parameters)
        self.contradiction: str | None = None
        self.inputs.reset()
        self.effective = self.inputs.values
        self.calculated = np.zeros(self._calculated)
        self.stepped = False
        self.state: State | None = None
        self._row: Floats | None = None

    @property
    def present(self) -> State:
        """The state after initialization."""
        assert self.state is not None
        return self.state

    def inputs_at_start(self, time: float) -> Floats:
        """Return the inputs at the start of a run in s; values set before apply from then on."""
        self.inputs.since = time
        return self.inputs.over(time + self.same(math.inf, time))(time)

    # -- the beginning --------------------------------------------------------------------------------------

    def begin(self, time: float, start: Start) -> None:
        """Initialize at a time in s.

        Raises
        ------
        InputError
            When it is not finite, outside its limits, or instants of updates are lost in the resolution of time.
        """
        functions = self.functions
        functions.parameters[:] = self.parameters = start.parameters
        self.contradiction = None
        self.calculated = np.array(list(start.calculated.values()))
        functions.place(start.coordinates, start.velocities)
        functions.states[:] = start.states
        functions.loop_iterates[:] = starts(functions.system.loop_iterates)
        self.sampler.check(time)
        functions.discrete[:] = functions.initial_discrete()[0]
        self.time = time
        same = self.same(math.inf, time)
        self.passed, self.sampled = time + same, time - same
        self.effective = self.inputs.over(self.passed)(time)
        functions.inputs[:] = self.effective
        check_limits(functions)
        state = State.at_start(functions, functions.initial_integrals()[0].copy())
        try:
            self.formulation.step = self.solver.step if self.solver.kind is StepKind.IMPLICIT else 0.0
            state = self.formulation.with_present_references(state, starts=True)
            state = self.formulation.consistent(self.formulation.prepared(state))
        except SimulationError:
            self._refuse_undefined_forces()
            raise
        begun = state.accelerations, state.rates, state.integral_rates
        if not all(np.isfinite(each).all() for each in begun):
            self._refuse_open_loops()
            self._refuse_undefined_forces()
            raise InputError("the start is not finite; check the parameters")
        self._refuse_open_loops()
        self.state = state
        self.stepped = False
        self._row = None
        self.sample()
        self.rank_watch.begin(time, self.present)

    def _refuse_undefined_forces(self) -> None:
        functions = self.formulation.functions
        undefined = functions.system.undefined_forces(functions.numeric_instant())
        if undefined:
            raise InputError(
                f"the start is not finite: the loads of {', '.join(undefined)} are undefined: do the points coincide "
                "that they act between?"
            )

    def _refuse_open_loops(self) -> None:
        try:
            self.formulation.check_loops()
        except SimulationError as error:
            raise InputError(f"at the start {error}") from None

    # -- going on -------------------------------------------------------------------------------------------

    def same(self, step: float, *times: float) -> float:
        """Return the tolerance in s within which times are equal, for steps in s."""
        return tolerance(min(self.solver.step, step, self.sampler.shortest), *times)

    def next_halt(self, same: float, last: float) -> float:
        """Return the next halt in s: a discontinuity or kink of an input, an update, or the last time."""
        event = self.inputs.next_event(self.passed, last - same, last)
        instant = self.sampler.next_instant(self.sampled)
        return instant if instant < min(event, last - same) else event

    def horizon(self, same: float, end: float, length: float) -> float:
        """Return the horizon in s of steps past the stop: the next discontinuity.

        No step may pass the stop if a variable was set since the last step, because it would be discarded if one is set
        in every step.
        """
        if not looks_ahead(self.present):
            return end
        halt = self.next_halt(same, end + MOST_AHEAD * length)
        return halt if halt > end + same else end

    def touch(self) -> None:
        """Record that a variable was set."""
        if self.state is not None:
            self.state = self.state.touched

    @property
    def next_event(self) -> float:
        """Time in s of the next discontinuity, kink or update; `NO_EVENT` without one."""
        return min(self.inputs.next_event(self.passed, NO_EVENT, NO_EVENT), self.sampler.next_instant(self.passed))

    def arrive(self, state: State, time: float, inputs: Inputs, same: float) -> None:
        """Accept a state at a time in s, up to which inputs were continuous."""
        before = self.present.error_record
        self.state, self.time, self.passed = state, time, time + same
        self.effective = inputs(time)
        self.rank_watch.follow(time, state)
        if (record := self.solver.error_record) is not None:
            self.state = record.followed(state, before, self.parameters, self.effective)
        self._row = None

    def sample(self) -> None:
        """Make the pending updates; accelerations and rates change with them.

        The inputs are those just before: discontinuities at the same instant come later.
        """
        if self.sampler.next_instant(self.sampled) <= self.passed:
            self.functions.parameters[:] = self.parameters
            self.formulation.load(self.present)
            self.functions.inputs[:] = self.effective
            if self.sampler.update(self.sampled, self.passed):
                self.state = self.formulation.consistent(self.present)
                self._row = None
        self.sampled = max(self.sampled, self.passed)

    def check_motion(self) -> None:
        """Refuse prescribed motion that is discontinuous.

        Raises
        ------
        SimulationError
            When it jumps.
        """
        if self.functions.driven:
            self.functions.parameters[:] = self.parameters
            self.formulation.load(self.present)
            self.functions.inputs[:] = self.inputs.over(self.passed)(self.time)
            check_motion(self.functions, self.time)

    def refresh(self) -> None:
        """Update accelerations and rates after a discontinuity of an input."""
        if not np.array_equal(inputs := self.inputs.over(self.passed)(self.time), self.effective):
            self.functions.parameters[:] = self.parameters
            self.functions.inputs[:] = inputs
            self.state = self.formulation.consistent(self.present)
            self.effective = inputs
            self._row = None

    def restart_run(self, parameters: Floats) -> None:
        """Accept other parameters before a run; its start is computed again."""
        self.parameters = parameters
        self.state = self._row = None

    def change(self, parameters: Floats) -> None:
        """Accept other parameters during a run; accelerations and rates change with them.

        Inconsistent parameters are tolerated until the next evaluation, because related ones are set one by one.
        """
        self.take_parameters(parameters)
        self._row = None
        if self.contradiction is None:
            self.functions.parameters[:] = parameters
            self.functions.inputs[:] = self.effective
            self.state = self.formulation.consistent(self.present)
        self.touch()

    def take_parameters(self, parameters: Floats) -> None:
        """Accept parameters of a saved state or for a start; check their consistency."""
        self.parameters = parameters
        self.contradiction = contradiction_of(self.functions.system, parameters)

    def check(self, time: float) -> None:
        """Check the preconditions of steps to a time in s.

        Raises
        ------
        InputError
            When instants of updates are lost in the resolution of time, or parameters contradict each other.
        """
        self.check_parameters()
        self.sampler.check(time)

    def check_parameters(self) -> None:
        """Refuse inconsistent parameters.

        Raises
        ------
        InputError
            When they do; it says how.
        """
        if self.contradiction is not None:
            raise InputError(self.contradiction)

    # -- what is there --------------------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """Whether the present readings are known."""
        return self._row is not None

    def forget_readings(self) -> None:
        """Invalidate the readings after inputs may have changed."""
        self._row = None

    def take_readings(self, row: Floats) -> None:
        """Accept the present readings from a runner."""
        self._row = row

    def readings(self) -> Floats:
        """Return the values of all varying variables after present discontinuities, shape (number of variables,).

        Raises
        ------
        InputError
            When parameters contradict each other.
        """
        if self._row is None:
            self.check_parameters()
            self.refresh()
            self._row = self.readings_before_events()
        return self._row

    def readings_before_events(self) -> Floats:
        """Return the readings with the inputs of the state, without changes."""
        if self._row is not None:
            return self._row
        self.functions.parameters[:] = self.parameters
        return readings(self.formulation, self.present, self.effective)

    @property
    def place(self) -> Place:
        """The current point of the run."""
        return Place(self.time, self.passed, self.sampled, self.state, self.effective, self.functions.discrete.copy())

    def go_to(self, place: Place) -> None:
        """Return to a point of a run with the same parameters."""
        self.time, self.passed, self.sampled = place.time, place.passed, place.sampled
        self.state, self.effective = place.state, place.effective
        self.functions.discrete[:] = place.discrete
        self.functions.parameters[:] = self.parameters
        self.rank_watch.forget()
        self._row = None
