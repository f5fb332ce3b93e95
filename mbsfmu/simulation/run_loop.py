"""The run loop: current time and state, discontinuities, updates, change points; runners with their recording.

Sample times of discrete states, and their updates.

The sample times are offset + k · sample_time, k = 0, 1, …, without accumulation: they do not drift, and do not depend
on the steps or the start of a run. Native FMUs have the same, to the last bit (`runtime/core/sampling.c`).
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.times import RESOLVED_STEP, resolution, tolerance
from mbsfmu.equations.linear import Floats, pivot_columns, pivots
from mbsfmu.formulations.formulation import StepKind
from mbsfmu.initialization.initialization import Start, check_limits, check_motion
from mbsfmu.integration.solver import MOST_AHEAD, Inputs, Solver, StepError, looks_ahead
from mbsfmu.simulation.input_values import InputValues
from mbsfmu.simulation.variable_table import NO_EVENT, readings
from mbsfmu.stepping.adaptive import NOT_SMOOTH
from mbsfmu.stepping.state import State
from mbsfmu.systems.checks import contradiction_of
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import Sampling, starts

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


class Sampler:
    """Updates the discrete states of a system.

    Parameters
    ----------
    functions
        Functions of the system, whose discrete states it changes.

    Attributes
    ----------
    shortest
        Shortest sample time in s; infinite where nothing is sampled.
    """

    def __init__(self, functions: SystemFunctions) -> None:
        self._functions = functions
        self._samplings: Sequence[Sampling] = functions.system.samplings
        self.shortest = min((each.sample_time for each in self._samplings), default=math.inf)

    def next_instant(self, passed: float) -> float:
        """Return the first sample time after a time in s; infinite without sampled blocks."""
        nexts = (each.offset + (_count(each, passed) + 1.0) * each.sample_time for each in self._samplings)
        return min(nexts, default=math.inf)

    def check(self, time: float) -> None:
        """Check that sample times are distinct at a time in s.

        Raises
        ------
        InputError
            When they are lost in the resolution of time.
        """
        least = RESOLVED_STEP * resolution(time)
        if self.shortest < least:
            raise InputError(
                f"the sample time of {self.shortest:g} s is lost in the resolution of time at t = {time:g} s; it must "
                f"be at least {least:.3g} s there"
            )

    def update(self, passed: float, now: float) -> bool:
        """Make all updates with sample times in (passed, now] in s; return whether discrete states have changed.

        The functions hold the state, parameters and inputs.

        Raises
        ------
        SimulationError
            When an update is not finite; the discrete states are as they were then.
        """
        discrete = self._functions.discrete
        before = discrete.copy()
        for each in self._samplings:
            if _count(each, now) > _count(each, passed):
                own = slice(each.first, each.first + each.count)
                discrete[own] = self._functions.updates()[0][own]
                if not np.isfinite(discrete[own]).all():
                    discrete[:] = before
                    raise SimulationError(f"{each.owner}: the update at t = {now:.9g} s is not finite{each.reason}")
        return not np.array_equal(before, discrete)


def _count(sampling: Sampling, time: float) -> float:
    """Return the number of the last sample time up to a time in s; −1 before the first one."""
    return max(math.floor((time - sampling.offset) / sampling.sample_time), -1)


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


_PROGRESS_INTERVAL = 100  # outputs, by the interpreter


class Recording:
    """Recording of a run from output to output.

    Parameters
    ----------
    times
        Where the run is at first, and the outputs, ascending, in s; shape (k,), two at least.
    columns
        Numbers in a row; 0 where none are recorded.
    progress
        Called with the share that is done.

    Attributes
    ----------
    times
        As given.
    rows
        The first is given, the others are written as outputs are reached; shape (k, columns). None where none are.
    done
        How many of the times have been reached.
    """

    def __init__(self, times: Floats, columns: int = 0, progress: Callable[[float], None] | None = None) -> None:
        self.times = times
        self.rows = np.empty((len(times), columns)) if columns else None
        self.done = 1
        self._progress = progress
        self._reported = 0

    def take_first(self, row: Floats) -> None:
        """Record the readings at the start."""
        assert self.rows is not None
        self.rows[0] = row

    @property
    def recorded(self) -> tuple[Floats, Floats]:
        """The times reached, shape (l,), and their rows, shape (l, columns)."""
        assert self.rows is not None
        return self.times[: self.done], self.rows[: self.done]

    def part(self, begin: int, end: int) -> Recording:
        """Return the recording from one of the times to another, by their indices; its rows are those of this one."""
        assert self.rows is not None
        progress, intervals = self._progress, len(self.times) - 1

        def tell(share: float) -> None:
            if progress is not None:
                progress((begin + share * (end - begin)) / intervals)

        part = Recording(self.times[begin : end + 1], progress=tell)
        part.rows = self.rows[begin : end + 1]
        return part

    def report_progress(self) -> None:
        """Report the completed fraction, which never decreases, even if a run is repeated."""
        self._reported = max(self._reported, self.done - 1)
        if self._progress is not None:
            self._progress(self._reported / (len(self.times) - 1))


class Runner(ABC):
    """Base of runners, which make the steps of runs.

    Attributes
    ----------
    interim_seconds
        Time on the clock in s that the last run spent in code that is not optimized, while other code is compiled.
    """

    interim_seconds: float = 0.0

    @abstractmethod
    def run(self, run_loop: RunLoop, recording: Recording) -> None:
        """Run from the present time of the run loop to the last time of a recording.

        Raises
        ------
        SimulationError
            When a step fails; the course is at the last output that was reached.
        KeyboardInterrupt
            When somebody ends it; the same.
        """


class Interpreter(Runner):
    """Runner in Python, by the run loop's solver."""

    def run(self, run_loop: RunLoop, recording: Recording) -> None:
        """Run from the present time of the run loop to the last time of a recording; errors as for every runner."""
        times = recording.times
        last = float(times[-1])
        same = run_loop.same(float(times[1] - times[0]), float(times[0]), last)
        while recording.done < len(times):
            run_loop.passed = run_loop.time + same
            run_loop.sample()
            try:
                self._go_on(run_loop, recording, run_loop.next_halt(same, last), same)
            except StepError as error:
                raise run_loop.rank_watch.explained(error) from None

    @staticmethod
    def _go_on(run_loop: RunLoop, recording: Recording, halt: float, same: float) -> None:
        """Make steps up to a halt; pending updates come before its readings."""
        times, done = recording.times, recording.done
        count = int(np.searchsorted(times, halt + same, side="right")) - done
        targets = times[done : done + count]
        if not count or targets[-1] < halt - same:
            targets = np.append(targets, halt)
        run_loop.check_motion()
        run_loop.refresh()
        inputs = run_loop.inputs.over(run_loop.passed)
        if recording.rows is None:
            end = float(targets[-1])
            horizon = run_loop.horizon(same, end, float(times[-1] - times[0])) if count else end
            states = [run_loop.solver.advance_past(run_loop.present, run_loop.time, end, horizon, inputs)]
        else:
            states = run_loop.solver.advance(run_loop.present, np.concatenate([[run_loop.time], targets]), inputs)
        for index, state in enumerate(states):
            run_loop.arrive(state, float(targets[index]), inputs, same)
            if index == len(targets) - 1:
                run_loop.sample()
            if index < count:
                if recording.rows is not None:
                    recording.rows[recording.done] = run_loop.readings()
                recording.done += 1
                if recording.done % _PROGRESS_INTERVAL == 0:
                    recording.report_progress()
