"""Explicit solvers of ordinary differential equations: SciPy's, and one of equal steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from mbsfmu.errors import SimulationError
from mbsfmu.formulations.explicit_form import ExplicitForm
from mbsfmu.formulations.functions import Floats
from mbsfmu.formulations.state import State
from mbsfmu.simulation.solver import AdaptiveSolver, Inputs, Solver, substeps

if TYPE_CHECKING:
    from scipy.integrate import OdeSolver


class CountedRates:
    """The right-hand side with inputs over time; counts how often it is evaluated."""

    def __init__(self, form: ExplicitForm, inputs: Inputs) -> None:
        self.form = form
        self.inputs = inputs
        self.evaluations = 0

    def __call__(self, time: float, values: Floats) -> Floats:
        """Return ẏ."""
        self.evaluations += 1
        return self.form.rates(values, self.inputs(time))

    def state_at(self, time: float, values: Floats) -> State:
        """Return the whole state; not counted as an evaluation."""
        return self.form.state_at(values, self.inputs(time))

    def accept(self, time: float, values: Floats) -> State:
        """Take a step's end; return the state to go on from."""
        return self.form.accept(values, self.inputs(time))


@dataclass
class ExplicitSolver(AdaptiveSolver):
    """A variable-step solver of SciPy.

    Attributes
    ----------
    method
        A key of `METHODS`.
    """

    METHODS: ClassVar[dict[str, str]] = {
        "rk45": "RK45",
        "rk23": "RK23",
        "dop853": "DOP853",
        "radau": "Radau",
        "bdf": "BDF",
        "lsoda": "LSODA",
    }
    """Names of SciPy's classes by ours."""

    method: str = "rk45"

    @property
    def name(self) -> str:
        """Name of the solver."""
        return self.method

    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`, from the solver's interpolant."""
        waiting = list(times[1:])
        begin = float(times[0])
        while waiting:
            form = self.formulation.explicit_form(state)
            flow = CountedRates(form, inputs)
            solver = self._solver(flow, begin, float(times[-1]))
            lasts = True
            while waiting and lasts:
                anew = self._step(solver, form)
                if anew is not None:
                    state, lasts = anew, False
                    break
                interpolant = solver.dense_output()
                reached = [time for time in waiting if time <= solver.t]
                del waiting[: len(reached)]
                states = [flow.state_at(time, interpolant(time)) for time in reached]
                state = flow.accept(solver.t, solver.y)
                lasts = form.lasts(state)
                if form.corrects and lasts and waiting:
                    self._go_on_from(solver, flow)
                yield from states[:-1]
                if states:  # the state to go on from, where that is one that was asked for
                    yield state if reached[-1] == solver.t else states[-1]
            self.statistics.rhs_evaluations += flow.evaluations
            self.statistics.repartitions += not lasts
            begin = solver.t

    def _step(self, solver: OdeSolver, form: ExplicitForm) -> State | None:
        """Make one step; where it leaves what the present form can describe, return where to go on from.

        Raises
        ------
        SimulationError
            When it fails in the best description too.
        """
        try:
            message = solver.step()
        except SimulationError as error:
            anew = form.described_anew()
            if anew is None:
                raise SimulationError(f"{self.method} fails at t = {solver.t:.9g} s: {error}") from None
            self.statistics.retries += 1
            return anew
        if solver.status == "failed":
            raise SimulationError(f"{self.method} fails at t = {solver.t:.9g} s: {message}")
        self.statistics.steps += 1
        return None

    def _go_on_from(self, solver: OdeSolver, flow: CountedRates) -> None:
        """Let a Runge–Kutta method, which remembers nothing but y and ẏ, go on from where the last step was moved."""
        method: Any = solver  # SciPy's types do not tell that these methods keep ẏ
        method.y = flow.form.start
        method.f = flow(solver.t, method.y)

    def _solver(self, flow: CountedRates, begin: float, end: float) -> OdeSolver:
        import scipy.integrate  # noqa: PLC0415 - takes long to load, and the trapezoidal rule does without

        make: Any = getattr(scipy.integrate, self.METHODS[self.method])
        return make(
            flow,
            begin,
            flow.form.start,
            end,
            rtol=self.relative_tolerance,
            atol=self.absolute_tolerance * self.formulation.explicit_scale,
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
        for begin, end in pairwise(times.tolist()):
            for time, step in substeps(begin, end, self.step):
                form = self.formulation.explicit_form(state)
                flow = CountedRates(form, inputs)
                try:
                    state = flow.accept(time + step, _end(flow, time, step))
                except SimulationError as error:
                    raise SimulationError(f"rk4 fails at t = {time:.9g} s: {error}") from None
                self.statistics.steps += 1
                self.statistics.rhs_evaluations += flow.evaluations
                self.statistics.repartitions += not form.lasts(state)
            yield state


def _end(flow: CountedRates, time: float, step: float) -> Floats:
    start = flow.form.start
    first = flow(time, start)
    second = flow(time + 0.5 * step, start + step * (0.5 * first))
    third = flow(time + 0.5 * step, start + step * (0.5 * second))
    fourth = flow(time + step, start + step * third)
    return start + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth)
