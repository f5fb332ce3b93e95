"""Convergence of the trapezoidal rule against a different method at tight tolerance."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import mbsfmu
from mbsfmu import CoupledModel, LinearSignal

STEPS = (4e-3, 2e-3, 1e-3)
STOP = 0.3


def smooth_four_bar() -> CoupledModel:
    """The four-bar with a command that has no jump inside."""
    model = mbsfmu.models.four_bar()
    ramp = LinearSignal(times=(0.0, STOP), values=(2.0, 3.0))
    return CoupledModel.from_dict({**model.to_dict(), "signals": {"circuit.valve.command": ramp.to_dict()}})


@cache
def reference() -> float:
    """Radau IIA on the explicit double-step form."""
    simulation = smooth_four_bar().simulation(
        solver="radau", step=STOP, relative_tolerance=1e-10, absolute_tolerance=1e-12
    )
    return float(simulation.run(STOP)["rocker.angle"][-1])


def slope(errors: list[float]) -> float:
    return float(np.polyfit(np.log(STEPS), np.log(errors), 1)[0])


@pytest.mark.parametrize("formulation", ["double-step", "penalty", "dca", "hdca"])
def test_second_order(formulation: str) -> None:
    ends = [smooth_four_bar().simulation(formulation=formulation, step=h).run(STOP)["rocker.angle"][-1] for h in STEPS]
    errors = [abs(end - reference()) for end in ends]
    assert slope(errors) == pytest.approx(2.0, abs=0.15)


def test_first_order_coupling_is_seen_as_such() -> None:
    """Negative control: inputs held over the step make the same rule first order."""
    ends = []
    for step in STEPS:
        simulation = smooth_four_bar().simulation(step=step)
        simulation.initialize()
        for index in range(round(STOP / step)):
            simulation.set("valve.command", 2.0 + index * step / STOP)
            simulation.step(index * step, step)
        ends.append(simulation.get("rocker.angle"))
    assert slope([abs(end - reference()) for end in ends]) < 1.5


@pytest.mark.parametrize(
    ("solver", "formulation"),
    [*((each, "double-step") for each in ("rk45", "dop853", "radau")), ("adams", "dca"), ("adams", "hdca")],
)
def test_explicit_solvers_agree(solver: str, formulation: str) -> None:
    simulation = smooth_four_bar().simulation(
        formulation=formulation, solver=solver, step=STOP, relative_tolerance=1e-9, absolute_tolerance=1e-10
    )
    assert simulation.run(STOP)["rocker.angle"][-1] == pytest.approx(reference(), abs=1e-8)
