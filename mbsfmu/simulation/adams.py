"""The Adams method of variable step and order, predict-evaluate-correct-evaluate: SciPy's VODE."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mbsfmu.errors import SimulationError
from mbsfmu.formulations.functions import Floats
from mbsfmu.formulations.state import State
from mbsfmu.simulation.explicit import CountedRates
from mbsfmu.simulation.solver import AdaptiveSolver, Inputs

if TYPE_CHECKING:
    from scipy.integrate import ode

_MOST_STEPS = 100_000  # between two output times; far above what a run that goes well needs
_STEPS_TAKEN = 10  # where VODE's integer work array says how many steps it has taken


@dataclass
class Adams(AdaptiveSolver):
    """Adams–Moulton of orders 1 to 12 with functional iteration, mostly two evaluations a step.

    The method has a memory: where an input jumps or a description of the motion changes, it begins anew with order 1.
    """

    @property
    def name(self) -> str:
        """Name of the solver."""
        return "adams"

    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`, from the method's interpolant."""
        from scipy.integrate import ode  # noqa: PLC0415 - takes long to load, and the trapezoidal rule does without

        begin, last = float(times[0]), float(times[-1])

        def inside(time: float) -> Floats:
            """Return the inputs, held where the method looks beyond the interval, in which alone they are smooth."""
            return inputs(min(time, last))

        waiting = times[1:].tolist()
        while waiting:
            form = self.formulation.explicit_form(state)
            flow = CountedRates(form, inside)
            options: dict[str, Any] = {
                "method": "adams",
                "rtol": self.relative_tolerance,
                "atol": self.absolute_tolerance * self.formulation.explicit_scale,
                "nsteps": _MOST_STEPS,
            }
            solver = ode(flow).set_integrator("vode", **options)
            solver.set_initial_value(form.start, begin)
            lasts = True
            while waiting and lasts:
                begin = waiting.pop(0)
                state = flow.accept(begin, self._reach(solver, begin))
                lasts = form.lasts(state)
                yield state
            inside_scipy: Any = solver  # which does not tell it otherwise
            self.statistics.steps += int(inside_scipy._integrator.iwork[_STEPS_TAKEN])
            self.statistics.rhs_evaluations += flow.evaluations
            self.statistics.repartitions += not lasts

    def _reach(self, solver: ode, time: float) -> Floats:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # VODE says in a warning why it gives up
                values: Floats = solver.integrate(time)
        except (SimulationError, UserWarning) as error:
            raise SimulationError(f"adams fails before t = {time:.9g} s: {error}") from None
        return values
