"""The balance of energy of pumps, motors and cylinders closes, and what is lost is never gained."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hydrostatic_machines import loader, slewer
from numpy.typing import NDArray
from test_cylinder_kinds import BORE, COMMON, MASS, STROKE, circuit, lifted, stopping

from hydraulics import Circuit, InertialMotor, Oil, PressureSource, SingleActingCylinder, Tank
from mbsfmu import CoupledModel, StepSignal
from mbsfmu.simulation.run_result import Result

Row = NDArray[np.float64]


def run(model: CoupledModel, stop: float | None = None) -> Result:
    return model.simulation(solver="rodas5p", relative_tolerance=1e-8, absolute_tolerance=1e-8).run(stop)


def energies(result: Result) -> dict[str, Row]:
    words = ("supplied", "delivered", "dissipated", "start", "stored", "drift")
    return {word: result[f"hydraulic_energy.{word}"] for word in words}


def closes(result: Result) -> dict[str, Row]:
    """Check that nothing comes of nothing, and that losses only grow."""
    told = energies(result)
    turned = max(np.max(np.abs(told[word])) for word in ("supplied", "delivered", "dissipated"))
    assert turned > 1.0
    assert np.max(np.abs(told["drift"])) < 1e-6 * turned
    assert np.min(np.diff(told["dissipated"])) > -1e-9 * turned
    return told


def integral(result: Result, power: Row) -> Row:
    """Return the integral of a power by the trapezoidal rule."""
    return np.concatenate([[0.0], np.cumsum(0.5 * np.diff(result.time) * (power[1:] + power[:-1]))])


def test_machines_go_through_json_and_back() -> None:
    model = loader()
    assert CoupledModel.from_dict(json.loads(json.dumps(model.to_dict(), allow_nan=False))) == model


def test_shafts_and_tank_bring_in_what_machines_take_store_and_lose() -> None:
    """The swing of a house both ways: the pump takes power, and brakes by giving some back."""
    result = run(slewer())
    told = closes(result)
    given = integral(result, result["tank.power"] - result["swing.power"])
    np.testing.assert_allclose(told["supplied"], given, atol=2e-4 * np.max(given))
    assert np.min(np.diff(told["supplied"])) < 0.0 < np.max(np.diff(told["supplied"]))
    np.testing.assert_allclose(told["delivered"], 0.5 * 3e3 * result["house.angular_velocity"] ** 2, atol=1e-2)


def test_all_pumps_motors_and_cylinders_at_once() -> None:
    result = run(loader())
    told = closes(result)
    shafts = sum(result[f"{name}.power"] for name in ("swing", "main", "press", "cooler"))
    given = integral(result, result["tank.power"] - shafts - result["fan.power"])
    np.testing.assert_allclose(told["supplied"], given, atol=1e-3 * np.max(given))
    assert 0.5 * 0.3 * result["fan.angular_velocity"][-1] ** 2 > 0.2 * told["supplied"][-1]


def test_a_motor_without_losses_speeds_its_inertia_up_with_all_that_is_left() -> None:
    """Between two pressures: ω = (D Δp − load) t / J, stored is ½ J ω², and nothing is lost."""
    made = Circuit(
        oil=Oil(bulk_modulus=1500e6, density=850.0, air_content=0.0, conserves="volume"),
        components=(
            PressureSource(name="pump", node="P", pressure=101e5),
            Tank(name="tank", node="T"),
            InertialMotor(name="motor", a="P", b="T", displacement=1e-5, inertia=0.5, initial_velocity=3.0),
        ),
    )
    load = {"circuit.motor.load": StepSignal(times=(0.0,), values=(30.0,))}
    result = run(CoupledModel(name="spun", systems={"circuit": made}, signals=load), 0.5)
    told, speed = energies(result), 3.0 + (1e-5 * 100e5 - 30.0) / 0.5 * result.time
    np.testing.assert_allclose(result["motor.angular_velocity"], speed, rtol=1e-9)
    np.testing.assert_allclose(told["stored"], 0.25 * speed**2, rtol=1e-9)
    np.testing.assert_allclose(told["supplied"], 0.25 * (speed**2 - 9.0), atol=1e-6)
    np.testing.assert_allclose(told["dissipated"], 0.0, atol=1e-6)


@pytest.mark.parametrize("extending", [True, False])
def test_an_end_stop_gives_no_energy(extending: bool) -> None:
    told = closes(run(stopping(extending), 0.8))
    assert told["dissipated"][-1] > 0.3 * told["supplied"][-1]


def test_a_single_acting_cylinder_stores_energy_in_its_spring_and_the_atmosphere() -> None:
    """A mass swings on oil and spring without friction; what is stored is what the mass has lost."""
    spring = {"spring_stiffness": 5e4, "spring_preload": 500.0}
    oil = Oil(bulk_modulus=1500e6, density=850.0)
    made = circuit(SingleActingCylinder(**COMMON, **spring), volume=5e-5, oil=oil, A=30e5)
    result = run(lifted(made, 0.7, velocity=1.5, gravity=0.0), 0.2)
    told = energies(result)
    kinetic = 0.5 * MASS * result["lift.velocity"] ** 2
    np.testing.assert_allclose(told["stored"] - told["start"], kinetic[0] - kinetic, atol=1e-5 * kinetic[0])
    np.testing.assert_allclose(told["drift"], 0.0, atol=1e-6 * kinetic[0])
    assert np.ptp(result["lift.length"]) > 0.05 * STROKE > 0.1 * BORE
