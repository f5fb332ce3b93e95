"""Pumps whose displacement changes: at rest in closed form, in motion against SciPy, what they share out."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
import pytest
from hydraulic_bench import AIRLESS
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from hydraulics import (
    Accumulator,
    Circuit,
    CompensatedPump,
    DataError,
    Hose,
    InertialMotor,
    LoadSensingPump,
    PressureSource,
    Tank,
    Throttle,
    VariablePump,
    Volume,
    catalogue_displacement,
)
from hydraulics.component import Component
from mbsfmu import CoupledModel, StepSignal
from mbsfmu.simulation.run_result import Result

D, SPEED, LOW = catalogue_displacement(100e-6), 190.0, 1e5
FULL = D * SPEED
PUMP: dict[str, Any] = {
    "name": "pump",
    "inlet": "T",
    "outlet": "P",
    "displacement": D,
    "speed": SPEED,
    "time_constant": 0.03,
}
REGULATED: dict[str, Any] = {**PUMP, "cut_off": 280e5, "cut_off_range": 10e5}
SENSING: dict[str, Any] = {**REGULATED, "load_sense": "LS", "margin": 20e5, "margin_range": 4e5}
LINE = Volume(name="line", node="P", volume=2e-3)


def orifice(diameter: float) -> float:
    return 0.7 * pi / 4.0 * diameter**2 * np.sqrt(2.0 / 850.0)


def throttle(name: str, inlet: str, outlet: str, diameter: float) -> Throttle:
    ends = {"inlet": inlet, "outlet": outlet}
    return Throttle(name=name, **ends, orifice_diameter=diameter, discharge_coefficient=0.7)


def run(
    *components: Component, stop: float = 1.0, signals: dict[str, StepSignal] | None = None, **starts: float
) -> Result:
    made = Circuit(
        oil=AIRLESS, components=(Tank(name="tank", node="T"), *components), initial_pressures={"P": LOW, **starts}
    )
    inputs = {f"circuit.{name}": signal for name, signal in (signals or {}).items()}
    model = CoupledModel(name="bench", systems={"circuit": made}, signals=inputs)
    return model.simulation(solver="rodas5p", relative_tolerance=1e-9, absolute_tolerance=1e-9).run(stop)


def test_a_displacement_follows_its_command_within_its_limits() -> None:
    """Exponentials in closed form; with a swash below zero the flow turns about."""
    pump = VariablePump(**PUMP, minimum_swash=-0.5, maximum_swash=0.8, initial_swash=0.3)
    command = StepSignal(times=(0.0, 0.1, 0.2), values=(0.6, 2.0, -2.0))
    held = PressureSource(name="held", node="P", pressure=50e5)
    made = Circuit(oil=AIRLESS, components=(Tank(name="tank", node="T"), pump, held))
    model = CoupledModel(name="bench", systems={"circuit": made}, signals={"circuit.pump.command": command})
    result = model.simulation(solver="rodas5p", relative_tolerance=1e-10, absolute_tolerance=1e-10).run(0.3)
    expected, swash = [], 0.3
    for begin, target in ((0.0, 0.6), (0.1, 0.8), (0.2, -0.5)):
        times = result.time[(result.time > begin) & (result.time < begin + 0.1 - 1e-12)] - begin
        expected += [*(target + (swash - target) * np.exp(-times / 0.03))]
        swash = target + (swash - target) * np.exp(-0.1 / 0.03)
    picked = ~np.isin(np.round(result.time, 9), (0.0, 0.1, 0.2, 0.3))
    np.testing.assert_allclose(result["pump.swash"][picked], expected, atol=1e-8)
    np.testing.assert_allclose(result["pump.flow"], result["pump.swash"] * FULL, rtol=1e-12)
    np.testing.assert_allclose(result["pump.torque"], -result["pump.swash"] * D * 49e5, rtol=1e-12)


@pytest.mark.parametrize(("diameter", "full"), [(1e-3, False), (3e-3, False), (6e-3, True)])
def test_a_compensated_pump_rests_where_its_curve_meets_the_load(diameter: float, full: bool) -> None:
    result = run(CompensatedPump(**REGULATED), LINE, throttle("load", "P", "T", diameter))
    load = orifice(diameter)

    def left(pressure: float) -> float:
        return FULL * min(max((280e5 - pressure) / 10e5, 0.0), 1.0) - load * np.sqrt(pressure - LOW)

    pressure = brentq(left, 2e5 + LOW, 280e5)
    assert result["P.pressure"][-1] == pytest.approx(pressure, rel=1e-6)
    assert (pressure < 270e5) == full
    assert (result["pump.swash"][-1] == pytest.approx(1.0, abs=1e-9)) == full


def test_a_closed_outlet_is_held_at_the_cut_off_without_flow() -> None:
    result = run(CompensatedPump(**REGULATED, leakage=2e-11), LINE, stop=2.0)
    pressure = brentq(lambda p: FULL * (280e5 - p) / 10e5 - 2e-11 * (p - LOW), 200e5, 280e5)
    assert result["P.pressure"][-1] == pytest.approx(pressure, rel=1e-6)


def test_a_torque_that_is_limited_is_kept() -> None:
    """Full flow up to the corner; beyond it the power T ω is the flow's, whatever the pressure."""
    pump = CompensatedPump(**REGULATED, maximum_torque=100.0)
    for diameter in (2.8e-3, 3.2e-3):
        result = run(pump, LINE, throttle("load", "P", "T", diameter))
        drop = (100.0 * SPEED / orifice(diameter)) ** (2.0 / 3.0)
        assert result["P.pressure"][-1] == pytest.approx(LOW + drop, rel=1e-6)
        assert result["pump.power"][-1] == pytest.approx(-100.0 * SPEED, rel=1e-6)
    wide = run(pump, LINE, throttle("load", "P", "T", 8e-3))
    assert wide["pump.swash"][-1] == pytest.approx(1.0, abs=1e-9)


def consumers(wide: float, pump: LoadSensingPump) -> tuple[Result, list[float]]:
    """Two orifices from the pump's line to loads of 150 and 80 bar, of which the higher one is sensed."""
    loads = {"LS": 150e5, "B": 80e5}
    sources = (PressureSource(name=f"load_{node}", node=node, pressure=each) for node, each in loads.items())
    valves = (throttle(f"to_{node}", "P", node, wide) for node in loads)
    result = run(pump, LINE, *sources, *valves, P=168e5)
    return result, list(loads.values())


def test_a_load_sensing_pump_keeps_its_margin_as_long_as_it_can() -> None:
    result, loads = consumers(3e-3, LoadSensingPump(**SENSING))
    through = orifice(3e-3)

    def left(pressure: float) -> float:
        swash = (150e5 + 20e5 - pressure) / 4e5
        return FULL * swash - sum(through * np.sqrt(pressure - load) for load in loads)

    pressure = brentq(left, 166e5, 170e5)
    assert result["P.pressure"][-1] == pytest.approx(pressure, rel=1e-7)
    assert result["pump.swash"][0] == pytest.approx(0.5, abs=1e-9)  # at rest at its pressure, two bar below
    assert 0.3 < result["pump.swash"][-1] < 0.9


@pytest.mark.parametrize("greatest", [1.0, 0.8])
def test_consumers_that_want_more_than_there_is_share_it_by_their_pressures(greatest: float) -> None:
    """All that the pump gives goes through both: its pressure falls, and the higher load gets less."""
    result, loads = consumers(5.2e-3, LoadSensingPump(**SENSING, maximum_swash=greatest))
    through = orifice(5.2e-3)

    def left(pressure: float) -> float:
        drops = (pressure - load for load in loads)
        return greatest * FULL - sum(through * d / np.sqrt(max(abs(d), 2e5)) for d in drops)

    pressure = brentq(left, 81e5, 170e5)
    assert result["P.pressure"][-1] == pytest.approx(pressure, rel=1e-7)
    assert pressure < 166e5
    assert result["pump.swash"][-1] == pytest.approx(greatest, abs=1e-9)
    shares = [result[f"to_{node}.flow"][-1] for node in ("LS", "B")]
    assert sum(shares) == pytest.approx(greatest * FULL, rel=1e-7)
    assert shares[0] < 0.5 * shares[1]


def test_a_load_beyond_the_cut_off_gets_no_margin() -> None:
    sensed = PressureSource(name="load", node="LS", pressure=300e5)
    result = run(LoadSensingPump(**SENSING, leakage=2e-11), LINE, sensed, stop=2.0)
    pressure = brentq(lambda p: FULL * (280e5 - p) / 10e5 - 2e-11 * (p - LOW), 200e5, 280e5)
    assert result["P.pressure"][-1] == pytest.approx(pressure, rel=1e-6)


def test_a_load_sensing_drive_follows_its_equations() -> None:
    """Pump, line, orifice, accumulator, motor with inertia whose load jumps; written out and integrated by SciPy.

    It begins with all the flow that the pump has, and comes to the pressure at which the pump is cut off.
    """
    motor, inertia, gas, precharge = catalogue_displacement(200e-6), 6.0, 5e-4, 60e5
    bladder = Accumulator(name="bladder", node="LS", volume=gas, precharge_pressure=precharge, inlet_diameter=8e-3)
    hose = Hose(name="work", node="LS", volume=1e-3, bulk_modulus=5e8)
    drive = InertialMotor(name="motor", a="LS", b="T", displacement=motor, inertia=inertia, leakage=5e-12)
    result = run(
        *(LoadSensingPump(**SENSING, maximum_torque=150.0), LINE, hose, bladder, drive),
        throttle("valve", "P", "LS", 5e-3),
        stop=0.8,
        signals={"motor.load": StepSignal(times=(0.0, 0.4), values=(300.0, 700.0))},
        P=20e5,
        LS=5e5,
    )
    through = orifice(5e-3)

    def rates(time: float, state: NDArray[np.float64], load: float) -> list[float]:
        supply, work, swash, turning, oiled = state
        wanted = min((work + 20e5 - supply) / 4e5, (280e5 - supply) / 10e5)
        wanted = min(wanted, 150.0 / max(D * (supply - LOW), 150.0))
        valve = through * (supply - work) / np.sqrt(max(abs(supply - work), 2e5))
        drop = work - precharge * ((gas / (gas - oiled)) ** 1.3 - max(1.0 - oiled / (1e-3 * gas), 0.0))
        filling = orifice(8e-3) * drop / np.sqrt(max(abs(drop), 2e5))
        return [
            (swash * FULL - valve) * 1.5e9 / 2e-3,
            (valve - motor * turning - 5e-12 * (work - LOW) - filling) / ((1e-3 + oiled) / 1.5e9 + 1e-3 / 5e8),
            (min(max(wanted, 0.0), 1.0) - swash) / 0.03,
            (motor * (work - LOW) - load) / inertia,
            filling,
        ]

    state = np.array([20e5, 5e5, 1.0, 0.0, 1e-3 * gas * 5e5 / precharge])
    names = ("P.pressure", "LS.pressure", "pump.swash", "motor.angular_velocity", "bladder.oil_volume")
    sizes = (3e7, 3e7, 1.0, 100.0, gas)
    for begin, end, load in ((0.0, 0.4, 300.0), (0.4, 0.8, 700.0)):
        times = result.time[(result.time > begin) & (result.time < end)]
        atol = [1e-4, 1e-4, 1e-11, 1e-10, 1e-16]
        found = solve_ivp(rates, (begin, end), state, "Radau", [*times, end], args=(load,), rtol=1e-10, atol=atol)
        picked = np.isin(result.time, times)
        for name, size, values in zip(names, sizes, found.y, strict=True):
            np.testing.assert_allclose(result[name][picked], values[:-1], atol=1e-5 * size, err_msg=name)
        state = found.y[:, -1]
    assert np.min(result["pump.swash"]) < 0.5 < np.max(result["pump.swash"])
    assert np.max(result["P.pressure"]) > 279e5
    assert np.max(result["bladder.oil_volume"]) > 0.4 * gas


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        (
            VariablePump,
            {**PUMP, "minimum_swash": 0.5, "maximum_swash": 0.5},
            "minimum_swash is 0.5; it must be less than maximum_swash, 0.5",
        ),
        (
            VariablePump,
            {**PUMP, "initial_swash": -0.5},
            "initial_swash is -0.5; it must be between 0.0 and 1.0, the least and the greatest",
        ),
        (VariablePump, {**PUMP, "maximum_swash": 1.5}, "maximum_swash is 1.5; it must be less than or equal to 1"),
        (CompensatedPump, {**REGULATED, "cut_off": -1.0}, "cut_off is -1.0; it must be greater than 0"),
        (LoadSensingPump, {**SENSING, "margin_range": 0.0}, "margin_range is 0.0; it must be greater than 0"),
        (LoadSensingPump, {**REGULATED, "load_sense": "P"}, "margin is missing"),
    ],
)
def test_wrong_data_are_refused(kind: type[Component], fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        kind(**fields)
    assert str(caught.value) == f"{kind.__name__} 'pump': {sentence}"
