"""Newton's iteration for the trapezoidal rule: what its tolerances mean, and where they end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from mbsfmu import InputError, SimulationError
from mbsfmu.formulations import dca_alm
from mbsfmu.integration.newton import Jacobian, Method, solve
from mbsfmu.models import built_in, four_bar, pendulum
from mbsfmu.native.c_sources import StepSources
from mbsfmu.native.loop import CompiledRunner
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats

STEP, COUNT = 0.1, 40
FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")


def by_hand() -> Floats:
    """The trapezoidal rule for a rod that swings from the horizontal, each step solved by bracketing."""
    pull = 9.81 * 0.5 / (1.0 + 0.25)
    angle, speed, angles = 0.0, 0.0, [0.0]

    def open_by(end: float) -> float:
        rate = 2.0 / STEP * (end - angle) - speed
        return rate - speed + 0.5 * STEP * pull * (np.cos(angle) + np.cos(end))

    for _ in range(COUNT):
        found = brentq(open_by, angle - 1.0, angle + 1.0, xtol=1e-15, rtol=1e-15)
        angle, speed = found, 2.0 / STEP * (found - angle) - speed
        angles.append(angle)
    return np.array(angles)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("formulation", ["double-step", "dca"])
def test_steps_are_those_of_the_rule(formulation: str, compiled: bool) -> None:
    """In large steps, to what the tolerance leaves: an error of a step by 2/h in the velocity grows as time goes on."""
    for tolerance, error in ((1e-8, 1e-7), (1e-12, 1e-11)):
        options = {"compiled": compiled, "step": STEP, "newton_tolerance": tolerance}
        found = pendulum(1).simulation(formulation=formulation, **options).run(STEP * COUNT)["link_1.angle"]
        np.testing.assert_allclose(found, by_hand(), rtol=0, atol=error)


def heavy(formulation: str, times: float = 100.0, **options: Any) -> Simulation:
    """The four-bar of 31 t, with cylinder and valve to match, at 20 MPa."""
    simulation = four_bar(circuit="frictionless").simulation(formulation=formulation, solver="trapezoidal", **options)
    for body in ("boom", "link", "rocker"):
        simulation.set(f"{body}.mass", times * simulation.get(f"{body}.mass"))
    larger = np.sqrt(times / 8.0)
    for name in ("cylinder.piston_diameter", "cylinder.rod_diameter", "throttle.orifice_diameter"):
        simulation.set(name, larger * simulation.get(name))
    simulation.set("pump.pressure", 3.5e7)
    simulation.initialize()
    simulation.set("valve.command", 5.0)
    return simulation


@pytest.mark.parametrize("times", [100.0, 400.0])
def test_heavy_machines_converge_in_absolute_coordinates(times: float) -> None:
    """The penalty factor of a step follows 4/h² M: where it does not, multipliers gain a bit an iteration."""
    simulation, other = (heavy(each, times, compiled=False) for each in ("dca-alm", "double-step"))
    assert simulation.get("V2.pressure") > 1.5e7
    for each in (simulation, other):
        for index in range(20):
            each.step(1e-3 * index, 1e-3)
    assert simulation.statistics.failures == 0
    assert simulation.statistics.iteration_matrices <= 5, (
        "an iteration matrix serves for several steps where increments shrink fast"
    )
    moved = abs(other.get("cylinder.length") - heavy("double-step", times).get("cylinder.length"))
    assert moved > 1e-7
    assert simulation.get("cylinder.length") == pytest.approx(other.get("cylinder.length"), abs=0.05 * moved)


def test_slow_convergence_says_what_may_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: with the factor of light machines."""
    monkeypatch.setattr(dca_alm, "REDUNDANT_STIFFENING", 0.0)
    simulation = heavy("dca-alm", 400.0, compiled=False)
    for index in range(5):
        simulation.step(1e-3 * index, 1e-3)
    assert simulation.statistics.newton_max > 5
    formulation = simulation.formulation
    state = simulation._started()
    limits = formulation.limits(formulation.step_coordinates + len(state.states))
    stricter = replace(limits, shares=1e-2 * limits.shares)
    method = Method(Jacobian.EXACT, 10, formulation.refresh_cost, formulation.remaining)
    with pytest.raises(SimulationError, match="increments hardly decrease, its tolerance may be too small"):
        solve(lambda: formulation.problem(state, 1e-3), stricter, method, None, 0.0)


@pytest.mark.parametrize(
    ("formulation", "compiled"), [*((each, False) for each in FORMULATIONS), ("double-step", True), ("penalty", True)]
)
def test_tolerance_below_round_off_is_met(formulation: str, compiled: bool) -> None:
    """Increments that are round-off end the iteration; results are those of the usual tolerance."""
    ends = []
    for tolerance in (None, 1e-15):
        simulation = heavy(formulation, 8.0, compiled=compiled, newton_tolerance=tolerance)
        for index in range(10):
            simulation.step(1e-3 * index, 1e-3)
        assert simulation.statistics.failures == 0
        ends.append(simulation.get("V2.pressure"))
        assert isinstance(simulation.runner, CompiledRunner) == compiled
    assert ends[1] == pytest.approx(ends[0], rel=1e-7)


@pytest.mark.parametrize("formulation", ["double-step", "dca"])
def test_tolerances_follow_magnitudes(formulation: str) -> None:
    """A pressure of 20 MPa is given 20 times the tolerance of one below 1 MPa, 100 rad 100 times that of one."""
    simulation = four_bar().simulation(formulation=formulation, compiled=False)
    count = 2 * 3 + 4 if formulation == "dca" else 1 + 4
    limits = simulation.formulation.limits(count)
    unknowns = np.zeros(count)
    np.testing.assert_allclose(limits.at(unknowns)[-4:], [1e-2, 1e-2, 1e-2, 1e-7])
    assert limits.at(unknowns)[0] == 1e-7
    unknowns[0], unknowns[-4] = -100.0, 2e7
    np.testing.assert_allclose(limits.at(unknowns)[[0, -4]], [1e-5, 0.2])


def test_tolerance_is_part_of_a_unit() -> None:
    """It is compiled in, and identifies the unit."""
    codes = []
    for tolerance in (None, 1e-6):
        simulation = pendulum(1).simulation(newton_tolerance=tolerance, compiled=False)
        codes.append(StepSources.of(simulation).code()["model_steps.c"])
    assert codes[0] != codes[1]
    assert float(codes[1].partition("unknown_tolerances[] = {")[2].partition("}")[0]) == pytest.approx(1e-5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"newton_tolerance": 0.0}, "the Newton tolerance is 0; it must lie between 1e-15, round-off, and 0.0001"),
        ({"newton_tolerance": 1e-2}, r"the Newton tolerance is 0\.01; it must lie"),
        ({"newton_tolerance": float("nan")}, "the Newton tolerance is nan; it must be finite"),
        (
            {"newton_tolerance": 1e-7, "solver": "rk45"},
            "Newton tolerance = 1e-07 has no effect with the solver 'rk45', which has no Newton .*; it has with trapez",
        ),
    ],
)
def test_tolerances_without_sense_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        built_in("pendulum-1").simulation(**options)
