"""A run as data: the values at both ends of each step, and the equations there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from mbsfmu.analysis.state_equations import Indices, PointFunctions, RunPoints, StateEquations, regular
from mbsfmu.analysis.step_equations import RosenbrockStepEquations, StepEquations, StepInputs, TrapezoidalStepEquations
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.times import check_grid, counted
from mbsfmu.equations.kinematics import NO_TURN
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.initialization.coordinates import Partition
from mbsfmu.integration.rosenbrock import Rosenbrock, RosenbrockMethod
from mbsfmu.rules.implicit_rules import Trapezoidal
from mbsfmu.simulation.run_loop import Recording, RunLoop
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats

_CONSTANT = ("parameters", "references", "discrete", "loop_iterates", "active")
"""Parts that stay as they are in a run; guesses are only where iterations of algebraic loops begin."""
_UNSOLVED = 1e-5
"""Share of its magnitude by which a state may miss the rule of a step: Newton's iteration leaves 1e-7 or less."""


class RecordedRun:
    """Makes a run, and has the equations of its steps.

    Parameters
    ----------
    simulation
        By double-step, and the trapezoidal rule or a Rosenbrock method.
    stop
        End of the run in s.
    rows
        Which of what is computed is read, see `SystemExpressions.computed`.
    reading_times
        Times in s at which steps of a Rosenbrock method are read besides where they end; output times by default.

    Attributes
    ----------
    simulation
        As given.
    points
        The points.
    equations
        Those of the steps: w, and derivatives.
    readings
        What is read along the run.

    Raises
    ------
    InputError
        When the model has what cannot be differentiated along a run.
    SimulationError
        When the run fails, or a step was halved.
    """

    @regular()
    def __init__(
        self,
        simulation: Simulation,
        stop: float,
        rows: Sequence[int],
        reading_times: Floats | None = None,
    ) -> None:
        self.simulation = simulation
        self._reading_times = reading_times
        formulation, solver = simulation.formulation, simulation.solver
        self._method = solver.method if isinstance(solver, Rosenbrock) else None
        assert isinstance(formulation, DoubleStep)
        assert self._method is not None or isinstance(formulation.rule, Trapezoidal)
        self.functions = functions = formulation.functions
        system = functions.system
        if system.discrete:
            raise InputError(
                f"{simulation.name} has sampled blocks or lines with a delay ({system.discrete[0].name}): runs with "
                "updates at instants are not differentiated; replace them by continuous blocks and lines"
            )
        if self._method is not None and len(functions.loop_iterates):
            raise InputError(
                f"{simulation.name} has an algebraic loop that is solved by iteration "
                f"({functions.system.loop_iterates[0].name}), and its second derivatives, which steps of "
                f"'{self._method.name}' take, are not known; take the trapezoidal rule"
            )
        nodes = self._nodes(stop)
        constants = {name: functions.values(name).copy() for name in _CONSTANT if name in functions.parts}
        self.points = self._points(nodes)
        at = PointFunctions(functions, self.points, constants)
        states = StateEquations(at, formulation.equations, formulation.freedom)
        self.equations: StepEquations = (
            TrapezoidalStepEquations(states)
            if self._method is None
            else RosenbrockStepEquations(states, self._method, self._inside_steps(self._method, stop))
        )
        self.readings = self.equations.complete(rows)
        self._check()

    @cached_property
    def changes(self) -> list[tuple[int, tuple[Floats, Floats]]]:
        """Intervals before which w becomes another one, with what becomes of changes; see `StateEquations.rechosen`."""
        points, equations = self.points, self.equations
        before, after = points.ends[:-1], points.begins[1:]
        return [
            (equations.first_interval(step + 1), equations.states.rechosen(int(before[step]), int(after[step])))
            for step in np.flatnonzero(points.chosen[before] != points.chosen[after]).tolist()
        ]

    # -- the run --------------------------------------------------------------------------------------------

    def _nodes(self, stop: float) -> tuple[Floats, Floats, list[Partition], Floats, Floats]:
        """Return times, rows of (z, ż, x, integrals), choices, and inputs where steps begin and end.

        Choices are those at the times, or that of the whole run.
        """
        simulation = self.simulation
        run_loop = simulation.run_loop
        simulation.initialize()
        times, apart = self._times(stop)
        run_loop.stepped = True
        first = run_loop.present
        recording = self._record(times)
        rows, at_begin, at_end = self._motion(recording.recorded[1]), *self._inputs(times, apart, recording.recorded[1])
        choices = self._stepped(times) if simulation.statistics.repartitions else [_choice(run_loop)]
        if simulation.statistics.retries and self._method is None:
            raise SimulationError(
                f"Newton's iteration failed with steps of {simulation.step_size:g} s, and steps were halved: the run "
                "is differentiated only with equal steps; take smaller ones"
            )
        start = np.tile(NO_TURN, simulation.functions.system.references)
        if not all(np.array_equal(start, state.references) for state in (first, run_loop.present)):
            raise InputError(
                f"{simulation.name} has a joint that turns freely and far: its reference moves in the run, which is "
                "not differentiated; end the run before, or take another joint"
            )
        return times, rows, choices, at_begin, at_end

    def _times(self, stop: float) -> tuple[Floats, Indices]:
        """Return the ends of steps, and which of them are events.

        They are every internal step, and where signals jump or bend.
        """
        simulation = self.simulation
        step = simulation.step_size
        if not (np.isfinite(stop) and stop >= step):
            raise InputError(f"the run ends at {stop:g} s; it must last a step of {step:g} s at least")
        if self._method is None:
            check_grid(0.0, stop, step, len(simulation.continuous))
        times = counted(0.0, stop, step) if self._method is None else self._step_ends(stop)
        run_loop = simulation.run_loop
        signals = run_loop.inputs.signals.values()
        events = np.unique([event for signal in signals for event in signal.events if 0.0 < event < stop])
        near = np.abs(np.subtract.outer(events, times)).min(axis=1, initial=np.inf) <= run_loop.same(step, 0.0, stop)
        times = np.sort(np.concatenate([times, events[~near]]))
        nearest = [int(np.argmin(np.abs(times - event))) for event in events]
        return times, np.unique(np.array([0, *nearest, len(times) - 1], dtype=np.intp))

    def _step_ends(self, stop: float) -> Floats:
        """Return the ends of the steps that a Rosenbrock method chooses, the start first."""
        simulation = self.simulation
        solver = simulation.solver
        solver.step_ends = ends = [0.0]
        try:
            self._record(np.array([0.0, stop]))
        finally:
            solver.step_ends = None
        simulation.initialize()
        return np.array(ends)

    def _inside_steps(self, method: RosenbrockMethod, stop: float) -> StepInputs:
        """Return the inputs inside steps, at the stages and at output times."""
        simulation, times, sizes = self.simulation, self.points.times, self.points.steps
        inputs, same = simulation.run_loop.inputs, simulation.run_loop.same(simulation.step_size, 0.0, stop)
        wanted = counted(0.0, stop, simulation.step_size) if self._reading_times is None else self._reading_times
        step = np.clip(np.searchsorted(times, wanted) - 1, 0, len(sizes) - 1)
        inside = (wanted > times[step] + same) & (wanted < times[step + 1] - same)
        wanted, step = wanted[inside], step[inside]
        events = np.unique([event for signal in inputs.signals.values() for event in signal.events])
        _, firsts, places = np.unique(
            np.searchsorted(events, times[:-1] + same), return_index=True, return_inverse=True
        )
        histories = [inputs.over(float(times[first]) + same) for first in firsts]
        of_step = [histories[place] for place in places.tolist()]
        begins: list[float] = times[:-1].tolist()
        stages = [
            [history(begin + node * size) for node in method.nodes]
            for history, begin, size in zip(of_step, begins, sizes.tolist(), strict=True)
        ]
        slopes = [history.slopes(begin) for history, begin in zip(of_step, begins, strict=True)]
        read = [of_step[place](time) for place, time in zip(step.tolist(), wanted.tolist(), strict=True)]
        count = len(self.functions.inputs)
        return StepInputs(
            np.array(stages).reshape(len(begins), method.stages, count),
            np.array(slopes).reshape(len(begins), count),
            np.array(read).reshape(len(read), count),
            (wanted - times[step]) / sizes[step],
            step,
        )

    def _inputs(self, times: Floats, apart: Indices, rows: Floats) -> tuple[Floats, Floats]:
        """Return the inputs where steps begin and where they end, each of shape (N, inputs).

        Parameters
        ----------
        times
            Ends of the steps.
        apart
            Which of them are events, where inputs before and after may differ; others are recorded.
        rows
            Recorded rows, which begin with the inputs.
        """
        run_loop = self.simulation.run_loop
        count = len(self.functions.inputs)
        at_begin, at_end = rows[:-1, :count].copy(), rows[1:, :count].copy()
        same = run_loop.same(self.simulation.step_size, 0.0, float(times[-1]))
        ends: list[float] = times.tolist()
        for place in apart.tolist():
            if place < len(times) - 1:
                at_begin[place] = run_loop.inputs.over(ends[place] + same)(ends[place])
            if place:
                at_end[place - 1] = run_loop.inputs.over(ends[place - 1] + same)(ends[place])
        return at_begin, at_end

    def _motion(self, rows: Floats) -> Floats:
        """Return (z, ż, x, integrals) of rows of readings; shape (times, sizes)."""
        functions = self.functions
        coordinates, states = len(functions.coordinates), len(functions.states)
        first = len(functions.inputs)
        moving = rows[:, first : first + 2 * coordinates]
        first += 3 * coordinates
        return np.hstack([moving, rows[:, first : first + states + len(functions.integrals)]])

    def _stepped(self, times: Floats) -> list[Partition]:
        """Return the choices with which a run goes on at times, by making it once more in steps."""
        simulation = self.simulation
        simulation.initialize()
        found = [_choice(simulation.run_loop)]
        for begin, end in pairwise(times.tolist()):
            self._record(np.array([begin, end]))
            found.append(_choice(simulation.run_loop))
        return found

    def _record(self, times: Floats) -> Recording:
        """Run from the first of some times, where the run loop is, to the last, with readings at all of them."""
        simulation = self.simulation
        run_loop = simulation.run_loop
        recording = Recording(times, len(simulation.continuous))
        recording.take_first(run_loop.readings())
        simulation.runner.run(run_loop, recording)
        return recording

    def _points(self, nodes: tuple[Floats, Floats, list[Partition], Floats, Floats]) -> RunPoints:
        """Return the points, with what the run has recorded there."""
        times, rows, partitions, at_begin, at_end = nodes
        count = len(times) - 1
        # Steps that begin at another point than the one where the step before ends, as something jumps.
        apart = np.zeros(count, dtype=bool)
        apart[1:] = (at_end[:-1] != at_begin[1:]).any(axis=1)
        choices, of_step = partitions[:1], np.zeros(count, dtype=np.intp)
        for step, choice in enumerate(partitions[:-1]):
            if choice is not choices[-1] and not choice.same_as(choices[-1]):
                choices.append(choice)
            of_step[step] = len(choices) - 1
        apart[1:] |= of_step[1:] != of_step[:-1]
        shifts = np.cumsum(apart)
        joined, ends = np.arange(count) + shifts, np.arange(1, count + 1) + shifts
        places, inputs = (
            np.zeros(count + 1 + shifts[-1], dtype=np.intp),
            np.empty((count + 1 + shifts[-1], at_end.shape[1])),
        )
        places[joined], places[ends] = np.arange(count), np.arange(1, count + 1)
        inputs[joined], inputs[ends] = at_begin, at_end
        chosen = np.zeros(len(places), dtype=np.intp)
        chosen[joined] = chosen[ends] = of_step
        functions = self.functions
        n, k = len(functions.coordinates), len(functions.states)
        at_points = np.split(rows[places], [n, 2 * n, 2 * n + k], axis=1)
        names = ("coordinates", "velocities", "states", "integrals")
        values = {name: np.ascontiguousarray(part).T for name, part in zip(names, at_points, strict=True)}
        values["inputs"] = inputs.T
        return RunPoints(times, joined, ends, choices, chosen, values)

    def _check(self) -> None:
        """Refuse a run whose steps are not those of its rule with the equations evaluated here."""
        off, sizes = self.equations.missed()
        shares = off / sizes[:, None]
        if not np.max(shares, initial=0.0) <= _UNSOLVED:
            row, step = np.unravel_index(int(np.argmax(shares)), shares.shape)
            raise SimulationError(
                f"the step that ends at t = {self.points.times[step + 1]:.6g} s misses its rule by "
                f"{shares[row, step]:.2g} of the magnitude: it cannot be differentiated; take smaller steps"
            )


def _choice(run_loop: RunLoop) -> Partition:
    partition = run_loop.present.partition
    assert partition is not None
    return partition
