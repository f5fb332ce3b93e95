"""Explicit variable-step solvers of SciPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from mbsfmu.base.errors import LoopsOpenError, SimulationError
from mbsfmu.formulations.formulation import ExplicitForm, Formulation
from mbsfmu.integration.solver import AdaptiveSolver, Inputs
from mbsfmu.stepping.adaptive import SMALLEST_SHARE, Machine, Way, is_coming
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

if TYPE_CHECKING:
    from scipy.integrate import OdeSolver

SHORTER = 0.25
"""Factor for the next step after one in which the equations cannot be evaluated."""
RK45_ORDER, RK45_STAGES, RK45_MOST_FACTOR = 5, 7, 10.0
"""Of the Dormand–Prince method in compiled code: order, stages, and SciPy's largest ratio of steps."""


class StageError(SimulationError):
    """The equations cannot be evaluated at a trial state; a shorter step may succeed."""


class Progress:
    """How far tries of steps come in an interval, by what `mbsfmu.stepping.adaptive` asks of a machine for it.

    Parameters
    ----------
    name
        Of the solver.
    origin
        Beginning of the interval in s, where its times count from.
    whole
        Length of the interval in s.
    """

    def __init__(self, name: str, origin: float, whole: float) -> None:
        self.SOLVER_NAME, self.refusal, self._way = name, "", Way(origin, whole)

    def refuse(self, reason: StageError) -> None:
        """Take notice that the equations could not be evaluated in the last try."""
        self._way.refused += 1.0
        self.refusal = str(reason)

    def count(self, elapsed: float) -> None:
        """Count a try from a time in s since the beginning.

        Raises
        ------
        SimulationError
            When so many tries have come to hardly anything.
        """
        self._way.elapsed = elapsed
        is_coming(cast("Machine", self), self._way)

    def fail(self, sentence: str, *values: object) -> None:
        """Raise the sentence."""
        raise SimulationError(sentence % values)


class CountedRates:
    """Right-hand side with inputs over time, with a counter of evaluations.

    Attributes
    ----------
    origin
        Time in s from which its times count; the inputs' count from zero.
    evaluations
        Their number.
    latest
        Time in s of the latest one.
    failure
        Why that could not be made; None where it could.
    """

    def __init__(self, form: ExplicitForm, inputs: Callable[[float], Floats], origin: float = 0.0) -> None:
        self.form = form
        self.inputs = inputs
        self.origin = origin
        self.evaluations = 0
        self.latest = 0.0
        self.failure: StageError | None = None

    def __call__(self, time: float, values: Floats) -> Floats:
        """Return ẏ and count the evaluation; errors as for `rates`."""
        self.evaluations += 1
        return self.rates(time, values)

    def rates(self, time: float, values: Floats) -> Floats:
        """Return ẏ without counting: at the start of a step it is known from the end of the previous one.

        Raises
        ------
        StageError
            When the equations cannot be evaluated there; also kept as `failure`, for VODE, which loses exceptions.
        """
        with self._at(time):
            rates = self.form.rates(values, self.inputs(self.origin + time))
            if not np.isfinite(rates).all():
                self.form.check_loops()
                raise SimulationError(f"the equations are not finite at t = {self.origin + time:.9g} s")
        return rates

    def state_at(self, time: float, values: Floats, step: float | None = None) -> State:
        """Return the complete state without counting; errors as for the rates.

        If the step in s since the last accepted state is given, the state must follow from that one continuously.
        """
        with self._at(time):
            state = self.form.state_at(values, self.inputs(self.origin + time))
            if step is not None and self.form.leaps(state, step):
                raise SimulationError("the loops would be closed in another way than before")
            return state

    def accept(self, time: float, values: Floats, step: float | None = None) -> State:
        """Accept the end of a step; return the state to continue from. Errors as for `state_at`."""
        state = self.state_at(time, values, step)
        with self._at(time):
            state = self.form.with_loops(state)
        try:
            return self.form.accept(state)
        except LoopsOpenError as error:
            raise error.at(self.origin + time) from None

    @contextmanager
    def _at(self, time: float) -> Iterator[None]:
        self.latest, self.failure = time, None
        try:
            yield
        except SimulationError as error:
            self.failure = StageError(str(error))
            raise self.failure from None


@dataclass
class ExplicitSolver(AdaptiveSolver):
    """Variable-step solver of SciPy.

    A step in which the equations cannot be evaluated is repeated with a shorter length.

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
    }
    """SciPy's classes by solver name."""
    names: ClassVar[tuple[str, ...]] = tuple(METHODS)
    remembering: ClassVar[tuple[str, ...]] = ("radau",)

    method: str = "rk45"

    @classmethod
    def of(cls, name: str, formulation: Formulation, step: float, **options: Any) -> Self:
        """Return the solver of a method's name."""
        return cls(formulation, step, method=name, **options)

    @property
    def name(self) -> str:
        """Name of the solver."""
        return self.method

    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`, from the solver's interpolant."""
        # Solvers count from the beginning of the interval: late times would cost them digits.
        origin = float(times[0])
        waiting = (times[1:] - origin).tolist()
        begin, end = 0.0, float(times[-1] - origin)
        smallest = SMALLEST_SHARE * (end - begin)
        first_step: float | None = None
        progress = Progress(self.method, origin, end)
        while waiting:
            form = self.formulation.explicit_form(state)
            flow = CountedRates(form, inputs, origin)
            try:
                solver = self._solver(flow, begin, end, first_step)
                first_step, lasts = None, True
                while waiting and lasts:
                    states = self._step(solver, flow, begin, waiting)
                    state = flow.accept(solver.t, solver.y, solver.t - begin)
                    begin, lasts = solver.t, form.lasts(state)
                    if begin < end:
                        progress.count(begin)
                    if form.corrects and lasts and begin < end:
                        self._go_on_from(solver, flow)
                    reached = waiting[: len(states)]
                    del waiting[: len(states)]
                    yield from states[:-1]
                    if states:  # the state to go on from, where that is one that was asked for
                        yield state if reached[-1] == begin else states[-1]
                if waiting and self.method not in self.remembering:
                    chosen: Any = solver  # SciPy's types do not tell that these methods keep the step to try next
                    first_step = min(chosen.h_abs, end - begin)
                self.statistics.repartitions += not lasts
            except StageError as error:
                progress.refuse(error)
                progress.count(begin)
                state, first_step = self._after_failure(flow, error, begin, smallest)
            finally:
                self.statistics.rhs_evaluations += flow.evaluations

    def _step(self, solver: OdeSolver, flow: CountedRates, begin: float, waiting: list[float]) -> list[State]:
        """Advance by one step; return the states at the output times within it."""
        message = solver.step()
        if solver.status == "failed":
            raise SimulationError(f"{self.method} fails at t = {flow.origin + solver.t:.9g} s: {message}")
        reached = [time for time in waiting if time <= solver.t]
        interpolant = solver.dense_output() if reached else None
        states = [flow.state_at(time, interpolant(time), time - begin) for time in reached] if interpolant else []
        self.statistics.steps += 1
        return states

    def _after_failure(
        self, flow: CountedRates, error: StageError, begin: float, smallest: float
    ) -> tuple[State, float | None]:
        """Return the state to continue from after a failed step, and the next trial step.

        Raises
        ------
        SimulationError
            When neither a shorter step nor another description of the motion is left.
        """
        self.statistics.retries += 1
        anew = flow.form.with_changed_chart()
        if anew is not None:
            self.statistics.repartitions += 1
            return anew, None
        shorter = SHORTER * (flow.latest - begin)
        if shorter < max(smallest, 10.0 * np.spacing(begin)):
            time = flow.origin + begin
            raise SimulationError(f"{self.method} fails at t = {time:.9g} s, however short the step: {error}")
        return flow.form.state, shorter

    def _go_on_from(self, solver: OdeSolver, flow: CountedRates) -> None:
        """Continue a Runge–Kutta method, which stores y and ẏ only, from the projected end of the last step."""
        method: Any = solver  # SciPy's types do not tell that these methods keep ẏ
        method.y = flow.form.start
        method.f = flow(solver.t, method.y)

    def _solver(self, flow: CountedRates, begin: float, end: float, first_step: float | None) -> OdeSolver:
        import scipy.integrate  # noqa: PLC0415 - takes long to load, and the trapezoidal rule does without

        make: Any = getattr(scipy.integrate, self.METHODS[self.method])
        return make(
            flow,
            begin,
            flow.form.start,
            end,
            first_step=first_step,
            rtol=self.relative_tolerance,
            atol=self.absolute_tolerance * self.formulation.explicit_scale,
        )
