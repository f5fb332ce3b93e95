"""A run by the trapezoidal rule as data: the values at both ends of each step, in independent coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.times import counted
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.initialization.independent_coordinates import Partition
from mbsfmu.integration.implicit import SHORT
from mbsfmu.native.point_library import PointArrays, PointLibrary
from mbsfmu.rules.trapezoidal import Trapezoidal
from mbsfmu.simulation.runner import Recording
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import AnyFunction, Floats, TracedFunction

Indices = NDArray[np.intp]
CHUNK = 512
"""Points at which functions are evaluated in one call: enough to make the call cheap, few enough to fit in a cache."""
_CONSTANT = ("parameters", "references", "discrete", "loop_iterates", "active")
"""Parts that stay as they are in a run; guesses are only where iterations of algebraic loops begin."""
_REDUCING = ("basis", "lift")
"""R_z and G, which are found where a function first asks for them."""
_UNSOLVED = 1e-5
"""Share of its magnitude by which a state may miss the trapezoidal rule: Newton's iteration leaves 1e-7 or less."""


@dataclass(frozen=True)
class RunPoints:
    """A run from step to step. Each step begins at one point and ends at another; inputs jump between steps.

    Attributes
    ----------
    times
        Ends of the steps in s, the start first; shape (N + 1,).
    begins, ends
        Index of the point where each step begins and ends, shape (N,).
    partitions
        Choice of independent coordinates of each point.
    values
        Values at the points by the name of the part of the functions; shape (size, points), of matrices
        (points, rows, columns).
    """

    times: Floats
    begins: Indices
    ends: Indices
    partitions: tuple[Partition, ...]
    values: dict[str, Floats]

    @property
    def steps(self) -> Floats:
        """Sizes of the steps in s, shape (N,)."""
        return np.diff(self.times)


class RecordedRun:
    """Makes a run by the trapezoidal rule, and evaluates functions at its points.

    With w = (z^i, ż^i, x, integrals) and ẇ = F(w, u, p) a step of double-step is
    w_{n+1} = w_n + h/2 (F(w_n, u_n, p) + F(w_{n+1}, u_{n+1}, p)): positions, velocities and states follow the
    trapezoidal rule [Jaiswal2021, eqs. 33 and 34], and accelerations are those of the equations of motion.

    Parameters
    ----------
    simulation
        By `double-step` and the trapezoidal rule.
    stop
        End of the run in s.
    rows
        Which of what is computed is read, see `ReducedEquations.computed`.
    library
        Compiled code that evaluates the equations at the points; CasADi's interpreter by default.

    Attributes
    ----------
    simulation
        As given.
    freedom, size
        Number of independent coordinates, and of all that w has.
    points
        The points.
    rates
        F at the points, shape (size, points).
    read
        What is read at the points, shape (points, rows).
    arrays
        The points for compiled code, where this completes them.

    Raises
    ------
    InputError
        When the model has what cannot be differentiated along a run.
    SimulationError
        When the run fails, or a step was halved.
    """

    def __init__(
        self, simulation: Simulation, stop: float, rows: Sequence[int], library: PointLibrary | None = None
    ) -> None:
        self.simulation = simulation
        formulation = simulation.formulation
        assert isinstance(formulation, DoubleStep)
        assert isinstance(formulation.rule, Trapezoidal)
        self.equations = formulation.equations
        self.functions = functions = formulation.functions
        system = functions.system
        if system.discrete:
            raise InputError(
                f"{simulation.name} has sampled blocks or lines with a delay ({system.discrete[0].name}): runs with "
                "updates at instants are not differentiated; replace them by continuous blocks and lines"
            )
        self.freedom = formulation.freedom
        self.size = 2 * self.freedom + len(functions.states) + len(functions.integrals)
        nodes = self._nodes(stop)
        self._constant = {name: functions.values(name).copy() for name in _CONSTANT if name in functions.parts}
        self.points = self._points(nodes)
        self.read = self._complete(rows) if library is None else self.complete_in(library, rows)
        self._check()

    # -- the run --------------------------------------------------------------------------------------------

    def _nodes(self, stop: float) -> tuple[Floats, Floats, list[Partition], Floats, Floats]:
        """Return times, rows of (z, ż, x, integrals), choices of coordinates, and inputs where steps begin and end."""
        simulation = self.simulation
        run_loop = simulation.run_loop
        simulation.initialize()
        times, apart = self._times(stop)
        run_loop.stepped = True
        references, first = run_loop.present.references, run_loop.present.partition
        recording = Recording(times, len(simulation.continuous))
        recording.take_first(run_loop.readings())
        simulation.runner.run(run_loop, recording)
        rows, at_begin, at_end = self._motion(recording.recorded[1]), *self._inputs(times, apart, recording.recorded[1])
        assert first is not None
        partitions = [first] * len(times)
        if simulation.statistics.repartitions:
            partitions = self._partitions(times)
        if simulation.statistics.retries:
            raise SimulationError(
                f"Newton's iteration failed with steps of {simulation.step_size:g} s, and steps were halved: the run "
                "is differentiated only with equal steps; take smaller ones"
            )
        if not np.array_equal(references, run_loop.present.references):
            raise InputError(
                f"{simulation.name} has a joint that turns freely and far: its reference moves in the run, which is "
                "not differentiated; end the run before, or take another joint"
            )
        return times, rows, partitions, at_begin, at_end

    def _times(self, stop: float) -> tuple[Floats, Indices]:
        """Return the ends of steps, and which of them are events.

        They are every internal step, and where signals jump or bend.
        """
        simulation = self.simulation
        step = simulation.step_size
        if not (np.isfinite(stop) and stop >= step):
            raise InputError(f"the run ends at {stop:g} s; it must last a step of {step:g} s at least")
        times = counted(0.0, stop, step)
        signals = simulation.run_loop.inputs.signals.values()
        events = np.unique([event for signal in signals for event in signal.events if 0.0 < event < stop])
        near = np.abs(np.subtract.outer(events, times)).min(axis=1, initial=np.inf) < SHORT * step
        times = np.sort(np.concatenate([times, events[~near]]))
        nearest = [int(np.argmin(np.abs(times - event))) for event in events]
        return times, np.unique(np.array([0, *nearest, len(times) - 1], dtype=np.intp))

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

    def _partitions(self, times: Floats) -> list[Partition]:
        """Return the choices of coordinates with which a run goes on at times, by making it once more in steps."""
        simulation = self.simulation
        simulation.initialize()
        found = [simulation.run_loop.present.partition]
        for begin, end in pairwise(times.tolist()):
            simulation.step(begin, end - begin)
            found.append(simulation.run_loop.present.partition)
        return [each for each in found if each is not None]

    def _points(self, nodes: tuple[Floats, Floats, list[Partition], Floats, Floats]) -> RunPoints:
        """Return the points, with what the run has recorded there."""
        times, rows, partitions, at_begin, at_end = nodes
        count = len(times) - 1
        # Steps that begin at another point than the one where the step before ends, as something jumps.
        apart = np.zeros(count, dtype=bool)
        apart[1:] = (at_end[:-1] != at_begin[1:]).any(axis=1)
        choice, choices = partitions[0], [partitions[0]]
        for step in range(1, count):
            if partitions[step] is not choice and not partitions[step].same_as(choice):
                choice, apart[step] = partitions[step], True
            choices.append(choice)
        shifts = np.cumsum(apart)
        joined, ends = np.arange(count) + shifts, np.arange(1, count + 1) + shifts
        places, inputs = (
            np.zeros(count + 1 + shifts[-1], dtype=np.intp),
            np.empty((count + 1 + shifts[-1], at_end.shape[1])),
        )
        places[joined], places[ends] = np.arange(count), np.arange(1, count + 1)
        inputs[joined], inputs[ends] = at_begin, at_end
        chosen = [choices[0]] * len(places)
        for point, each in zip(ends.tolist(), choices, strict=True):
            chosen[point] = each
        for point, each in zip(joined[apart].tolist(), np.flatnonzero(apart).tolist(), strict=True):
            chosen[point] = choices[each]
        functions = self.functions
        n, k = len(functions.coordinates), len(functions.states)
        at_points = np.split(rows[places], [n, 2 * n, 2 * n + k], axis=1)
        names = ("coordinates", "velocities", "states", "integrals")
        values = {name: np.ascontiguousarray(part).T for name, part in zip(names, at_points, strict=True)}
        values["inputs"] = inputs.T
        return RunPoints(times, joined, ends, tuple(chosen), values)

    @cached_property
    def _groups(self) -> list[Indices]:
        """Points of each choice of coordinates."""
        groups: dict[int, list[int]] = {}
        for index, each in enumerate(self.points.partitions):
            groups.setdefault(id(each), []).append(index)
        return [np.array(group) for group in groups.values()]

    def complete_in(self, library: PointLibrary, rows: Sequence[int]) -> Floats:
        """Find accelerations, multipliers and rates in compiled code; return what is read, shape (points, rows)."""
        self.arrays = self._arrays()
        return library.complete(self.arrays, rows)

    def _arrays(self) -> PointArrays:
        """Return the arrays of compiled code, and add those that it completes."""
        points, functions = self.points, self.functions
        count, n = len(points.partitions), len(functions.coordinates)
        values, free = points.values, self.freedom
        sizes = {"independent_velocities": free, "independent_accelerations": free, "accelerations": n}
        for name, size in {**sizes, "multipliers": len(functions.rows)}.items():
            values[name] = np.empty((count, size)).T
        self.rates = np.empty((count, self.size)).T
        dependent = np.zeros((len(self._groups), n), dtype=np.intc)
        choices = np.empty(count, dtype=np.intc)
        for place, group in enumerate(self._groups):
            dependent[place, points.partitions[group[0]].dependent] = 1
            choices[group] = place
        constants = {name: self._constant.get(name, np.zeros(0)) for name in _CONSTANT}
        at_points = {name: np.ascontiguousarray(each.T) for name, each in values.items() if name not in _REDUCING}
        values.update({name: each.T for name, each in at_points.items()})  # compiled code writes into them
        return PointArrays({**constants, **at_points, "rates": self.rates.T}, dependent, choices)

    def _complete(self, rows: Sequence[int]) -> Floats:
        """Add independent velocities, accelerations and multipliers as the equations give them; return what is read."""
        values, points = self.points.values, self.points
        velocities = np.empty((self.freedom, len(points.partitions)))
        for group in self._groups:
            chosen = points.partitions[group[0]].independent
            velocities[:, group] = values["velocities"][chosen[:, None], group]
        values["independent_velocities"] = velocities
        self._accelerate()
        return self.evaluate(self.equations.read(rows))[0][:, :, 0]

    def _reduce(self) -> None:
        """Add R_z and G at the points."""
        values, points = self.points.values, self.points
        count, n, m = len(points.partitions), len(self.functions.coordinates), len(self.functions.rows)
        basis, lift = np.zeros((count, n, self.freedom)), np.zeros((count, n, m))
        jacobian = self.evaluate(self.functions.closure)[1]
        for here in self._groups:
            chosen = points.partitions[here[0]]
            dependent = jacobian[here][:, :, chosen.dependent]
            inverse = np.linalg.inv(dependent) if m == len(chosen.dependent) else np.linalg.pinv(dependent)
            basis[here[:, None], chosen.independent] = np.eye(self.freedom)
            basis[here[:, None], chosen.dependent] = -inverse @ jacobian[here][:, :, chosen.independent]
            lift[here[:, None], chosen.dependent] = inverse
        values["basis"], values["lift"] = basis, lift

    def _accelerate(self) -> None:
        """Add accelerations, multipliers and rates."""
        values, functions = self.points.values, self.functions
        mass, load = self.evaluate(self.equations.explicit)[:2]
        values["independent_accelerations"] = np.asarray(np.linalg.solve(mass, load)[:, :, 0].T, dtype=np.float64)
        for part, found in zip(self.equations.motion.into, self.evaluate(self.equations.motion), strict=True):
            values[part] = found[:, :, 0].T
        rates = [values["independent_velocities"], values["independent_accelerations"]]
        own = (functions.state_rates, functions.integral_rates)
        rates.extend(self.evaluate(each)[0][:, :, 0].T for each in own)
        self.rates = np.vstack(rates)

    def motion(self) -> Floats:
        """Return w = (z^i, ż^i, x, integrals) at the points, shape (size, points)."""
        values = self.points.values
        partitions = self.points.partitions
        chosen = np.array([each.independent for each in partitions], int).reshape(len(partitions), self.freedom).T
        coordinates = np.take_along_axis(values["coordinates"], chosen, axis=0)
        return np.vstack([coordinates, values["independent_velocities"], values["states"], values["integrals"]])

    def _check(self) -> None:
        """Refuse a run whose steps are not those of the trapezoidal rule with the equations evaluated here."""
        points, motion = self.points, self.motion()
        half = 0.5 * points.steps
        before, after = motion[:, points.begins], motion[:, points.ends]
        moved = half * (self.rates[:, points.begins] + self.rates[:, points.ends])
        off = np.abs(after - before - moved)
        nominal = [1.0] * (2 * self.freedom)
        nominal += [each.nominal or 1.0 for each in (*self.functions.system.states, *self.functions.system.integrals)]
        sizes = np.maximum(np.abs(motion).max(axis=1), nominal)
        shares = off / sizes[:, None]
        if not np.max(shares, initial=0.0) <= _UNSOLVED:
            row, step = np.unravel_index(int(np.argmax(shares)), shares.shape)
            raise SimulationError(
                f"the step that ends at t = {points.times[step + 1]:.6g} s misses the trapezoidal rule by "
                f"{shares[row, step]:.2g} of the magnitude: it cannot be differentiated; take smaller steps"
            )

    def of_states(self, motion: Floats) -> Floats:
        """Return the rows of w, independent at the first point, of those of (z, ż, x, integrals)."""
        n, first = len(self.functions.coordinates), self.points.partitions[0].independent
        return motion[[*first, *(n + first), *range(2 * n, len(motion))]]

    # -- functions at points --------------------------------------------------------------------------------

    def evaluate(
        self, function: AnyFunction, chosen: Sequence[int] | Indices | None = None, **given: Floats
    ) -> list[Floats]:
        """Return the results of a traced function at points, each of shape (points, rows, columns).

        Parameters
        ----------
        function
            A `TracedFunction` in unrolled code.
        chosen
            Indices of the points; all of them by default.
        given
            Values of further parts, shape (size, number of points).
        """
        assert isinstance(function, TracedFunction)
        traced = function.function
        places = np.arange(len(self.points.partitions)) if chosen is None else np.asarray(chosen, dtype=np.intp)
        results: list[list[Floats]] = [[] for _ in range(traced.n_out())]
        for first in range(0, len(places), CHUNK):
            part = slice(first, first + CHUNK)
            here = places[part]
            arguments = [self._argument(name, here, part, given) for name in traced.name_in()]
            found = traced.call(arguments) if arguments else traced.call([])
            for index, (kept, value) in enumerate(zip(results, found, strict=True)):
                rows, columns = traced.size_out(index)
                array = np.asarray(value.full())
                if array.shape[1] == columns and len(here) > 1:  # of functions of nothing that changes
                    array = np.tile(array, len(here))
                kept.append(array.reshape(rows, len(here), columns).transpose(1, 0, 2))
        return [np.concatenate(each) for each in results]

    def _argument(self, name: str, here: Indices, part: slice, given: dict[str, Floats]) -> ca.DM:
        if name in given:
            return ca.DM(np.ascontiguousarray(given[name][:, part]))
        if name in _REDUCING and name not in self.points.values:
            self._reduce()
        if name not in self.points.values:
            return ca.DM(self._constant[name])
        values = self.points.values[name]
        if values.ndim == 2:
            return ca.DM(np.ascontiguousarray(values[:, here]))
        taken = values[here]
        return ca.DM(np.ascontiguousarray(taken.transpose(1, 0, 2).reshape(taken.shape[1], -1)))


def chunks(stop: int, start: int = 0) -> list[slice]:
    """Return slices of so many steps, few enough that their matrices fit into a cache."""
    return [slice(first, min(first + CHUNK, stop)) for first in range(start, stop, CHUNK)]
