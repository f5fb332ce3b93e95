"""Classical Runge–Kutta method of order four with equal steps and an error warning."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.integration.explicit import CountedRates, StageError
from mbsfmu.integration.solver import HALVINGS, Inputs, Solver, substeps
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

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
