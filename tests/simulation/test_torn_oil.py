"""Oil that is pulled apart by a falling mass: against a closed form, SciPy, and what energy allows."""

from __future__ import annotations

import re
from functools import cache
from math import exp, log, pi
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

import mbsfmu
from hydraulics import Circuit, Cylinder, Oil, PressureSource, Throttle, Volume
from mbsfmu import Actuator, CoupledModel, Cuboid, InputError, Mechanism, Prismatic
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.simulation.run_result import Result

OIL, AIR, ATMOSPHERE = 1.5e9, 0.005, 101325.0
MASS, GRAVITY, START, VOLUME = 2e4, 9.81, 3e5, 2e-4
AREAS = (pi * 0.08**2 / 4.0, -pi * (0.08**2 - 0.035**2) / 4.0)
STOP = 0.5


def falling_mass(air: float = AIR, index: float = 1.0, vapour: float = 0.0) -> CoupledModel:
    """A mass that hangs on a cylinder whose ports are shut: it stretches the oil on the piston's side."""
    mechanism = Mechanism(
        gravity=(GRAVITY, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0), "above": (-1.5, 0.0, 0.0)},
        bodies=(Cuboid(name="mass", length=0.1, mass=MASS),),
        joints=(Prismatic(name="guide", parent="ground.O", child="mass.centre"),),
        forces=(Actuator(name="cylinder", start="ground.above", end="mass.centre"),),
    )
    circuit = Circuit(
        oil=Oil(bulk_modulus=OIL, density=850.0, air_content=air, polytropic_index=index, vapour_pressure=vapour),
        components=(
            Cylinder(
                name="cylinder",
                piston="A",
                rod="B",
                piston_diameter=0.08,
                rod_diameter=0.035,
                stroke=1.0,
                retracted_length=1.0,
                bulk_modulus=1e18,
            ),
            Volume(name="a", node="A", volume=VOLUME),
            Volume(name="b", node="B", volume=VOLUME),
        ),
        initial_pressures={"A": START, "B": START},
    )
    return CoupledModel(
        name="falling-mass",
        systems={"mechanism": mechanism, "circuit": circuit},
        connections=(
            ("circuit.cylinder.force", "mechanism.cylinder.force"),
            ("mechanism.cylinder.length", "circuit.cylinder.length"),
            ("mechanism.cylinder.velocity", "circuit.cylinder.velocity"),
        ),
        stop_time=STOP,
    )


@cache
def run(step: float, formulation: str = "double-step", air: float = AIR) -> Result:
    return falling_mass(air).simulation(formulation=formulation, step=step).run()


def shrinking(pressure: float) -> float:
    """Logarithm of the volume of what is shut in, that of the oil and of isothermal air."""
    return log(exp((ATMOSPHERE - pressure) / OIL) + AIR * ATMOSPHERE / pressure)


def pressure_at(side: int, fall: float) -> float:
    """Pressure of a closed chamber once the mass has fallen."""
    area = AREAS[side]
    share = 1.0 + area * fall / (VOLUME + abs(area) * 0.5)
    wanted = shrinking(START) + log(share)
    return exp(brentq(lambda logarithm: shrinking(exp(logarithm)) - wanted, log(1e-2), log(1e9), xtol=1e-14))


def test_pressures_are_those_of_the_closed_form() -> None:
    """What the steps make of ṗ = −K V̇ / V is the closed p(V), down to a tenth of the atmosphere's."""
    worst = []
    for step in (1e-3, 5e-4):
        result = run(step)
        fall = result["cylinder.length"] - 1.5
        found = [result["A.pressure"], result["B.pressure"]]
        exact = [np.array([pressure_at(side, x) for x in fall[::10]]) for side in (0, 1)]
        worst.append(max(np.max(np.abs(p[::10] / e - 1.0)) for p, e in zip(found, exact, strict=True)))
    assert min(found[0]) < 0.1 * ATMOSPHERE
    assert worst[0] < 5e-3
    assert worst[0] / worst[1] == pytest.approx(4.0, abs=0.8)


def reference(times: NDArray[np.float64], index: float = 1.0, vapour: float = 0.0) -> NDArray[np.float64]:
    """Fall and pressures by SciPy, from the law as printed, in logarithms of the pressures."""

    def modulus(p: float) -> float:
        liquid = exp((ATMOSPHERE - p + vapour) / OIL)
        share = AIR * (ATMOSPHERE / (p - vapour)) ** (1.0 / index)
        softening = AIR * ATMOSPHERE ** (1.0 / index) * OIL / (index * (p - vapour) ** (1.0 / index + 1.0))
        return OIL * (liquid + share) / (liquid + softening)

    def rates(_: float, state: NDArray[np.float64]) -> list[float]:
        fall, speed, *logarithms = state
        pressures = [exp(each) for each in logarithms]
        force = sum(p * area for p, area in zip(pressures, AREAS, strict=True))
        volumes = [VOLUME + abs(area) * 0.5 + area * fall for area in AREAS]
        each = zip(pressures, AREAS, volumes, strict=True)
        return [speed, GRAVITY + force / MASS, *(-modulus(p) / p * area * speed / volume for p, area, volume in each)]

    start = [0.0, 0.0, log(START), log(START)]
    solution = solve_ivp(rates, (0.0, STOP), start, "Radau", t_eval=times, rtol=1e-10, atol=1e-12)
    return np.vstack([solution.y[0], np.exp(solution.y[2:])])


@pytest.mark.parametrize("formulation", ["double-step", "penalty", "dca", "hdca", "dca-alm"])
def test_motion_is_that_of_scipy(formulation: str) -> None:
    coarse, fine = run(1e-3, formulation), run(5e-4, formulation)
    fall, first, second = reference(coarse.time)
    errors = [
        np.max(np.abs(result["cylinder.length"][::every] - 1.5 - fall)) for result, every in ((coarse, 1), (fine, 2))
    ]
    assert errors[0] < 2e-3 * np.max(fall)
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.5)
    np.testing.assert_allclose(fine["B.pressure"][::2], second, rtol=5e-3)
    np.testing.assert_allclose(fine["A.pressure"][::2], first, rtol=2e-2)


def test_other_gases_and_vapour() -> None:
    """Air without time to give off its heat, over vapour whose pressure nothing can fall below."""
    result = falling_mass(AIR, 1.4, 5e4).simulation(step=5e-4, compiled=False).run()
    fall, first, _ = reference(result.time, 1.4, 5e4)
    np.testing.assert_allclose(result["cylinder.length"] - 1.5, fall, atol=1e-3 * np.max(fall))
    np.testing.assert_allclose(result["A.pressure"], first, rtol=1e-2)
    assert 5e4 < np.min(result["A.pressure"]) < 6e4


def test_energy_of_mass_and_oil_is_kept() -> None:
    """Kinetic energy and ∫ −p dV of both chambers, from the closed p(V), come out of the fall."""
    result = run(5e-4)
    for index in range(0, len(result.time), 100):
        fall = result["cylinder.length"][index] - 1.5
        stored = -sum(
            area * quad(lambda x, side=side: pressure_at(side, x), 0.0, fall, epsrel=1e-9)[0]
            for side, area in enumerate(AREAS)
        )
        kinetic = 0.5 * MASS * result["cylinder.velocity"][index] ** 2
        assert kinetic + stored == pytest.approx(MASS * GRAVITY * fall, abs=1.0)
    assert result.largest("energy.drift") < 1.0
    assert np.max(result["energy.kinetic"]) > 1e3


def test_oil_without_air_bears_tension(caplog: pytest.LogCaptureFixture) -> None:
    """Negative control: without air the same fall pulls the pressure far below vacuum, and the run says so."""
    with caplog.at_level("WARNING", logger="mbsfmu"):
        run(1e-3)
        assert "below 0 Pa" not in caplog.text
        result = run(1e-3, air=0.0)
    assert np.min(result["A.pressure"]) < -1e7
    assert "A.pressure is below 0 Pa from t = " in caplog.text
    assert "it falls to -" in caplog.text
    assert "oil without air" in caplog.text


def test_filling_a_torn_volume_takes_the_oil_that_is_missing() -> None:
    """A litre at 1 kPa is a third of gas: what flows in at 2.1 MPa is what V holds more, by the density."""
    throttle = Throttle(name="throttle", inlet="P", outlet="A", orifice_diameter=2e-3, discharge_coefficient=0.7)
    components = (
        PressureSource(name="pump", node="P", pressure=2.1e6),
        throttle,
        Volume(name="volume", node="A", volume=1e-3),
    )
    oil = Oil(bulk_modulus=OIL, density=860.0, air_content=AIR)
    circuit = Circuit(oil=oil, components=components, initial_pressures={"A": 1e3})
    model = CoupledModel(name="fill", systems={"circuit": circuit}, stop_time=3.0)
    result = model.simulation(step=5e-3, compiled=False).run()
    flow, pressure = result["throttle.flow"], result["A.pressure"]
    taken = np.trapezoid(flow, result.time)
    held = 1e-3 / np.array([exp(shrinking(each)) for each in (*pressure[[0, -1]], 2.1e6)])
    assert pressure[-1] == pytest.approx(2.1e6, rel=1e-3)
    assert taken == pytest.approx((held[1] - held[0]) * 1e-3 / held[2], rel=5e-4)
    assert result["oil.mass"][[0, -1]] == pytest.approx(860.0 * held[:2], rel=1e-12)


@pytest.mark.skipif(not has_compiler(), reason="needs a C compiler")
def test_ensembles_tell_of_it_as_single_runs_do_and_log_it_once(caplog: pytest.LogCaptureFixture) -> None:
    """A light mass hangs on its oil; two heavy ones tear it."""
    model, step = falling_mass(), {"solver": "trapezoidal", "step": 1e-3}
    told = []
    for mass in (MASS, 1.5 * MASS):
        caplog.clear()
        simulation = model.simulation(**step)
        simulation.set("mass.mass", mass)
        simulation.run()
        told += [each.removeprefix("falling-mass: ") for each in caplog.messages if "cavitates" in each]
    caplog.clear()
    result = model.ensemble({"mass.mass": [10.0, MASS, 1.5 * MASS]}, **step).run(outputs=["mass.*"])
    names = [f"machine 1 (mass.mass = {MASS:g} kg): ", f"machine 2 (mass.mass = {1.5 * MASS:g} kg): "]
    found = {machine: sentences for machine, sentences in result.warnings.items() if "cavitates" in sentences[0]}
    assert found == {1: (names[0] + told[0],), 2: (names[1] + told[1],)}
    (merged,) = [each for each in caplog.messages if "cavitates" in each]
    assert merged.startswith(f"2 of 3 machines, first {names[0]}the oil at A cavitates")
    numbers = [re.findall(r"(?:t =|falls to) (\S+)", each) for each in told]
    assert all(number in merged for own in numbers for number in own)


@pytest.mark.parametrize("step", [1e-3, 1e-2])
@pytest.mark.parametrize("air", [1e-4, 0.005, 0.05])
def test_no_step_ends_below_vacuum(air: float, step: float) -> None:
    """Whatever the air and however long the steps: nothing damps the four-bar's oil, and it is torn again and again."""
    simulation = mbsfmu.models.four_bar("frictionless", air_content=0.005).simulation(step=step)
    simulation.set("oil.air_content", air)
    result = simulation.run(4.0)
    lowest = min(result[f"V{number}.pressure"].min() for number in (1, 2, 3))
    assert 0.0 < lowest < 1e6
    assert result.largest("energy.drift") < 0.02 * result.largest("energy.work")


@pytest.mark.parametrize(
    ("model", "changes", "sentence"),
    [
        (
            "four-bar",
            {"cylinder.retracted_length": 1.5},
            r"cylinder.length starts at 1.41421 m; it must be between 1.49\d+ ",
        ),
        (
            "four-bar",
            {"cylinder.stroke": 0.5},
            r"cylinder.length starts at 1.41421 m; it must be between 0.89\d+ and 1.40\d+",
        ),
        ("four-bar", {"tank.pressure": 0.0}, r"tank.pressure starts at 0 Pa; it must be above 0"),
        ("quick-return", {"V3.initial_pressure": 1e5}, r"V1.pressure starts at -745\d+\.?\d* Pa; it must be above 0"),
        (
            "quick-return",
            {"oil.vapour_pressure": 4e6},
            r"V1.pressure starts at 2\.\d+e\+06 Pa; it must be above 4e\+06",
        ),
    ],
)
def test_impossible_starts_are_refused(model: str, changes: dict[str, Any], sentence: str) -> None:
    simulation = mbsfmu.models.built_in(model).simulation(compiled=False)
    for name, value in changes.items():
        simulation.set(name, value)
    with pytest.raises(InputError, match=sentence):
        simulation.initialize()
