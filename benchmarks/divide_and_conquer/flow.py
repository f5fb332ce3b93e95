"""A mechanism as ẏ = f(y) with y = (z, w), for solvers of one's own; what counts is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import OdeSolver

import mbsfmu
from mbsfmu.formulations.first_order import FirstOrderFormulation
from mbsfmu.system_model.coupled_model import CoupledModel

Floats = NDArray[np.float64]
AS_PUBLISHED: dict[str, dict[str, Any]] = {
    "dca": {"stabilisation": 0.0},
    "hdca": {"stabilisation": 0.0, "restart_momenta": False},
}


class Flow:
    """The right-hand side of a built-in mechanism without the integrals that the toolkit adds for energies.

    Parameters
    ----------
    model
        The mechanism, or its name.
    formulation
        `dca` or `hdca`, the latter as published by default: momenta never start anew, loops are closed in velocities.
    options
        Other ones of the simulation.

    Attributes
    ----------
    model
        The mechanism.
    start
        Y at the start.
    evaluations
        How often the right-hand side was evaluated.
    """

    def __init__(self, model: CoupledModel | str, formulation: str, **options: Any) -> None:
        self.model = model = mbsfmu.models.built_in(model) if isinstance(model, str) else model
        given = {**AS_PUBLISHED[formulation], **options}
        self.simulation = model.simulation(formulation=formulation, solver="rk45", **given)
        self.simulation.initialize()
        chosen = self.simulation.formulation
        assert isinstance(chosen, FirstOrderFormulation)
        self.formulation, self.functions = chosen, chosen.functions
        self._size = len(self.functions.coordinates)
        self.start = np.concatenate([self.functions.coordinates, self.moving])
        names = [variable.name for variable in self.functions.system.outputs]
        self._drift = names.index("energy.drift")
        state = chosen.explicit_form(self.simulation._started()).state
        self.functions.integrals[:] = state.integrals
        self.evaluations = 0

    @property
    def moving(self) -> Floats:
        """What moves beside the coordinates: velocities or momenta, as the functions have them."""
        return getattr(self.functions, self.formulation.moving)

    def __call__(self, time: float, values: Floats) -> Floats:  # noqa: ARG002 - autonomous
        """Return ẏ."""
        self.evaluations += 1
        return self.rates(values).copy()

    def rates(self, values: Floats) -> Floats:
        """Return ẏ without counting; the array is overwritten by the next call."""
        self._load(values)
        return self.formulation.explicit()[0][: 2 * self._size]

    def _load(self, values: Floats) -> None:
        self.functions.coordinates[:] = values[: self._size]
        self.moving[:] = values[self._size :]

    def errors(self, values: Floats) -> tuple[float, float, float]:
        """Return the energy error in J and the violation of the loops in their positions and velocities."""
        self._load(values)
        self.formulation.motion()
        outputs, violation = self.functions.outputs()
        return float(outputs[self._drift]), float(violation[0]), float(violation[1])


@dataclass
class Run:
    """What an integration gave.

    Attributes
    ----------
    evaluations, steps
        Of the right-hand side; accepted steps.
    times, values
        On the grid asked for, or at the end alone.
    """

    evaluations: int
    steps: int
    times: Floats
    values: list[Floats] = field(default_factory=list)


def integrate(flow: Flow, method: Callable[..., OdeSolver], tolerance: float, times: Floats) -> Run:
    """Run a solver of SciPy's interface over a grid of times that starts at 0.

    Raises
    ------
    RuntimeError
        When it fails.
    """
    flow.evaluations = 0
    solver = method(flow, 0.0, flow.start, float(times[-1]), rtol=tolerance, atol=tolerance)
    values, steps, waiting = [flow.start], 0, 1
    while solver.status == "running":
        message = solver.step()
        if solver.status == "failed":
            raise RuntimeError(f"fails at t = {solver.t:.6g} s: {message}")
        steps += 1
        interpolant = solver.dense_output() if times[waiting] <= solver.t else None
        while interpolant is not None and waiting < len(times) and times[waiting] <= solver.t:
            values.append(interpolant(times[waiting]))
            waiting += 1
    return Run(flow.evaluations, steps, times, values)
