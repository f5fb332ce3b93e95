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

_LOGGER = logging.getLogger(__name__)


@dataclass
class ClassicalRungeKutta(Solver):
    """Classical method of order four with equal internal steps, for targets with constant cost per step.

    A step in which the equations cannot be evaluated is halved, up to eight times.

    With the rates at the end of a step as a fifth stage there is an embedded method of order three, whose distance to
    that of order four is h/6 (k₄ − k₅): weight moved from k₄ to k₅ preserves the conditions of order three, because
    both stages are at the end of the step and have Σ aᵢⱼ cⱼ = 1/2 [Hairer1993, sect. II.1]. It needs no further
    evaluation; `embedded_distance` is its sum over the steps.
    """

    names: ClassVar[tuple[str, ...]] = ("rk4",)
    order: ClassVar[int] = 4

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
        flow = CountedRates(form, inputs)
        try:
            values, fourth = _end(flow, time, step)
            state = flow.accept(time + step, values, step)
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
        self.statistics.embedded_distance += self._estimate(values, step / 6.0 * (fourth - form.end_rates))
        return state

    def _estimate(self, values: Floats, difference: Floats) -> float:
        """Return the largest relative difference, without integrals."""
        count = len(values) - len(self.formulation.functions.integrals)
        magnitudes = np.maximum(np.abs(values), self.formulation.explicit_scale)
        return float(np.max(np.abs(difference[:count]) / magnitudes[:count], initial=0.0))


def _end(flow: CountedRates, time: float, step: float) -> tuple[Floats, Floats]:
    """Return y at the end of a step, and the fourth stage."""
    start = flow.form.start
    first = flow(time, start)
    second = flow(time + 0.5 * step, start + step * (0.5 * first))
    third = flow(time + 0.5 * step, start + step * (0.5 * second))
    fourth = flow(time + step, start + step * third)
    return start + step / 6.0 * (first + 2.0 * second + 2.0 * third + fourth), fourth
