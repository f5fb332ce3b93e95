"""Explicit methods: Runge–Kutta of equal steps, and variable-step solvers of SciPy."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from mbsfmu.base.errors import LoopsOpenError, SimulationError
from mbsfmu.formulations.formulation import ExplicitForm, Formulation
from mbsfmu.integration.solver import HALVINGS, AdaptiveSolver, Inputs, Solver, substeps
from mbsfmu.stepping.adaptive import SMALLEST_SHARE, Machine, Way, is_coming
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

if TYPE_CHECKING:
    from scipy.integrate import OdeSolver, ode


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


INACCURATE = 0.02
"""Estimated error relative to the magnitudes of the integrated variables above which a warning is given."""
SAME = 1e-6
"""Difference of rates, relative to the largest, and of steps, above which steps do not continue those before."""

_LOGGER = logging.getLogger(__name__)


@dataclass
class ClassicalRungeKutta(Solver):
    """Classical method of order four with equal internal steps, for targets with constant cost per step.

    A step in which the equations cannot be evaluated is halved, up to eight times.

    The error of a step, of order five, follows from three of them: with the changes Δ₁, Δ₂, Δ₃ of y and the rates
    f₀ … f₃ at the ends it is (11 Δ₁ + 38 Δ₂ + 11 Δ₃ − 3 h (f₀ + 9 f₁ + 9 f₂ + f₃)) / 60, which vanishes for polynomials
    of degree six. `embedded_distance` is the sum of its sizes. The first two steps, and those after a discontinuity,
    count by the distance to a method of order three until there is a third: h/6 (k₄ − k₅), where weight moved from k₄
    to the rates k₅ at the end preserves the conditions of order three [Hairer1993, sect. II.1].
    """

    names: ClassVar[tuple[str, ...]] = ("rk4",)
    order: ClassVar[int] = 4

    def __post_init__(self) -> None:
        self._size = len(self.formulation.explicit_scale) - len(self.formulation.functions.integrals)
        self.formulation.functions.error_history = np.zeros(4 * self._size + 3)

    @property
    def name(self) -> str:
        """Name of the solver."""
        return "rk4"

    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`; intervals longer than the internal step are divided evenly."""
        for begin, end in pairwise(times.tolist()):
            for time, step in substeps(begin, end, self.step):
                before = self.statistics.embedded_distance
                state = self._step(state, time, step, inputs, 0)
                if before <= INACCURATE < self.statistics.embedded_distance:
                    _LOGGER.warning(
                        "rk4 with steps of %.3g s is inaccurate: at t = %.6g s its error is estimated at %.2g of the "
                        "magnitudes; take smaller steps, or the solver rk45, which chooses them, or trapezoidal",
                        step,
                        time + step,
                        self.statistics.embedded_distance,
                    )
            yield state

    def _step(self, state: State, time: float, step: float, inputs: Inputs, halvings: int) -> State:
        form = self.formulation.explicit_form(state)
        flow, start = CountedRates(form, inputs), form.start
        try:
            values, first, fourth = _end(flow, start, time, step)
            state = flow.accept(time + step, values, step).with_error(
                state.error, state.error_history, state.error_record
            )
        except StageError as error:
            if halvings == HALVINGS:
                raise SimulationError(
                    f"the step of rk4 at t = {time:.9g} s fails even with {step:.3g} s: {error}"
                ) from None
            self.statistics.retries += 1
            middle = self._step(state, time, step / 2, inputs, halvings + 1)
            return self._step(middle, time + step / 2, step / 2, inputs, halvings + 1)
        finally:
            self.statistics.rhs_evaluations += flow.evaluations
        self.statistics.steps += 1
        self.statistics.repartitions += not form.lasts(state)
        error, history = self._estimate(state.error_history, step, start, values, (first, fourth, form.end_rates))
        self.statistics.embedded_distance += error
        return state.with_error(state.error, history, state.error_record)

    def _estimate(
        self, history: Floats, step: float, start: Floats, end: Floats, rates: tuple[Floats, Floats, Floats]
    ) -> tuple[float, Floats]:
        """Return the relative error of a step, without integrals, and the history; rates are k₁, k₄ and k₅.

        The history has f₃ of the last step, 11 (Δ − h/2 (f + f')) − 5/2 h (f' − f) of the step before and of the last
        one, Δ − h/2 (f + f') of the last one, its size, how many are known, and what the first two have counted.
        """
        size = self._size
        last, older, newer, middle, (step_before, count, counted) = np.split(
            history, [size, 2 * size, 3 * size, 4 * size]
        )
        first, fourth, fifth = (each[:size] for each in rates)
        apart, largest = np.max(np.abs(first - last), initial=0.0), np.max(np.abs(first), initial=0.0)
        if count == 0.0 or apart > SAME * largest or abs(step - step_before) > SAME * step:
            count = counted = 0.0
        bend = end[:size] - start[:size] - 0.5 * step * (first + fifth)
        turn = 2.5 * step * (fifth - first)
        scale = self.formulation.explicit_scale[:size]
        if count < 2.0:
            error = float(
                np.max(np.abs(step / 6.0 * (fourth - fifth)) / np.maximum(np.abs(end[:size]), scale), initial=0.0)
            )
            counted += error
        else:
            errors = (11.0 * bend + turn + 38.0 * middle + older) / 60.0
            error = float(np.max(np.abs(errors) / np.maximum(np.abs(start[:size]), scale), initial=0.0))
            if count == 2.0:
                error, counted = 3.0 * error - counted, 0.0
        return error, np.concatenate([fifth, newer, 11.0 * bend - turn, bend, [step, min(3.0, count + 1.0), counted]])


def _end(flow: CountedRates, start: Floats, time: float, step: float) -> tuple[Floats, Floats, Floats]:
    """Return y at the end of a step, and the first and the fourth stage."""
    first = flow(time, start)
    second = flow(time + 0.5 * step, start + step * (0.5 * first))
    third = flow(time + 0.5 * step, start + step * (0.5 * second))
    fourth = flow(time + step, start + step * third)
    return start + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth), first, fourth


_MOST_STEPS = 100_000  # between two output times; far above what a run that goes well needs
_STEPS_TAKEN = 10  # index of the number of steps in VODE's integer work array


@dataclass
class Adams(AdaptiveSolver):
    """Adams–Moulton of orders 1 to 12 with functional iteration, mostly two evaluations a step.

    The method has a memory: it restarts with order 1 where an input is discontinuous or the coordinate chart changes.
    An interval in which the equations cannot be evaluated is restarted with shorter steps, which remain short until the
    next discontinuity. Independent coordinates are chosen, and loops closed, at outputs only.
    """

    names: ClassVar[tuple[str, ...]] = ("adams",)
    remembering: ClassVar[tuple[str, ...]] = names

    @property
    def name(self) -> str:
        """Name of the solver."""
        return "adams"

    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`, from the method's interpolant."""
        # The method counts from the beginning of the interval: late times would cost it digits.
        origin = float(times[0])
        begin, last = 0.0, float(times[-1])

        def inside(time: float) -> Floats:
            """Return the inputs, constant outside the interval in which they are smooth."""
            return inputs(min(time, last))

        waiting = (times[1:] - origin).tolist()
        longest = 0.0  # in VODE's argument order
        while waiting:
            form = self.formulation.explicit_form(state)
            flow = CountedRates(form, inside, origin)
            solver = self._solver(flow, begin, longest)
            lasts = True
            try:
                while waiting and lasts:
                    state = flow.accept(waiting[0], self._reach(solver, flow, waiting[0]))
                    begin, lasts = waiting.pop(0), form.lasts(state)
                    yield state
            except StageError as error:
                self.statistics.retries += 1
                state = form.state
                longest = SHORTER * min(longest or waiting[0] - begin, waiting[0] - begin)
                if longest * _MOST_STEPS < waiting[0] - begin:
                    raise SimulationError(
                        f"adams fails after t = {origin + begin:.9g} s, however short its steps: {error} (it updates "
                        "the independent coordinates at outputs only; take more outputs, or another solver)"
                    ) from None
            inside_scipy: Any = solver  # which does not tell it otherwise
            self.statistics.steps += int(inside_scipy._integrator.iwork[_STEPS_TAKEN])
            self.statistics.rhs_evaluations += flow.evaluations
            self.statistics.repartitions += not lasts

    def _solver(self, flow: CountedRates, begin: float, longest: float) -> ode:
        from scipy.integrate import ode  # noqa: PLC0415 - takes long to load, and the trapezoidal rule does without

        options: dict[str, Any] = {
            "method": "adams",
            "rtol": self.relative_tolerance,
            "atol": self.absolute_tolerance * self.formulation.explicit_scale,
            "nsteps": _MOST_STEPS,
            "max_step": longest,
        }
        return ode(flow).set_integrator("vode", **options).set_initial_value(flow.form.start, begin)

    def _reach(self, solver: ode, flow: CountedRates, elapsed: float) -> Floats:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # VODE says in a warning why it gives up
                values: Floats = solver.integrate(elapsed)
        except (ValueError, SimulationError, UserWarning) as error:
            if flow.failure is not None:  # SciPy makes an error of its own of it
                raise flow.failure from None
            raise SimulationError(f"adams fails before t = {flow.origin + elapsed:.9g} s: {error}") from None
        return values
