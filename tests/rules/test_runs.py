"""What rules of integration do to whole models: order through changes of description, damping, energy."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from mechanisms import ball_pendulum, slider_crank
from scipy.optimize import brentq

import mbsfmu
from hydraulics import Circuit, Hose, Oil, PressureSource, Tank, Throttle
from mbsfmu import CoupledModel, StepSignal

TIGHT = {"solver": "dop853", "relative_tolerance": 1e-11, "absolute_tolerance": 1e-12}
DAMPING = ("bdf2", "generalized-alpha", "generalized-alpha:spectral_radius=0")
MACHINES = {"crank": (slider_crank, "crank.angle", 0.6), "ball": (ball_pendulum, "body.centre.x.position", 0.7)}
STEPS = {"crank": (4e-3, 2e-3), "ball": (8e-3, 4e-3)}
"""In s. References of the ball move along in these; in shorter ones they stay, and the error has another constant."""


@cache
def reference(name: str) -> float:
    make, variable, stop = MACHINES[name]
    return float(make().simulation(step=stop, **TIGHT).run(stop)[variable][-1])


CASES = [
    (name, formulation, solver)
    for name, formulations in (("crank", ("double-step", "penalty", "dca-alm")), ("ball", ("double-step", "hdca")))
    for formulation in formulations
    for solver in DAMPING
]


@pytest.mark.parametrize(("name", "formulation", "solver"), CASES)
def test_second_order_whatever_describes_the_motion(name: str, formulation: str, solver: str) -> None:
    """Through other independent coordinates, projections, and references that move along."""
    make, variable, stop = MACHINES[name]
    steps = STEPS[name]
    options = {"formulation": formulation, "solver": solver, "compiled": False}
    runs = [make().simulation(step=h, **options).run(stop, output_step=stop) for h in steps]
    errors = [abs(run[variable][-1] - reference(name)) for run in runs]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.25)


@pytest.mark.parametrize("solver", ["trapezoidal", *DAMPING[:2]])
@pytest.mark.parametrize("formulation", ["penalty", "dca-alm"])
def test_errors_follow_the_step_however_small_it_is(formulation: str, solver: str) -> None:
    """What an iteration leaves counts 2/h and 4/h² times in rates: it would show in the small steps."""
    steps = 4e-3 * 0.5 ** np.arange(4)
    made = (slider_crank().simulation(step=h, formulation=formulation, solver=solver, compiled=False) for h in steps)
    errors = [abs(each.run(0.6, output_step=0.6)["crank.angle"][-1] - reference("crank")) for each in made]
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2.0, atol=0.08)


@pytest.mark.parametrize("formulation", ["double-step", "penalty", "hdca"])
def test_radius_one_is_the_trapezoidal_rule(formulation: str) -> None:
    """Its auxiliary acceleration is z̈ then, also behind jumps."""
    jumps = StepSignal(times=(0.02, 0.0505), values=(4.0, 1.0), initial=2.0)
    data = {**mbsfmu.models.four_bar().to_dict(), "signals": {"circuit.valve.command": jumps.to_dict()}}
    model = CoupledModel.from_dict(data)
    one, other = (
        model.simulation(formulation=formulation, solver=solver, compiled=False).run(0.1)
        for solver in ("trapezoidal", "generalized-alpha:spectral_radius=1")
    )
    for name in ("boom.angle", "boom.angular_velocity", "V2.pressure", "cylinder.force"):
        scale = np.max(np.abs(one[name]))
        np.testing.assert_allclose(other[name], one[name], atol=1e-9 * scale, err_msg=name)


def stiff_volume() -> CoupledModel:
    """A drop of oil between two equal throttles: it comes to rest within 0.1 ms."""
    throttle = {"orifice_diameter": 2e-3, "discharge_coefficient": 0.7}
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0, air_content=0.0),
        components=(
            PressureSource(name="pump", node="P", pressure=20e6),
            Tank(name="tank", node="T", pressure=1e5),
            Throttle(name="inlet", inlet="P", outlet="A", **throttle),
            Throttle(name="outlet", inlet="A", outlet="T", **throttle),
            Hose(name="hose", node="A", volume=1e-6, bulk_modulus=1e12),
        ),
        initial_pressures={"A": 5e6},
    )
    return CoupledModel(name="drop", systems={"circuit": circuit})


@pytest.mark.parametrize("solver", ["bdf2", "generalized-alpha:spectral_radius=0", "generalized-alpha"])
def test_stiff_oil_comes_to_rest(solver: str) -> None:
    """About half way between the pressures, as equal orifices take equal masses, √Δp by the density upstream."""
    pressure = stiff_volume().simulation(solver=solver, step=1e-3, compiled=False).run(0.1)["A.pressure"]
    rest = brentq(lambda p: (20e6 - p) * np.exp(2.0 * (20e6 - p) / 1.5e9) - (p - 1e5), 1e5, 20e6, rtol=1e-14)
    # Each step multiplies what is left by ρ∞ at most.
    assert np.max(np.abs(pressure[-10:] - rest)) < (10.0 if solver == "generalized-alpha" else 1e-2)


def test_stiff_oil_rings_by_the_trapezoidal_rule() -> None:
    """Negative control."""
    pressure = stiff_volume().simulation(step=1e-3, compiled=False).run(0.1)["A.pressure"]
    changes = np.diff(pressure[-10:])
    assert np.min(np.abs(changes)) > 500.0
    assert np.all(changes[1:] * changes[:-1] < 0)


def lost(solver: str, step: float) -> float:
    """Energy in J that a pendulum of 9.8 J loses in 20 s."""
    result = mbsfmu.models.pendulum(1).simulation(solver=solver, step=step, compiled=False).run(20.0, output_step=20.0)
    return -float(result["energy.drift"][-1])


@pytest.mark.parametrize("solver", ["bdf2", "generalized-alpha:spectral_radius=0"])
def test_damping_takes_energy_by_the_third_power_of_the_step(solver: str) -> None:
    """Nothing else takes any, and the trapezoidal rule leaves it but for what comes and goes."""
    coarse, fine = lost(solver, 2e-2), lost(solver, 1e-2)
    assert coarse > 10 * abs(lost("trapezoidal", 2e-2))
    assert np.log2(coarse / fine) == pytest.approx(3.0, abs=0.4)


def test_radius_next_to_one_leaves_slow_motion_its_energy() -> None:
    assert lost("generalized-alpha", 2e-2) == pytest.approx(lost("trapezoidal", 2e-2), rel=0.2)
