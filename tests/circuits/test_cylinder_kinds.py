"""Leakage, through rods, cushions, single-acting cylinders: in closed form, on a mass that a mechanism has."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
import pytest
from hydraulic_bench import AIRLESS, Bench
from hypothesis import given
from hypothesis import strategies as st

import mbsfmu
from hydraulics import (
    Circuit,
    Cylinder,
    DataError,
    Oil,
    PressureSource,
    SingleActingCylinder,
    Throttle,
    Volume,
    balanced,
)
from hydraulics.component import Component
from mbsfmu import Actuator, CoupledModel, Cuboid, Mechanism, Prismatic
from mbsfmu.simulation.run_result import Result

MASS, GRAVITY, AIR = 200.0, 9.81, 101325.0
BORE, ROD, STROKE, SHORTEST = 0.06, 0.03, 0.4, 0.5
DISC, RING = pi / 4.0 * BORE**2, pi / 4.0 * (BORE**2 - ROD**2)
COMMON: dict[str, Any] = {
    "name": "lift",
    "piston": "A",
    "piston_diameter": BORE,
    "stroke": STROKE,
    "retracted_length": SHORTEST,
    "bulk_modulus": 1e13,
}
DOUBLE: dict[str, Any] = {**COMMON, "rod": "B", "rod_diameter": ROD}
CUSHION: dict[str, Any] = {"cushion_length": 0.05, "cushion_orifice_diameter": 4e-3}


def circuit(cylinder: Component, volume: float = 1e-3, oil: Oil = AIRLESS, **starts: Any) -> Circuit:
    volumes = (Volume(name=f"at_{node}", node=node, volume=volume) for node in starts)
    return Circuit(oil=oil, components=(cylinder, *volumes), initial_pressures=starts)


def lifted(made: Circuit, length: float, velocity: float = 0.0, gravity: float = GRAVITY) -> CoupledModel:
    """A mass on a cylinder that stands upright."""
    mechanism = Mechanism(
        gravity=(0.0, 0.0, -gravity),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(Cuboid(name="load", length=0.2, mass=MASS),),
        joints=(
            Prismatic(
                name="guide",
                parent="ground.O",
                child="load.centre",
                axis=(0.0, 0.0, 1.0),
                displacement=length,
                velocity=velocity,
            ),
        ),
        forces=(Actuator(name="lift", start="ground.O", end="load.centre"),),
    )
    lines = (
        ("circuit.lift.force", "mechanism.lift.force"),
        ("mechanism.lift.length", "circuit.lift.length"),
        ("mechanism.lift.velocity", "circuit.lift.velocity"),
        ("mechanism.lift.static_force", "circuit.lift.initial_load"),
    )
    return CoupledModel(name="lift", systems={"mechanism": mechanism, "circuit": made}, connections=lines)


def run(model: CoupledModel, stop: float) -> Result:
    solver = {"solver": "rodas5p", "relative_tolerance": 1e-10, "absolute_tolerance": 1e-10}
    return model.simulation(**solver).run(stop)


def test_a_load_sinks_as_fast_as_oil_leaks_over_the_piston() -> None:
    """With a through rod the areas are the same: A v = −k Δp, A Δp carries the load less the friction of v."""
    cylinder = Cylinder(**DOUBLE, through_rod_diameter=ROD, leakage=1e-11, viscous_friction=2e4)
    result = run(lifted(circuit(cylinder, A=balanced("lift"), B=10e5), 0.7), 1.0)
    assert result["A.pressure"][0] == pytest.approx(10e5 + MASS * GRAVITY / RING, rel=1e-12)
    drop = MASS * GRAVITY / (RING + 2e4 * 1e-11 / RING)
    assert result["lift.velocity"][-1] == pytest.approx(-1e-11 * drop / RING, rel=1e-5)
    assert result["A.pressure"][-1] - result["B.pressure"][-1] == pytest.approx(drop, rel=1e-5)


@pytest.mark.parametrize("extending", [True, False])
def test_a_cushion_brakes_a_mass_as_in_closed_form(extending: bool) -> None:
    """m v dv/dx = −A³ ρ s² v² / (2 C_d² A_o²) with s from 0 to 1 over the cushion: v is exponential in s³."""
    cylinder = Cylinder(**DOUBLE, through_rod_diameter=ROD, **CUSHION, stop_stiffness=0.0)
    sign = 1.0 if extending else -1.0
    end = SHORTEST + (STROKE if extending else 0.0)
    made = circuit(cylinder, volume=1e6, A=50e5, B=50e5)
    result = run(lifted(made, end - sign * 0.08, sign * 0.3, gravity=0.0), 0.3)
    orifice = 0.61 * pi / 4.0 * 4e-3**2
    decay = RING**3 * 850.0 / (2.0 * orifice**2 * MASS) * 0.05 / 3.0
    closed = np.clip(1.0 - sign * (end - result["lift.length"]) / 0.05, 0.0, 1.0)
    before = sign * (end - result["lift.length"]) > 0.0
    expected = 0.3 * np.exp(-decay * closed**3)
    np.testing.assert_allclose(sign * result["lift.velocity"][before], expected[before], rtol=2e-5)
    assert np.min(expected[before]) < 0.1
    rise = (closed * RING * result["lift.velocity"] / orifice) ** 2 * 850.0 / 2.0
    np.testing.assert_allclose(result["lift.cushion_pressure"], rise, rtol=1e-9, atol=1e-3)


def test_a_cushion_lets_the_piston_out() -> None:
    bench = Bench(circuit(Cylinder(**DOUBLE, **CUSHION), A=20e5, B=20e5))
    for length, away in ((SHORTEST + 0.01, 0.2), (SHORTEST + STROKE - 0.01, -0.2)):
        free, rest = (bench.outputs(lift__length=length, lift__velocity=speed) for speed in (away, 0.0))
        assert free["lift.cushion_pressure"] == 0.0
        assert free["lift.force"] == rest["lift.force"] == pytest.approx(20e5 * (DISC - RING))
        braked = bench.outputs(lift__length=length, lift__velocity=-away)
        assert braked["lift.cushion_pressure"] > 1e5


@given(st.floats(SHORTEST - 1e-3, SHORTEST + STROKE + 1e-3), st.floats(-2.0, 2.0), st.booleans())
def test_cylinders_never_give_more_than_their_pressures_do(length: float, velocity: float, single: bool) -> None:
    """Pressures, atmosphere and spring, written out, less the force and what stops and spring take up, is lost."""
    friction = {"viscous_friction": 300.0, "coulomb_friction": 100.0, "static_friction": 150.0}
    fields = {**friction, **CUSHION}
    spring = {"spring_stiffness": 5e3, "spring_preload": 400.0}
    cylinder = SingleActingCylinder(**COMMON, **fields, **spring) if single else Cylinder(**DOUBLE, **fields)
    pressures = {"A": 80e5} if single else {"A": 80e5, "B": 30e5}
    told = Bench(circuit(cylinder, **pressures)).outputs(lift__length=length, lift__velocity=velocity)
    extended = length - SHORTEST
    given = (80e5 - AIR) * DISC - 400.0 - 5e3 * extended if single else 80e5 * DISC - 30e5 * RING
    pressed = 1e8 * (max(extended - STROKE, 0.0) - max(-extended, 0.0))
    lost = (given - told["lift.force"] - pressed) * velocity
    assert lost >= -1e-9 * abs(told["lift.force"] * velocity)


def test_a_plunger_swings_with_its_load_on_the_oil() -> None:
    """At rest it carries the load against the atmosphere; what swings has the frequency A √(K / V m)."""
    made = circuit(SingleActingCylinder(**COMMON), A=balanced("lift"))
    still = run(lifted(made, 0.6), 0.1)
    np.testing.assert_allclose(still["A.pressure"], AIR + MASS * GRAVITY / DISC, rtol=1e-9)
    np.testing.assert_allclose(still["lift.length"], 0.6, rtol=1e-9)
    frequency = DISC * sqrt(1500e6 / ((1e-3 + DISC * 0.1) * MASS))
    swings = run(lifted(made, 0.6, velocity=1e-3), 0.3)
    expected = 1e-3 * np.sin(frequency * swings.time) / frequency
    np.testing.assert_allclose(swings["lift.length"] - 0.6, expected, atol=2e-3 * 1e-3 / frequency)


def test_a_spring_retracts_what_oil_has_extended() -> None:
    """Without gravity the length is where spring and oil are at rest; the oil's volume does not change but for K."""
    spring = {"spring_stiffness": 2e4, "spring_preload": 300.0, "viscous_friction": 2e4}
    made = circuit(SingleActingCylinder(**COMMON, **spring), volume=2e-5, A=20e5)
    result = run(lifted(made, SHORTEST + 0.2, gravity=0.0), 1.5)
    extended, pressure = result["lift.length"] - SHORTEST, result["A.pressure"]
    assert pressure[-1] == pytest.approx(AIR + (300.0 + 2e4 * extended[-1]) / DISC, rel=1e-6)
    grown = np.log((2e-5 + DISC * extended[-1]) / (2e-5 + DISC * 0.2))
    assert pressure[-1] - 20e5 == pytest.approx(-1500e6 * grown, rel=1e-3)


def test_a_spring_leaves_the_pressure_at_the_start_to_the_user() -> None:
    made = circuit(SingleActingCylinder(**COMMON, spring_stiffness=1e4), A=balanced("lift"))
    with pytest.raises(DataError, match=r"^single-acting-cylinder 'lift' has a spring, whose force .* at a number$"):
        lifted(made, 0.6).simulation(compiled=False)
    hanging = lifted(circuit(SingleActingCylinder(**COMMON), A=balanced("lift")), 0.6, gravity=-GRAVITY)
    with pytest.raises(
        mbsfmu.InputError, match=r"'lift', which it balances, is pulled with 1962 N, and oil only pushes"
    ):
        hanging.simulation(compiled=False).run(0.01)


def stopping(extending: bool) -> CoupledModel:
    """A mass without weight that a pressure drives to the end of a cylinder through an orifice."""
    ends = {"A": 100e5, "B": 1e5} if extending else {"A": 1e5, "B": 100e5}
    parts: list[Component] = [Cylinder(**DOUBLE)]
    for node, pressure in ends.items():
        parts += [
            PressureSource(name=f"source_{node}", node=f"P{node}", pressure=pressure),
            Throttle(
                name=f"way_{node}",
                inlet=f"P{node}",
                outlet=node,
                orifice_diameter=4e-3,
                discharge_coefficient=0.7,
            ),
            Volume(name=f"at_{node}", node=node, volume=2e-4),
        ]
    made = Circuit(
        oil=Oil(bulk_modulus=1500e6, density=850.0), components=parts, initial_pressures={"A": 20e5, "B": 20e5}
    )
    lines = tuple(line for line in lifted(made, 0.7).connections if not line[1].endswith("initial_load"))
    return lifted(made, 0.7, gravity=0.0).model_copy(update={"connections": lines})


@pytest.mark.parametrize("extending", [True, False])
def test_a_cylinder_that_runs_to_its_end_stops_there(extending: bool) -> None:
    """It comes to rest on the stop, whose k d holds what the pressures push with; the stop gives no energy."""
    result = run(stopping(extending), 1.5)
    push = 100e5 * DISC - 1e5 * RING if extending else 1e5 * DISC - 100e5 * RING
    end = SHORTEST + (STROKE if extending else 0.0)
    assert result["lift.length"][-1] == pytest.approx(end + push / 1e8, abs=1e-7)
    assert abs(result["lift.velocity"][-1]) < 1e-6
    assert result["lift.force"][-1] == pytest.approx(0.0, abs=1.0)
    beyond = np.abs(result["lift.length"] - end)[-1]
    assert np.max(np.abs(result["lift.length"] - SHORTEST - 0.5 * STROKE)) < 0.5 * STROKE + 8.0 * beyond
    assert np.min(result["A.pressure"]) > 0.0 < np.min(result["B.pressure"])


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        (Cylinder, {**DOUBLE, "leakage": 0.0}, "leakage is 0.0; it must be greater than 0"),
        (
            Cylinder,
            {**DOUBLE, "through_rod_diameter": 0.07},
            "piston_diameter is 0.06; it must be greater than the through rod's, 0.07",
        ),
        (
            Cylinder,
            {**DOUBLE, "cushion_length": 0.05},
            "cushion_orifice_diameter is missing; a cushion has a length and an orifice",
        ),
        (
            Cylinder,
            {**DOUBLE, **CUSHION, "cushion_length": 0.5},
            "cushion_length is 0.5; it must be at most the stroke, 0.4",
        ),
        (
            SingleActingCylinder,
            {**COMMON, "spring_preload": -1.0},
            "spring_preload is -1.0; it must be greater than or equal to 0",
        ),
    ],
)
def test_wrong_data_are_refused(kind: type[Component], fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        kind(**fields)
    assert str(caught.value) == f"{kind.__name__} 'lift': {sentence}"
