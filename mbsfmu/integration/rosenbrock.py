"""Rosenbrock methods of high order with step control, for stiff systems."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from mbsfmu.base.errors import LoopsOpenError, SimulationError
from mbsfmu.base.times import SAME_TIME
from mbsfmu.formulations.explicit_form import ExplicitForm
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.formulations.native_needs import StepKind
from mbsfmu.integration.explicit import SMALLEST_SHARE, CountedRates, Progress, StageError
from mbsfmu.integration.rosenbrock_methods import METHODS, RODAS5P, RosenbrockMethod
from mbsfmu.integration.solver import AdaptiveSolver, Inputs, StepError
from mbsfmu.integration.stage_linearization import Linearization
from mbsfmu.integration.steps_past_stop import Ahead, room, without
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

CHOSEN = "rosenbrock"
"""Generic name, which means rodas5p, the most efficient method at all measured tolerances."""
SAFETY = 0.9
"""Safety factor of the step size."""
LEAST_FACTOR, MOST_FACTOR = 0.2, 8.0
"""How much smaller or larger than the last one a step may be."""
FIRST_CHANGE = 0.01
"""Relative change of y in the first step, and its relative error."""
STANDING = 1e-5
"""Magnitudes below this, relative to the tolerances, are not used for the first step …"""
FIRST_STEP = 1e-6
"""… which is then this in s."""
UNSOLVED = 0.1
"""Largest residual of the first stage times h γ, relative to the tolerances."""

SLIGHT = 1e-5
"""Change of all elements of y in a step, relative to their scales, below which the tolerances are smaller in
proportion: what moves little, or has just begun to, is as exact as what moves far …"""
LEAST_TOLERANCE = 1e-13
"""… down to this absolute tolerance, near round-off, and not in the shortest steps: where rates jump, errors decrease
in proportion to steps, as changes do."""


@dataclass(frozen=True)
class StageAttempt:
    """A trial step.

    Attributes
    ----------
    begin
        Where it begins.
    step, end
        Its size and end in s.
    increments
        uᵢ of all stages, each of shape (number of elements,).
    values
        y at the end.
    """

    begin: Linearization
    step: float
    end: float
    increments: list[Floats]
    values: Floats


@dataclass
class Rosenbrock(AdaptiveSolver):
    """Step-controlled Rosenbrock method; each step takes one Jacobian, one factorization and some evaluations.

    Steps end at discontinuities of inputs and at updates of discrete states, and pass over output times, whose values
    come from the interpolant. The error of integrals is not controlled, because nothing depends on them; with
    prescribed motion the work integral may be the only variable, and is controlled.

    Attributes
    ----------
    method
        Its coefficients.
    """

    names: ClassVar[tuple[str, ...]] = (*METHODS, CHOSEN)
    kind: ClassVar[StepKind] = StepKind.LINEARLY_IMPLICIT
    tolerance: ClassVar[float] = 1e-9
    """Default tolerance: errors of states accumulate over a run, and those of accelerations and reactions are several
    times as large. On the built-in models and the examples 1e-9 gives less than 1e-3 of the range of any variable, 1e-8
    up to 4e-3, 1e-6 6e-2.
    """

    method: RosenbrockMethod = RODAS5P

    @classmethod
    def of(cls, name: str, formulation: Formulation, step: float, **options: Any) -> Self:
        """Return the solver of a method's name; states have room for a step past the stop."""
        method = METHODS[cls.closest_match(name)]
        formulation.functions.ahead = np.zeros(room(len(formulation.explicit_scale), method.stages))
        return cls(formulation, step, method=method, **options)

    @classmethod
    def closest_match(cls, name: str) -> str:
        """Return the name of the method that a generic name means."""
        return RODAS5P.name if name == CHOSEN else name

    @property
    def name(self) -> str:
        """Name of the method."""
        return self.method.name

    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`, within steps from the method's interpolant."""
        # Counted from the beginning of the interval: where time is late, short steps would be lost in its resolution.
        origin, whole = float(times[0]), float(times[-1] - times[0])
        waiting = (times[1:] - origin).tolist()
        elapsed, progress = 0.0, Progress(self.name, origin, whole)
        while waiting:
            attempt, reached, state = self._advanced(state, inputs, origin, elapsed, progress, whole, waiting)
            self._count(attempt.begin.flow.form, state)
            elapsed = attempt.end
            if self.step_ends is not None:
                self.step_ends.append(origin + elapsed)
            del waiting[: len(reached)]
            yield from reached
            if waiting and waiting[0] == elapsed:  # the state to go on from, where that is one that was asked for
                del waiting[0]
                yield state

    def advance_past(self, state: State, begin: float, end: float, horizon: float, inputs: Inputs) -> State:
        """Return the state at an end; the last step may pass it, and is then stored."""
        origin, elapsed = begin, 0.0
        if (ahead := Ahead.of(state, self.method.stages)) is not None:
            target = end - ahead.origin
            try:
                moved = self._along(ahead, state, begin - ahead.origin, target, inputs)
            except StageError:  # the solution has not converged: the run continues from the present state
                state = without(state)
            else:
                if target <= ahead.end:
                    return moved
                origin, elapsed, state = ahead.origin, ahead.end, moved
        target, whole = end - origin, horizon - origin
        progress = Progress(self.name, origin, whole)
        while elapsed < target:
            attempt, reached, following = self._advanced(state, inputs, origin, elapsed, progress, whole, [target])
            if reached:
                step, suggested = attempt.step, float(following.suggested_step[0])
                ends = attempt.begin.start, attempt.values
                passing = Ahead(origin, elapsed, attempt.end, step, suggested, *ends, attempt.increments)
                return passing.kept_by(replace(reached[0], ahead=state.ahead))
            self._count(attempt.begin.flow.form, following)
            elapsed, state = attempt.end, following
        return state

    def _along(self, ahead: Ahead, state: State, here: float, target: float, inputs: Inputs) -> State:
        """Return the state at a target within a step past the stop, or at its end; times count from its origin."""
        form = self.formulation.explicit_form(state)
        flow = CountedRates(form, inputs, ahead.origin)
        if target < ahead.end:
            share = (target - ahead.begin) / ahead.step
            values = self.method.between(share, ahead.start, ahead.values, ahead.increments)
            moved = flow.state_at(target, values, target - here)
            return replace(moved, suggested_step=state.suggested_step, ahead=state.ahead)
        moved = flow.accept(ahead.end, ahead.values, ahead.end - here)
        self._count(form, moved)
        return replace(moved, suggested_step=np.array([ahead.following]), ahead=without(state).ahead)

    def _count(self, form: ExplicitForm, end: State) -> None:
        """Count a change of coordinates at the end of a step, for a step past the stop when the run reaches its end."""
        self.statistics.repartitions += not form.lasts(end)

    def _advanced(
        self,
        state: State,
        inputs: Inputs,
        origin: float,
        elapsed: float,
        progress: Progress,
        whole: float,
        waiting: list[float],
    ) -> tuple[StageAttempt, list[State], State]:
        """Advance by one step from a state, times relative to an origin in s; see `_step`."""
        form = self.formulation.explicit_form(state)
        flow = CountedRates(form, inputs, origin)
        try:
            begin = Linearization(flow, elapsed, inputs.slopes(origin + elapsed))
            made = self._step(begin, whole, float(state.suggested_step[0]), waiting, progress)
        except StageError as error:
            raise StepError(f"{self.name} fails at t = {origin + elapsed:.9g} s: {error}", state) from None
        except LoopsOpenError:
            raise
        except SimulationError as error:
            raise StepError(str(error), state) from None
        finally:
            self.statistics.rhs_evaluations += flow.evaluations
        self.statistics.steps += 1
        return made

    def _step(
        self, begin: Linearization, whole: float, suggested: float, waiting: list[float], progress: Progress
    ) -> tuple[StageAttempt, list[State], State]:
        """Return an accepted step, the output states within it, and the state at its end."""
        suggested, most = suggested or self._first_step(begin, whole), MOST_FACTOR
        while True:
            progress.count(begin.time)
            last = begin.time + suggested * (1.0 + SAME_TIME) >= whole
            step, end = (whole - begin.time, whole) if last else (suggested, begin.time + suggested)
            reason, factor = "", LEAST_FACTOR
            try:
                attempt = self._attempt(begin, step, end)
                error = self._size(begin, attempt.increments[-1], attempt.values)
                if step * LEAST_FACTOR >= SMALLEST_SHARE * whole:
                    error /= self._slightness(begin, attempt.values)
                factor = self._factor(error)
                if error <= 1.0:
                    reached = [
                        replace(inside, suggested_step=np.array([suggested]))
                        for inside in self._inside(attempt, waiting)
                    ]
                    state = begin.flow.accept(end, attempt.values, step)
                    following = min(factor, most) * step
                    # A step shortened by the end of the interval gives no information on the next step size.
                    following = max(following, suggested) if last else following
                    return attempt, reached, replace(state, suggested_step=np.array([following]))
            except StageError as failure:
                reason, factor = f": {failure}", LEAST_FACTOR
                progress.refuse(failure)
            self.statistics.retries += 1
            suggested, most = step * min(factor, 1.0), 1.0
            if not suggested >= SMALLEST_SHARE * whole:
                time = begin.flow.origin + begin.time
                raise SimulationError(f"the step of {self.name} at t = {time:.9g} s fails however small it is{reason}")

    def _attempt(self, begin: Linearization, step: float, end: float) -> StageAttempt:
        method = self.method
        begin.factorize(step * method.diagonal)
        values, increments = begin.start, list[Floats]()
        for stage in range(method.stages):
            values, right = begin.start.copy(), step * method.slopes[stage] * begin.drift
            for weight, coupling, increment in zip(
                method.couplings[stage], method.rate_couplings[stage], increments, strict=True
            ):
                values += weight * increment
                right += coupling / step * increment
            right += begin.flow(begin.time + method.nodes[stage] * step, values) if stage else begin.rates
            increments.append(begin.solve(right))
            if not stage:
                self._check(begin, right, increments[0], step * method.diagonal)
        return StageAttempt(begin, step, end, increments, values + increments[-1])

    def _check(self, begin: Linearization, right: Floats, increment: Floats, share: float) -> None:
        """Check the residual of the first stage, if the matrix is not pivoted.

        Raises
        ------
        StageError
            When it is not.
        """
        missing = begin.missing(right, increment)
        if missing is not None and not self._size(begin, share * missing, begin.start, begin.controlled) <= UNSOLVED:
            raise StageError("the equations of the step are not solved: pivots are small")

    def _slightness(self, begin: Linearization, end: Floats) -> float:
        """Return the fraction of the tolerances that is allowed in a step, by the change of y in it."""
        count = self._watched(begin)
        scales = SLIGHT * self.formulation.explicit_scale[:count]
        change = float(np.max(np.abs(end - begin.start)[:count] / scales, initial=0.0))
        return min(1.0, max(LEAST_TOLERANCE / self.absolute_tolerance, change))

    def _watched(self, begin: Linearization) -> int:
        """Return the number of elements of y whose error is controlled, mostly without integrals."""
        return begin.start.size if self.formulation.functions.driven else begin.controlled

    def _size(self, begin: Linearization, difference: Floats, end: Floats, count: int | None = None) -> float:
        """Return the root mean square of the first elements of a difference relative to the tolerances."""
        count = self._watched(begin) if count is None else count
        largest = np.maximum(np.abs(begin.start), np.abs(end))
        scales = self.absolute_tolerance * self.formulation.explicit_scale + self.relative_tolerance * largest
        shares = difference[:count] / scales[:count]
        size = float(np.sqrt(np.sum(shares**2) / max(count, 1)))
        return size if np.isfinite(size) else np.inf

    def _factor(self, error: float) -> float:
        """Return the factor of the next step from the error of the present one."""
        if error == 0.0:
            return MOST_FACTOR
        return min(MOST_FACTOR, max(LEAST_FACTOR, SAFETY * error ** (-1.0 / self.method.order)))

    def _first_step(self, begin: Linearization, whole: float) -> float:
        """Return the initial step from the rates and their change [Hairer1993, sect. II.4]."""
        size, speed = (self._size(begin, values, begin.start) for values in (begin.start, begin.rates))
        # Rates in static equilibrium are round-off, and must not determine the step.
        step = min(whole, FIRST_STEP) if size < STANDING else whole
        if size >= STANDING and speed * step > FIRST_CHANGE * size:
            step = FIRST_CHANGE * size / speed
        try:
            later = begin.flow(begin.time + step, begin.start + step * begin.rates)
        except StageError:
            return step
        fastest = max(speed, self._size(begin, later - begin.rates, begin.start) / step)
        accurate = (FIRST_CHANGE / fastest) ** (1.0 / self.method.order) if fastest > 0.0 else whole
        return min(whole, 100.0 * step, accurate)

    def _inside(self, attempt: StageAttempt, waiting: list[float]) -> list[State]:
        """Return the states at output times within a step."""
        begin, states = attempt.begin, list[State]()
        for time in waiting:
            if time >= attempt.end:
                break
            elapsed = time - begin.time
            inside = self.method.between(elapsed / attempt.step, begin.start, attempt.values, attempt.increments)
            states.append(begin.flow.state_at(time, inside, elapsed))
        return states
