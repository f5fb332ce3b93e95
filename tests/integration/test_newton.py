"""Newton's iteration for the trapezoidal rule: what its tolerances mean, and where they end."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from ensemble_cases import LANES
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from mbsfmu import InputError, SimulationError
from mbsfmu.formulations import dca_alm
from mbsfmu.integration.implicit import Jacobian, Method, solve
from mbsfmu.models import built_in, four_bar, pendulum
from mbsfmu.native.c_sources import StepSources
from mbsfmu.native.compiled import CompiledRunner
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.stepping.newton import Iteration, Machine, magnitude_of
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


def error_of_the_rod(formulation: str, compiled: bool, step: float, stop: float) -> float:
    """The error of its angle in rad at the end, by SciPy."""
    rod = solve_ivp(
        lambda _, y: [y[1], -9.81 * 0.5 / 1.25 * np.cos(y[0])],
        (0.0, stop),
        [0.0, 0.0],
        "DOP853",
        rtol=1e-13,
        atol=1e-15,
    )
    options = {"solver": "trapezoidal", "compiled": compiled, "step": step}
    found = pendulum(1).simulation(formulation=formulation, **options).run(stop, output_step=stop)["link_1.angle"][-1]
    return abs(found - rod.y[0, -1])


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_order_two_holds_in_small_steps(formulation: str) -> None:
    """What the iteration leaves has the same sign in many steps, and is multiplied by 4/h²."""
    errors = [error_of_the_rod(formulation, True, step, 1.0) for step in (1e-3, 1e-4, 1e-5)]
    assert errors[1] == pytest.approx(1e-2 * errors[0], rel=0.03)
    assert errors[2] < errors[1]  # near round-off


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_order_two_holds_in_small_steps_by_the_interpreter(formulation: str) -> None:
    errors = [error_of_the_rod(formulation, False, step, 0.2) for step in (1e-3, 5e-5)]
    assert errors[1] == pytest.approx(errors[0] / 400.0, rel=0.03)


@pytest.mark.parametrize("lanes", LANES)
def test_order_two_holds_in_small_steps_of_lanes(lanes: int) -> None:
    """Machines side by side end each where it has converged, and one is at rest throughout."""
    starts = {"link_1.angle": np.array([0.0, -0.5 * np.pi, 0.0])}
    ensemble = pendulum(1).ensemble(starts=starts, solver="trapezoidal", step=1e-4, lanes=lanes)
    found = ensemble.run(1.0, output_step=1.0, outputs=["link_1.angle"])["link_1.angle"][:, -1]
    single = pendulum(1).simulation(solver="trapezoidal", step=1e-4).run(1.0, output_step=1.0)["link_1.angle"][-1]
    np.testing.assert_allclose(found, [single, -0.5 * np.pi, single], rtol=0.0, atol=3e-10)


@pytest.mark.parametrize(
    ("formulation", "options", "advice"),
    [
        ("double-step", {"step": 0.05}, "take smaller steps, or a solver that chooses them, such as rodas5p"),
        ("penalty", {"step": 0.05}, "take smaller steps, or the formulation double-step, whose solver chooses them"),
        ("double-step", {"step": 1e-3, "newton_tolerance": 1e-4}, "take a smaller Newton tolerance"),
        ("double-step", {"step": 1e-7}, "take larger steps, or the formulation dca, hdca or dca-alm, which find them"),
        ("double-step", {"relative_tolerance": 1e-2}, "take a smaller tolerance"),
    ],
)
def test_advice_is_of_what_makes_the_error(formulation: str, options: dict[str, Any], advice: str) -> None:
    solver = pendulum(1).simulation(formulation=formulation, compiled=False, **options).solver
    assert solver.more_accurate.startswith(advice)
    assert solver.remedy.startswith(advice.removesuffix(", such as rodas5p"))


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
    method = Method(Jacobian.EXACT, 10, formulation.refresh_cost)
    with pytest.raises(SimulationError, match="increments hardly decrease, its tolerance may be too small"):
        solve(lambda: formulation.problem(state, 1e-3), 1e-3, stricter, method, None, 0.0)


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
    np.testing.assert_allclose((limits.shares * limits.nominal)[-4:], [1e-2, 1e-2, 1e-2, 1e-7])
    assert limits.shares[0] == 1e-7
    machine = cast(Machine, SimpleNamespace(unknown_nominals=limits.nominal))
    iteration = Iteration([0.0] * count, [], [])
    iteration.unknowns[0], iteration.unknowns[-4] = -100.0, 2e7
    assert magnitude_of(machine, iteration, 0) == 100.0
    assert magnitude_of(machine, iteration, count - 4) == 2e7


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
