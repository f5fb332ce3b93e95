"""Adams method of variable step and order (predict-evaluate-correct-evaluate): SciPy's VODE."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from mbsfmu.base.errors import SimulationError
from mbsfmu.integration.explicit import SHORTER, CountedRates, StageError
from mbsfmu.integration.solver import AdaptiveSolver, Inputs
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

if TYPE_CHECKING:
    from scipy.integrate import ode

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
