"""Accumulators, lines, inputs and sensors: closed forms, SciPy on equations of its own, energies."""

from __future__ import annotations

import numpy as np
import pytest
from hydraulic_bench import OIL
from scipy.integrate import solve_ivp

from hydraulics import (
    Accumulator,
    Circuit,
    CircuitEnergies,
    CircuitEquations,
    Component,
    FlowSensor,
    FlowSource,
    Hose,
    Line,
    Oil,
    PressureInput,
    PressureSensor,
    Throttle,
    Volume,
)
from mbsfmu import CoupledModel, LinearSignal
from mbsfmu.simulation.run_result import Result

PLAIN = Oil(bulk_modulus=OIL, density=850.0, air_content=0.0)
STIFF = Oil(bulk_modulus=1e11, density=850.0, air_content=0.0)
VOLUME, PRECHARGE = 4e-3, 9e6


def run(
    *components: Component, pressures: dict[str, float], stop: float, oil: Oil = PLAIN, **options: object
) -> Result:
    signals = options.pop("signals", {})
    circuit = Circuit(oil=oil, components=components, initial_pressures=pressures)
    model = CoupledModel(name="bench", systems={"c": circuit}, signals=signals)  # type: ignore[arg-type]
    return model.simulation(compiled=False, **options).run(stop)


def accumulator(index: float, **changes: float) -> Accumulator:
    fields = {"volume": VOLUME, "precharge_pressure": PRECHARGE, "inlet_diameter": 30e-3, **changes}
    return Accumulator(name="accumulator", node="A", polytropic_index=index, **fields)


@pytest.mark.parametrize("index", [1.0, 1.4])
def test_gas_is_compressed_by_its_law(index: float) -> None:
    """A flow fills it; what is stored beside the oil is ∫ p dV, at one temperature p₀ V₀ ln(V₀ / V_g)."""
    flow, stop = 6e-4, 2.5
    result = run(
        accumulator(index),
        Volume(name="line", node="A", volume=1e-6),
        FlowSource(name="pump", node="A", constant_flow=flow),
        pressures={"A": PRECHARGE},
        stop=stop,
        oil=STIFF,
        solver="rodas5p",
    )
    begin = VOLUME - result["accumulator.oil_volume"][0]
    gas = begin - flow * result.time
    expected = PRECHARGE * (VOLUME / gas) ** index
    np.testing.assert_allclose(result["accumulator.gas_pressure"], expected, rtol=2e-3)
    assert result["A.pressure"][-1] == pytest.approx(expected[-1], rel=1e-3)
    work = PRECHARGE * VOLUME * np.log(begin / gas[-1])
    if index > 1.0:
        work = PRECHARGE * VOLUME**index * (gas[-1] ** (1.0 - index) - begin ** (1.0 - index)) / (index - 1.0)
    stored = result["hydraulic_energy.stored"]
    assert stored[-1] - stored[0] == pytest.approx(work, rel=2e-3)
    assert result["hydraulic_energy.supplied"][-1] == pytest.approx(work, rel=4e-3)
    assert np.max(np.abs(result["hydraulic_energy.drift"])) < 2e-4 * work


def test_an_accumulator_fills_and_empties_as_by_scipy() -> None:
    """From 2 bar over a precharge of 90 bar to 200 bar and back to 1 bar: never less oil than none, no energy lost."""
    signals = {"c.supply.pressure": LinearSignal(times=(0.0, 1.0, 3.0, 5.0), values=(2e5, 2e7, 1e5, 1e5))}
    result = run(
        accumulator(1.3),
        Hose(name="hose", node="A", volume=2e-4, bulk_modulus=2e8),
        PressureInput(name="supply", node="P", initial_pressure=2e5),
        Throttle(name="throttle", inlet="P", outlet="A", orifice_diameter=8e-3, discharge_coefficient=0.7),
        PressureSensor(name="gauge", node="A"),
        pressures={"A": 2e5},
        stop=5.0,
        signals=signals,
        step=1e-3,
    )

    def law(drop: float, diameter: float) -> float:
        return 0.7 * 0.25 * np.pi * diameter**2 * np.sqrt(2.0 / 850.0) * drop / np.sqrt(max(abs(drop), 2e5))

    def gas(oiled: float) -> float:
        seat = max(1.0 - oiled / (1e-3 * VOLUME), 0.0)
        return PRECHARGE * (VOLUME / (VOLUME - oiled)) ** 1.3 - PRECHARGE * seat

    def rates(time: float, state: np.ndarray) -> list[float]:
        """Of the mass in the node, by ρ₀, and of the accumulator's oil."""
        amount, oiled = state
        pressure = brought(amount, oiled)
        source = float(np.interp(time, (0.0, 1.0, 3.0, 5.0), (2e5, 2e7, 1e5, 1e5)))
        upstream = max(source, pressure)
        return [law(source - pressure, 8e-3) * np.exp((upstream - 101325.0) / OIL), law(pressure - gas(oiled), 30e-3)]

    def brought(amount: float, oiled: float) -> float:
        pressure = 1e6
        for _ in range(30):
            rise = pressure - 101325.0
            room = oiled + 2e-4 * (1.0 + rise / 2e8)
            held = room * np.exp(rise / OIL)
            pressure -= (held - amount) / (held / OIL + 2e-4 / 2e8 * np.exp(rise / OIL))
        return pressure

    start = result["accumulator.oil_volume"][0]
    held = (start + 2e-4 * (1.0 + (2e5 - 101325.0) / 2e8)) * np.exp((2e5 - 101325.0) / OIL)
    times = np.linspace(0.0, 5.0, 51)
    exact = solve_ivp(rates, (0.0, 5.0), [held, start], "LSODA", times, rtol=1e-8, atol=1e-12)
    found = np.interp(times, result.time, result["accumulator.oil_volume"])
    np.testing.assert_allclose(found, exact.y[1], atol=2e-4 * VOLUME)
    assert found.max() > 0.4 * VOLUME
    assert result["accumulator.oil_volume"].min() > 0.0
    np.testing.assert_array_equal(result["gauge.pressure"], result["A.pressure"])
    supplied = np.max(np.abs(result["hydraulic_energy.supplied"]))
    assert np.max(np.abs(result["hydraulic_energy.drift"])) < 1e-4 * supplied
    assert np.all(np.diff(result["hydraulic_energy.dissipated"]) > -1e-6 * supplied)


def test_a_line_swings_between_its_volumes() -> None:
    """Two bottles joined by a line without much friction: ω² = 2 / (L C)."""
    volume, length, diameter = 1e-3, 10.0, 0.03
    result = run(
        Line(name="line", inlet="A", outlet="B", diameter=diameter, length=length, viscosity=1e-4),
        Volume(name="one", node="A", volume=volume),
        Volume(name="two", node="B", volume=volume),
        pressures={"A": 1.01e7, "B": 1e7},
        stop=0.2,
        step=5e-5,
    )
    inertance = 850.0 * length / (0.25 * np.pi * diameter**2)
    frequency = np.sqrt(2.0 * OIL / (inertance * volume))
    swing = result["A.pressure"] - result["B.pressure"]
    passed = result.time[1:][(swing[1:] <= 0.0) & (swing[:-1] > 0.0)]
    assert np.mean(np.diff(passed)) == pytest.approx(2.0 * np.pi / frequency, rel=1e-3)
    kinetic = 0.5 * inertance * np.max(np.abs(result["line.flow"])) ** 2
    assert kinetic == pytest.approx(2.0 * 0.5 * volume / OIL * 5e4**2, rel=0.02)
    assert np.max(np.abs(result["hydraulic_energy.drift"])) < 1e-3 * kinetic


@pytest.mark.parametrize("velocity", [-0.2, 0.2, 8.0])
def test_friction_of_a_line_is_that_of_laminar_or_turbulent_flow(velocity: float) -> None:
    """λ = 64 / Re or 0.3164 / Re^¼ against the flow; what is not lost by it speeds the oil up."""
    diameter, length, viscosity, driving = 0.02, 5.0, 0.03, 1e5
    area = 0.25 * np.pi * diameter**2
    flow = velocity * area
    line = Line(name="line", inlet="A", outlet="B", diameter=diameter, length=length, viscosity=viscosity)
    equations = CircuitEquations(
        Circuit(
            oil=STIFF,
            components=(line, *(Volume(name=f"at_{node}", node=node, volume=1e-3) for node in "AB")),
            initial_pressures={"A": 1e6 + driving, "B": 1e6},
        )
    )
    parameters = np.array([each.start for each in equations.parameters])
    states = np.array([1e6 + driving, 1e6, flow])
    reynolds = 850.0 * abs(velocity) * diameter / viscosity
    loss = 64.0 / reynolds if abs(velocity) < 1.0 else 0.3164 / reynolds**0.25
    drop = loss * length / diameter * 850.0 * velocity * abs(velocity) / 2.0
    assert equations.evaluate_outputs(states, np.zeros(0), parameters)[:2] == pytest.approx([drop, reynolds])
    rate = equations.rates(states, np.zeros(0), parameters)[-1]
    assert rate == pytest.approx((driving - drop) * area / (850.0 * length))
    lost = CircuitEnergies(equations).powers(states, np.zeros(0), parameters)[2]
    assert lost == pytest.approx(flow * drop, rel=1e-4, abs=1e-5 * abs(flow) * driving)


def test_what_is_measured_and_brought_in_is_there_for_others() -> None:
    circuit = Circuit(
        oil=STIFF,
        components=(
            FlowSource(name="theirs", node="B"),
            Volume(name="other", node="B", volume=1e-5),
            FlowSensor(name="meter", inlet="B", outlet="A", rated_flow=2e-3, rated_drop=1e4),
            PressureInput(name="supply", node="A", initial_pressure=3e6),
            PressureSensor(name="gauge", node="A"),
        ),
        initial_pressures={"B": 3.005e6},
    )
    equations = CircuitEquations(circuit)
    parameters = np.array([each.start for each in equations.parameters])
    inputs = np.array([{"theirs.flow": 5e-4, "supply.pressure": 3e6}[each.name] for each in equations.inputs])
    outputs = dict(
        zip(
            (each.name for each in equations.outputs),
            equations.evaluate_outputs(np.array([3.005e6]), inputs, parameters).tolist(),
            strict=True,
        )
    )
    shared = {each.name for each in equations.outputs if each.shared}
    assert shared == {"theirs.pressure", "meter.flow", "supply.flow", "gauge.pressure"}
    assert outputs["meter.flow"] == pytest.approx(1e-3)
    assert outputs["supply.flow"] == pytest.approx(-1e-3, rel=1e-6)
    assert outputs["theirs.power"] == pytest.approx(5e-4 * 3.005e6)
    capacity = 1e-5 / STIFF.bulk_modulus
    assert equations.rates(np.array([3.005e6]), inputs, parameters)[0] == pytest.approx(
        (5e-4 - 1e-3) / capacity, rel=1e-6
    )
