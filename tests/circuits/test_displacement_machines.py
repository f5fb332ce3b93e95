"""Pumps and motors: their laws in closed form, their losses, runs against an integration by SciPy."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
import pytest
from hydraulic_bench import AIRLESS, AIRY, Bench
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from hydraulics import (
    Circuit,
    DataError,
    Hose,
    InertialMotor,
    Motor,
    Oil,
    PressureSource,
    Pump,
    Tank,
    Throttle,
    Volume,
    balanced,
    catalogue_displacement,
    catalogue_leakage,
)
from hydraulics.circuit import plausibility_warnings
from hydraulics.component import Component
from mbsfmu import CoupledModel, JointActuator, Mechanism, Revolute, RigidBody, StepSignal

LOSSES: dict[str, float] = {
    "leakage": 2e-12,
    "viscous_friction": 0.02,
    "pressure_friction": 0.05,
    "coulomb_friction": 1.5,
    "smoothing_velocity": 0.7,
}
PUMP, MOTOR = 45e-6 / (2.0 * pi), 100e-6 / (2.0 * pi)
LOW = 1e5


def circuit(*components: Component, oil: Oil = AIRLESS, **pressures: Any) -> Circuit:
    return Circuit(oil=oil, components=(Tank(name="tank", node="T"), *components), initial_pressures=pressures)


def run(made: Circuit, stop: float, **signals: StepSignal) -> Any:
    inputs = {f"circuit.{name.replace('__', '.')}": signal for name, signal in signals.items()}
    model = CoupledModel(name="bench", systems={"circuit": made}, signals=inputs)
    solver = {"solver": "rodas5p", "relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}
    return model.simulation(**solver).run(stop)


def between_volumes(machine: Component, oil: Oil = AIRLESS) -> Bench:
    volumes = (Volume(name=f"at_{node}", node=node, volume=1e-3) for node in "AB")
    return Bench(circuit(machine, *volumes, oil=oil, A=1e6, B=1e6))


FAST, HIGH = st.floats(-300.0, 300.0), st.floats(0.0, 4e7)


@given(FAST, HIGH, HIGH, st.floats(0.1, 50.0))
def test_power_of_the_oil_is_that_of_the_shaft_and_losses(speed: float, p_a: float, p_b: float, gear: float) -> None:
    """Written out from [McCandlish1984] for a machine behind a gear; what is lost is never gained."""
    bench = between_volumes(Motor(name="motor", a="A", b="B", displacement=MOTOR, gear_ratio=gear, **LOSSES))
    given = {"A__pressure": p_a, "B__pressure": p_b, "motor__angular_velocity": speed}
    told = bench.outputs(**given)
    own, drop = gear * speed, p_a - p_b
    friction = 0.02 * own + (0.05 * MOTOR * abs(drop) + 1.5) * np.tanh(own / 0.7)
    assert told["motor.flow"] == pytest.approx(MOTOR * own + 2e-12 * drop, rel=1e-12, abs=1e-16)
    assert told["motor.torque"] == pytest.approx(gear * (MOTOR * drop - friction), rel=1e-12, abs=1e-9)
    lost = told["motor.flow"] * drop - told["motor.torque"] * speed
    assert lost == pytest.approx(2e-12 * drop**2 + friction * own, rel=1e-6, abs=1e-3)
    assert lost >= -1e-9 * abs(told["motor.torque"] * speed)
    rates = bench.rates(**given)
    for node, sign in (("A", -1.0), ("B", 1.0)):
        flow = sign * told["motor.flow"]
        assert rates[f"{node}.pressure"] == pytest.approx(flow * 1500e6 / 1e-3, rel=1e-9, abs=1e-3)


def test_a_case_leaks_from_both_ports() -> None:
    machine = {"a": "A", "b": "B", "displacement": MOTOR, "drain": "T", "drain_leakage": 3e-12}
    bench = between_volumes(Motor(name="motor", **machine))
    rates = bench.rates(A__pressure=2e7, B__pressure=5e6)
    for node, pressure in (("A", 2e7), ("B", 5e6)):
        assert rates[f"{node}.pressure"] == pytest.approx(-3e-12 * (pressure - LOW) * 1500e6 / 1e-3, rel=1e-9)


def test_pump_and_motor_are_one_machine_turned_about() -> None:
    """A pump from A to B at ω has the flow and the torque of a motor between the same ports."""
    told = []
    for machine in (
        Pump(name="m", inlet="A", outlet="B", displacement=PUMP, speed=150.0, **LOSSES),
        Motor(name="m", a="A", b="B", displacement=PUMP, speed=150.0, **LOSSES),
    ):
        outputs = between_volumes(machine, oil=AIRY).outputs(A__compression=1e6, B__compression=2e7)
        told.append([outputs[f"m.{each}"] for each in ("torque", "flow", "power")])
    assert told[0] == told[1]
    assert told[0][0] < 0.0 < told[0][1]
    assert told[0][2] == pytest.approx(150.0 * told[0][0])


def test_a_pump_holds_the_pressure_at_which_a_throttle_and_its_leakage_take_what_it_gives() -> None:
    pump = Pump(name="pump", inlet="T", outlet="P", displacement=PUMP, speed=157.0, leakage=2e-12)
    load = Throttle(name="load", inlet="P", outlet="T", orifice_diameter=2.5e-3, discharge_coefficient=0.7)
    result = run(circuit(pump, load, Volume(name="line", node="P", volume=1e-3), P=LOW), 1.0)
    orifice = 0.7 * pi / 4.0 * 2.5e-3**2 * np.sqrt(2.0 / 850.0)
    at_rest = brentq(lambda p: PUMP * 157.0 - 2e-12 * (p - LOW) - orifice * np.sqrt(p - LOW), 1e6, 1e8)
    assert result["P.pressure"][-1] == pytest.approx(at_rest, rel=1e-7)
    assert result["pump.flow"][-1] == pytest.approx(orifice * np.sqrt(at_rest - LOW), rel=1e-7)


def test_a_transmission_follows_its_equations() -> None:
    """Pump, line, motor with inertia, load that jumps; the same written out and integrated by SciPy."""
    inertia, volume, hose = 0.4, 2e-3, 6e8
    machine = {"displacement": MOTOR, **LOSSES, "gear_ratio": 3.0}
    made = circuit(
        Pump(name="pump", inlet="T", outlet="P", displacement=PUMP, speed=120.0, leakage=1e-12),
        Hose(name="line", node="P", volume=volume, bulk_modulus=hose),
        InertialMotor(name="motor", a="P", b="T", drain="T", drain_leakage=2e-12, inertia=inertia, **machine),
        P=5e6,
    )
    result = run(made, 0.6, motor__load=StepSignal(times=(0.0, 0.2), values=(60.0, 250.0)))

    def rates(time: float, state: np.ndarray, load: float) -> list[float]:
        pressure, turning = state
        own, drop = 3.0 * turning, pressure - LOW
        flow = PUMP * 120.0 - 1e-12 * drop - MOTOR * own - 4e-12 * drop
        friction = 0.02 * own + (0.05 * MOTOR * abs(drop) + 1.5) * np.tanh(own / 0.7)
        return [
            flow / (volume / 1500e6 + volume / hose),
            (3.0 * (MOTOR * drop - friction) - load) / inertia,
        ]

    state = np.array([5e6, 0.0])
    for begin, end, load in ((0.0, 0.2, 60.0), (0.2, 0.6, 250.0)):
        times = result.time[(result.time >= begin) & (result.time <= end)]
        found = solve_ivp(rates, (begin, end), state, "Radau", times, args=(load,), rtol=1e-10, atol=[1e-3, 1e-10])
        picked = np.isin(result.time, times[1:-1])
        np.testing.assert_allclose(result["P.pressure"][picked], found.y[0][1:-1], atol=1e-6 * 3e7)
        np.testing.assert_allclose(result["motor.angular_velocity"][picked], found.y[1][1:-1], atol=1e-5 * 18.0)
        state = found.y[:, -1]
    assert np.ptp(result["P.pressure"]) > 1e7


INERTIA, MASS, ARM, GRAVITY, GEAR = 4.0, 30.0, 0.5, 9.81, 40.0


def winch(a: Any, b: Any, motor: dict[str, Any], told: bool = True) -> CoupledModel:
    """A horizontal arm on a hinge across gravity; a motor with closed ports holds it through a gear."""
    mechanism = Mechanism(
        gravity=(0.0, -GRAVITY, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="arm", mass=MASS, inertia=(3.0, 3.0, INERTIA), points={"hinge": (-ARM, 0.0, 0.0)}),),
        joints=(Revolute(name="hinge", parent="ground.O", child="arm.hinge"),),
        forces=(JointActuator(name="drive", joint="hinge"),),
    )
    volumes = (Volume(name=f"line_{node}", node=node, volume=5e-4) for node in "AB")
    made = circuit(Motor(name="motor", a="A", b="B", displacement=MOTOR, gear_ratio=GEAR, **motor), *volumes, A=a, B=b)
    return CoupledModel(
        name="winch",
        systems={"mechanism": mechanism, "circuit": made},
        connections=(
            ("circuit.motor.torque", "mechanism.drive.torque"),
            ("mechanism.drive.angular_velocity", "circuit.motor.angular_velocity"),
            *((("mechanism.drive.static_torque", "circuit.motor.initial_load"),) if told else ()),
        ),
    )


def test_a_motor_with_closed_ports_holds_a_joint_but_for_its_leakage() -> None:
    """The arm sinks as fast as oil leaks: D i ω = −k Δp, with the drop that carries its weight less friction."""
    load = MASS * GRAVITY * ARM
    drop = load / (GEAR * MOTOR)
    tight = winch(balanced("motor"), 2e6, {})
    result = tight.simulation().run(0.3)
    np.testing.assert_allclose(result["A.pressure"], 2e6 + drop, rtol=1e-9)
    np.testing.assert_allclose(result["arm.angle"], 0.0, atol=1e-10)
    leaking = winch(2e7, balanced("motor"), {"leakage": 1e-12, "viscous_friction": 1.0})
    result = leaking.simulation().run(0.5)
    assert result["B.pressure"][0] == pytest.approx(2e7 - drop, rel=1e-12)
    held = load / GEAR / (MOTOR + 1e-12 / MOTOR)
    assert result["arm.angular_velocity"][-1] == pytest.approx(-1e-12 * held / (GEAR * MOTOR), rel=1e-4)


def test_a_load_at_the_start_is_given_or_told() -> None:
    with pytest.raises(DataError, match=r"connect 'mechanism\.drive\.static_torque' to it, or give it a value$"):
        winch(balanced("motor"), 2e6, {}, told=False)
    given = winch(balanced("motor"), 2e6, {"initial_load": 30.0}, told=False).simulation(compiled=False)
    assert given.get("A.pressure") == pytest.approx(2e6 + 30.0 / (GEAR * MOTOR))


def test_a_motor_at_a_given_speed_turns_no_joint() -> None:
    whole = winch(1e7, 1e7, {})
    volumes = (Volume(name=f"line_{node}", node=node, volume=5e-4) for node in "AB")
    made = circuit(Motor(name="motor", a="A", b="B", displacement=MOTOR, speed=3.0), *volumes, A=1e7, B=1e7)
    lines = [line for line in whole.connections if line[0].endswith(".torque")]
    with pytest.raises(DataError) as caught:
        CoupledModel(name="winch", systems={**whole.systems, "circuit": made}, connections=lines)
    assert str(caught.value) == (
        "motor 'circuit.motor' drives 'mechanism.drive.torque', but its data say how it moves; leave that out and "
        "connect its angular_velocity"
    )


def test_energy_goes_from_the_arm_into_heat_of_the_motor() -> None:
    """What the mechanism tells of the drive's work is what the motor tells of its power; friction takes it."""
    falling = winch(2e6, 2e6, {"viscous_friction": 0.05, "leakage": 5e-11})
    result = falling.simulation(solver="rodas5p", relative_tolerance=1e-8).run(0.4)
    power, rate = result["motor.power"], result["arm.angular_velocity"]
    np.testing.assert_allclose(power, result["motor.torque"] * rate, rtol=1e-9, atol=1e-9)
    kinetic = 0.5 * (INERTIA + MASS * ARM**2) * rate**2
    potential = MASS * GRAVITY * ARM * np.sin(result["arm.angle"])
    work = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(result.time))])
    np.testing.assert_allclose(kinetic + potential, work, atol=2e-4 * np.max(np.abs(work)))
    assert work[-1] < -1.0


def test_a_flywheel_drives_a_pump_until_friction_and_pressure_have_stopped_it() -> None:
    """J ω̇ = −i (D Δp (1 + C) + T_c) − i² c ω: an exponential towards a velocity that friction never lets it reach."""
    inertia, gear, drop = 0.8, 2.0, 150e5
    flywheel = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="wheel", mass=10.0, inertia=(0.5, 0.5, inertia)),),
        joints=(Revolute(name="shaft", parent="ground.O", child="wheel.origin", angular_velocity=150.0),),
        forces=(JointActuator(name="shaft_end", joint="shaft"),),
    )
    pump = Pump(name="pump", inlet="T", outlet="P", displacement=PUMP, gear_ratio=gear, **LOSSES)
    held = PressureSource(name="held", node="P", pressure=LOW + drop)
    model = CoupledModel(
        name="flywheel",
        systems={"mechanism": flywheel, "circuit": circuit(pump, held)},
        connections=(
            ("circuit.pump.torque", "mechanism.shaft_end.torque"),
            ("mechanism.wheel.angular_velocity", "circuit.pump.angular_velocity"),
        ),
    )
    result = model.simulation(solver="rodas5p", relative_tolerance=1e-9, absolute_tolerance=1e-9).run(0.3)
    dry, viscous = gear * (PUMP * drop * 1.05 + 1.5), gear**2 * 0.02
    expected = (150.0 + dry / viscous) * np.exp(-viscous / inertia * result.time) - dry / viscous
    assert expected[-1] > 10.0
    np.testing.assert_allclose(result["wheel.angular_velocity"], expected, rtol=1e-7)
    np.testing.assert_allclose(result["pump.flow"], PUMP * gear * expected - 2e-12 * drop, rtol=1e-7)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"displacement": -1e-6}, "Pump 'pump': displacement is -1e-06; it must be greater than 0"),
        ({"leakage": -1e-12}, "Pump 'pump': leakage is -1e-12; it must be greater than or equal to 0"),
        ({"pressure_friction": 1.2}, "Pump 'pump': pressure_friction is 1.2; it must be less than 1"),
        ({"gear_ratio": 0.0}, "Pump 'pump': gear_ratio is 0.0; it must be greater than 0"),
        ({"drain": "T"}, "Pump 'pump': drain is T, but drain_leakage is missing; both are given or none"),
        ({"drain_leakage": 1e-12}, "Pump 'pump': drain_leakage is 1e-12, but drain is missing; both are given or none"),
    ],
)
def test_wrong_data_are_refused(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        Pump(**{"name": "pump", "inlet": "T", "outlet": "P", "displacement": PUMP, **fields})
    assert str(caught.value) == sentence


def test_a_motor_to_a_tank_is_balanced_by_its_other_port() -> None:
    motor = Motor(name="motor", a="P", b="T", displacement=MOTOR, drain="T", drain_leakage=1e-12, initial_load=50.0)
    line = Volume(name="line", node="P", volume=1e-3)
    start = Bench(circuit(motor, line, P=balanced("motor"))).start()
    assert start["P.pressure"] == pytest.approx(LOW + 50.0 / MOTOR)


def test_what_balances_nothing_is_refused() -> None:
    line = Volume(name="line", node="P", volume=1e-3)
    motor = Motor(name="motor", a="P", b="T", displacement=MOTOR)
    feed = Pump(name="feed", inlet="C", outlet="P", displacement=PUMP)
    suction = Volume(name="suction", node="C", volume=1e-3)
    with pytest.raises(DataError, match=r"node 'C' is to balance motor 'motor', but no line joins it"):
        circuit(motor, feed, line, suction, P=balanced("motor"), C=balanced("motor"))
    with pytest.raises(DataError, match=r"to balance motor 'motor', one of its nodes 'P' and 'T' must have a number"):
        circuit(motor, feed, line, suction, P=1e6, C=balanced("motor"))
    with pytest.raises(DataError, match=r"is to balance 'pump', which is no actuator; actuators are none$"):
        circuit(Pump(name="pump", inlet="T", outlet="P", displacement=PUMP, speed=1.0), line, P=balanced("pump"))
    with pytest.raises(DataError, match=r"^pump 'pump' has no load that the pressure at outlet could balance$"):
        Bench(circuit(Pump(name="pump", inlet="T", outlet="P", displacement=PUMP), line, P=balanced("pump"))).start()


def test_numbers_by_turn_and_in_other_units_are_told() -> None:
    assert catalogue_displacement(45e-6) == PUMP
    assert catalogue_leakage(PUMP, 157.0, 3e7, 0.94) == pytest.approx(0.06 * PUMP * 157.0 / 3e7)
    for make, sentence in (
        (lambda: catalogue_displacement(45.0), "volume is 45 m3; it must be at most 1, and 45 cm3 are 45e-6 m3"),
        (lambda: catalogue_displacement(-1.0), "volume is -1.0; it must be positive and finite"),
        (
            lambda: catalogue_leakage(PUMP, 157.0, 3e7, 94.0),
            "efficiency is 94; it must be at most 1, and 95 % are 0.95",
        ),
        (lambda: catalogue_leakage(PUMP, 157.0, 0.0, 0.9), "pressure is 0.0; it must be positive and finite"),
    ):
        with pytest.raises(DataError, match=sentence):
            make()
    pump = Pump(name="pump", inlet="T", outlet="P", displacement=45.0, speed=1500.0)
    assert list(plausibility_warnings(circuit(pump, Volume(name="line", node="P", volume=1e-3), P=LOW))) == [
        f"pump 'pump': {told}, which is implausible; numbers are in SI units"
        for told in ("displacement is 45 m3/rad, more than 0.1 m3/rad", "speed is 1500 rad/s, more than 1000 rad/s")
    ]
