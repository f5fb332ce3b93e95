"""Where a run is, and what jumps there: inputs, and discrete states that are updated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.times import tolerance
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
    """A point of a run that it can go back to.

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
    """A state at a time, and how it goes on where inputs jump and discrete states are updated.

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
        """Go back to start values, with no state."""
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
        """The state; it must have been begun."""
        assert self.state is not None
        return self.state

    def inputs_at_start(self, time: float) -> Floats:
        """Return what the inputs are where a run begins, at a time in s; what was set is so from then on."""
        self.inputs.since = time
        return self.inputs.over(time + self.same(math.inf, time))(time)

    # -- the beginning --------------------------------------------------------------------------------------

    def begin(self, time: float, start: Start) -> None:
        """Begin at a time in s with a start.

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
        state = self.formulation.consistent(self.formulation.prepared(state))
        if not (np.isfinite(state.accelerations).all() and np.isfinite(state.rates).all()):
            self._refuse_open_loops()
            raise InputError("the start is not finite; check the parameters")
        self._refuse_open_loops()
        self.state = state
        self.stepped = False
        self._row = None
        self.sample()
        self.rank_watch.begin(time, self.present)

    def _refuse_open_loops(self) -> None:
        try:
            self.formulation.check_loops()
        except SimulationError as error:
            raise InputError(f"at the start {error}") from None

    # -- going on -------------------------------------------------------------------------------------------

    def same(self, step: float, *times: float) -> float:
        """Return by how many s times may differ that are one, where steps in s are made."""
        return tolerance(min(self.solver.step, step, self.sampler.shortest), *times)

    def next_halt(self, same: float, last: float) -> float:
        """Return where to halt next: at a jump or bend of an input, at an update, or at the last time, in s."""
        event = self.inputs.next_event(self.passed, last - same, last)
        instant = self.sampler.next_instant(self.sampled)
        return instant if instant < min(event, last - same) else event

    def horizon(self, same: float, end: float, length: float) -> float:
        """Return how far steps may go past the end of one that was asked for, which has a length: to the next jump.

        All are in s. Where something was set since the step before they may not: who sets something in every step would
        have them made for nothing.
        """
        if not looks_ahead(self.present):
            return end
        halt = self.next_halt(same, end + MOST_AHEAD * length)
        return halt if halt > end + same else end

    def touch(self) -> None:
        """Take notice that something was set."""
        if self.state is not None:
            self.state = self.state.touched

    @property
    def next_event(self) -> float:
        """When an input jumps or bends next, or an update is made, in s; `NO_EVENT` where that is never."""
        return min(self.inputs.next_event(self.passed, NO_EVENT, NO_EVENT), self.sampler.next_instant(self.passed))

    def arrive(self, state: State, time: float, inputs: Inputs, same: float) -> None:
        """Take a state at a time in s, up to which inputs did not jump."""
        before = self.present.error_record
        self.state, self.time, self.passed = state, time, time + same
        self.effective = inputs(time)
        self.rank_watch.follow(time, state)
        if (record := self.solver.error_record) is not None:
            self.state = record.followed(state, before, self.parameters, self.effective)
        self._row = None

    def sample(self) -> None:
        """Make the updates whose instants have passed since the last ones; accelerations and rates jump with them.

        The inputs are those just before: what jumps at an instant has not jumped yet.
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
        """Refuse motion that is prescribed from now on and does not go on from where it is.

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
        """Where an input has jumped, let accelerations and rates jump too."""
        if not np.array_equal(inputs := self.inputs.over(self.passed)(self.time), self.effective):
            self.functions.parameters[:] = self.parameters
            self.functions.inputs[:] = inputs
            self.state = self.formulation.consistent(self.present)
            self.effective = inputs
            self._row = None

    def restart_run(self, parameters: Floats) -> None:
        """Take other parameters before a run; its start is to be found anew."""
        self.parameters = parameters
        self.state = self._row = None

    def change(self, parameters: Floats) -> None:
        """Take other parameters in the middle of a run; accelerations and rates jump with them.

        Where they contradict each other that waits until they do not: of two that belong together one is set first.
        """
        self.take_parameters(parameters)
        self._row = None
        if self.contradiction is None:
            self.functions.parameters[:] = parameters
            self.functions.inputs[:] = self.effective
            self.state = self.formulation.consistent(self.present)
        self.touch()

    def take_parameters(self, parameters: Floats) -> None:
        """Take parameters that a state was saved with, or will be found for; see whether they contradict each other."""
        self.parameters = parameters
        self.contradiction = contradiction_of(self.functions.system, parameters)

    def check(self, time: float) -> None:
        """Check what steps to a time in s need.

        Raises
        ------
        InputError
            When instants of updates are lost in the resolution of time, or parameters contradict each other.
        """
        self.check_parameters()
        self.sampler.check(time)

    def check_parameters(self) -> None:
        """Refuse parameters that contradict each other.

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
        """Whether the readings of now are known."""
        return self._row is not None

    def forget_readings(self) -> None:
        """Let readings be found anew, for inputs may have changed."""
        self._row = None

    def take_readings(self, row: Floats) -> None:
        """Take the readings of now from who has found them."""
        self._row = row

    def readings(self) -> Floats:
        """Return the values of all variables that change, after the jumps of now, shape (number of variables,).

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
        """Return them as they are with the inputs that the state is consistent with; nothing changes."""
        if self._row is not None:
            return self._row
        self.functions.parameters[:] = self.parameters
        return readings(self.formulation, self.present, self.effective)

    @property
    def place(self) -> Place:
        """Where it is."""
        return Place(self.time, self.passed, self.sampled, self.state, self.effective, self.functions.discrete.copy())

    def go_to(self, place: Place) -> None:
        """Go to a place of a run with the same parameters."""
        self.time, self.passed, self.sampled = place.time, place.passed, place.sampled
        self.state, self.effective = place.state, place.effective
        self.functions.discrete[:] = place.discrete
        self.functions.parameters[:] = self.parameters
        self.rank_watch.forget()
        self._row = None
