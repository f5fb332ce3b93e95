"""Explicit solvers of ordinary differential equations on the double-step form: SciPy's, and one of equal steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy.integrate import BDF, DOP853, LSODA, RK23, RK45, OdeSolver, Radau

from mbsfmu.errors import SimulationError
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.formulations.functions import Floats
from mbsfmu.formulations.partition import Partition, choose, reconsidered
from mbsfmu.formulations.state import State
from mbsfmu.simulation.solver import Inputs, Solver, substeps


@dataclass
class ExplicitForm:
    """The double-step equations as ẏ = f(t, y) with y = (z^i, ż^i, x, integrals).

    Attributes
    ----------
    formulation
        The double-step formulation.
    state
        Where it starts; its partition stays in use, its dependent coordinates are the first estimate.
    inputs
        Inputs over time.
    """

    formulation: DoubleStep
    state: State
    inputs: Inputs

    def __post_init__(self) -> None:
        assert self.state.partition is not None
        self._partition = self.state.partition
        self._free = len(self._partition.independent)
        self.evaluations = 0

    @property
    def start(self) -> Floats:
        """Y at the start."""
        independent = self._partition.independent
        return np.concatenate(
            [
                self.state.coordinates[independent],
                self.state.velocities[independent],
                self.state.states,
                self.state.integrals,
            ]
        )

    def rates(self, time: float, values: Floats) -> Floats:
        """Return ẏ."""
        self.evaluations += 1
        functions, free = self.formulation.functions, self._free
        functions.states[:] = values[2 * free : 2 * free + len(functions.states)]
        functions.inputs[:] = self.inputs(time)
        velocities = values[free : 2 * free]
        # The estimate comes from the last step and not from the last evaluation: f is a function of t and y alone.
        accelerations, rates = self.formulation.explicit_rates(self.state, values[:free], velocities)
        return np.concatenate([velocities, accelerations, rates, functions.integral_rates()[0]])

    def state_at(self, time: float, values: Floats) -> State:
        """Return the whole state for a y; not counted as an evaluation."""
        rates = self.rates(time, values)
        self.evaluations -= 1
        functions, first = self.formulation.functions, 2 * self._free
        last = first + len(functions.states)
        return State(
            functions.coordinates.copy(),
            functions.velocities.copy(),
            functions.accelerations.copy(),
            functions.multipliers.copy(),
            values[first:last].copy(),
            rates[first:last].copy(),
            values[last:].copy(),
            rates[last:].copy(),
            self._partition,
        )

    def accept(self, time: float, values: Floats) -> Partition:
        """Take a step's end as the new estimate; return the choice of coordinates to go on with."""
        self.state = self.state_at(time, values)
        return reconsidered(self._partition, self.formulation.functions, self.formulation.equations.basis)

    def chosen_anew(self) -> Partition:
        """Return the best choice of coordinates where the last step ended; the present one if that is it."""
        self.formulation.load(self.state)
        other = choose(self.formulation.functions.closure()[1])
        return self._partition if other.same_as(self._partition) else other


@dataclass
class ExplicitSolver(Solver):
    """A variable-step solver of SciPy.

    Attributes
    ----------
    method
        A key of `METHODS`.
    relative_tolerance, absolute_tolerance
        Tolerances of the local error; the absolute one is scaled by nominal values of the states.
    """

    METHODS: ClassVar[dict[str, Callable[..., OdeSolver]]] = {
        "rk45": RK45,
        "rk23": RK23,
        "dop853": DOP853,
        "radau": Radau,
        "bdf": BDF,
        "lsoda": LSODA,
    }

    method: str = "rk45"
    relative_tolerance: float = 1e-6
    absolute_tolerance: float = 1e-6

    @property
    def name(self) -> str:
        """Name of the solver."""
        return self.method

    @property
    def scale(self) -> Floats:
        """What the absolute tolerance is multiplied with for each element of y."""
        functions = self.formulation.functions
        system = functions.system
        free = len(functions.coordinates) - len(functions.rows)
        nominal = [variable.nominal or 1.0 for variable in (*system.states, *system.integrals)]
        return np.concatenate([np.ones(2 * free), nominal])

    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`, from the solver's interpolant."""
        assert isinstance(self.formulation, DoubleStep)
        waiting = list(times[1:])
        begin = float(times[0])
        while waiting:
            form = ExplicitForm(self.formulation, state, inputs)
            solver = self._solver(form, begin, float(times[-1]))
            partition = state.partition
            while waiting and partition is state.partition:
                if not self._step(solver, form):
                    partition = form.chosen_anew()
                    break
                interpolant = solver.dense_output()
                reached = [time for time in waiting if time <= solver.t]
                del waiting[: len(reached)]
                states = [form.state_at(time, interpolant(time)) for time in reached]
                partition = form.accept(solver.t, solver.y)
                yield from (replace(each, partition=partition) for each in states)
            self.statistics.rhs_evaluations += form.evaluations
            self.statistics.repartitions += partition is not state.partition
            if waiting:
                begin = solver.t
                state = replace(form.state_at(solver.t, solver.y), partition=partition)

    def _step(self, solver: OdeSolver, form: ExplicitForm) -> bool:
        """Make one step; return False where it leaves what the present choice of coordinates can describe.

        Raises
        ------
        SimulationError
            When it fails with the best choice too.
        """
        try:
            message = solver.step()
        except SimulationError as error:
            if form.chosen_anew() is form.state.partition:
                raise SimulationError(f"{self.method} fails at t = {solver.t:.9g} s: {error}") from None
            self.statistics.retries += 1
            return False
        if solver.status == "failed":
            raise SimulationError(f"{self.method} fails at t = {solver.t:.9g} s: {message}")
        self.statistics.steps += 1
        return True

    def _solver(self, form: ExplicitForm, begin: float, end: float) -> OdeSolver:
        return self.METHODS[self.method](
            form.rates,
            begin,
            form.start,
            end,
            rtol=self.relative_tolerance,
            atol=self.absolute_tolerance * self.scale,
        )


@dataclass
class ClassicalRungeKutta(Solver):
    """The classical method of order four with equal internal steps, for targets where every step must cost the same."""

    @property
    def name(self) -> str:
        """Name of the solver."""
        return "rk4"

    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`; intervals longer than the internal step are divided evenly."""
        assert isinstance(self.formulation, DoubleStep)
        for begin, end in pairwise(times.tolist()):
            for time, step in substeps(begin, end, self.step):
                form = ExplicitForm(self.formulation, state, inputs)
                try:
                    values = self._end(form, time, step)
                    partition = form.accept(time + step, values)
                except SimulationError as error:
                    raise SimulationError(f"rk4 fails at t = {time:.9g} s: {error}") from None
                self.statistics.steps += 1
                self.statistics.rhs_evaluations += form.evaluations
                self.statistics.repartitions += partition is not state.partition
                state = replace(form.state, partition=partition)
            yield state

    def _end(self, form: ExplicitForm, time: float, step: float) -> Floats:
        start = form.start
        first = form.rates(time, start)
        second = form.rates(time + 0.5 * step, start + step * (0.5 * first))
        third = form.rates(time + 0.5 * step, start + step * (0.5 * second))
        fourth = form.rates(time + step, start + step * third)
        return start + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
