"""Transmission lines against closed forms: water hammer, steady flow, frequency response, energy, mass."""

from __future__ import annotations

import re
from math import pi, sqrt
from typing import Any

import numpy as np
import pytest
from line_bench import (
    AREA,
    DELAY,
    DIAMETER,
    IMPEDANCE,
    LENGTH,
    OIL,
    PRESSURE,
    RESISTANCE,
    SPEED,
    VISCOSITY,
    closed_line,
    driven,
    fields,
    friction_function,
    line,
    model,
    source,
    volume,
)

import mbsfmu
from hydraulics import (
    Capillary,
    Circuit,
    CircuitEquations,
    DataError,
    FlowSource,
    Line,
    LineEnd,
    Oil,
    TransmissionLine,
    wave_speed,
)
from hydraulics.fluid import ATMOSPHERIC_PRESSURE
from hydraulics.transmission_line import WEIGHTINGS, LineGrid, turbulent_factor
from mbsfmu import LinearSignal, Result

FLOW = 1e-4


def hammer(solver: str | None = None, **others: Any) -> Result:
    """Flow in a line from a source that is suddenly stopped: a closed valve from the start on."""
    system = model(source(), line(initial_flow=FLOW, **others), volume(), B=PRESSURE)
    given = {} if solver is None else {"solver": solver}
    return system.simulation(**given).run(stop=12.5 * DELAY, output_step=DELAY / 10.0)


@pytest.mark.parametrize("solver", ["rodas5p", "radau"])
def test_water_hammer_has_the_rise_of_joukowsky_and_a_period_of_four_delays(solver: str) -> None:
    """Δp = ρ c Δv at a closed valve; the source reflects it with the other sign, the valve with the same."""
    result = hammer(solver)
    rise = OIL.density * SPEED * FLOW / AREA
    for half in range(6):
        there = (result.time > (2 * half + 0.25) * DELAY) & (result.time < (2 * half + 1.95) * DELAY)
        expected = PRESSURE + rise * (-1.0) ** half
        assert result["circuit.B.pressure"][there] == pytest.approx(expected, rel=1e-6)
        before = (result.time > (2 * half - 0.75) * DELAY) & (result.time < (2 * half + 0.95) * DELAY)
        assert result["circuit.line.inlet_flow"][before] == pytest.approx(FLOW * (-1.0) ** half, rel=1e-5)


@pytest.mark.parametrize(("share", "reflected"), [(1.0, 0.0), (3.0, 0.5), (1.0 / 3.0, -0.5)])
def test_end_reflects_by_its_resistance(share: float, reflected: float) -> None:
    """A resistance R at the end reflects (R − Z) / (R + Z) of a wave, nothing where it equals Z."""
    load = Capillary(name="load", inlet="B", outlet="T", diameter=1e-3, length=0.1, viscosity=1e-3)
    load = load.model_copy(update={"viscosity": share * IMPEDANCE * pi * 1e-12 / (128.0 * 0.1)})
    step = LinearSignal(times=(0.0, 1e-5), values=(PRESSURE, 1.1 * PRESSURE))
    parts = driven(), line(), volume(size=1e-8), load, source("T")
    system = model(*parts, signals={"circuit.drive.pressure": step}, B=PRESSURE)
    result = system.simulation(solver="rodas5p").run(stop=1.9 * DELAY, output_step=DELAY / 10.0)
    # a step within a sample arrives as a ramp over one
    end = result["circuit.B.pressure"][-1] - PRESSURE
    oil = sqrt(2.0 * OIL.bulk_modulus)  # mass, not volume, passes a drop: a fraction of the pressures over K
    assert end == pytest.approx((1.0 + reflected) * 0.1 * PRESSURE, rel=2.0 * PRESSURE / oil**2 + 1e-3)


@pytest.mark.parametrize("friction", ["steady", "trikha", "kagawa"])
@pytest.mark.parametrize("flow", [1e-4, 1e-3])
def test_steady_flow_stays_and_has_the_drop_of_hagen_poiseuille_or_blasius(friction: str, flow: float) -> None:
    """Started with the flow that its pressures drive, a line stays there; the law of friction is that of `line`."""
    reynolds = 4.0 * flow * OIL.density / (pi * DIAMETER * VISCOSITY)
    factor = max(0.3164 / reynolds**0.25, 64.0 / reynolds)
    drop = factor * LENGTH / DIAMETER * 0.5 * OIL.density * (flow / AREA) ** 2
    if reynolds < 1000.0:
        assert drop == pytest.approx(RESISTANCE * flow, rel=1e-12)
    system = model(source(), source("B", PRESSURE - drop), line(friction, initial_flow=flow))
    result = system.simulation(solver="rodas5p").run(stop=5.0 * DELAY, output_step=DELAY / 7.0)
    for name in ("inlet_flow", "outlet_flow"):
        assert result[f"circuit.line.{name}"] == pytest.approx(flow, rel=1e-9)
    for side in ("inlet", "outlet"):
        assert result[f"circuit.line.{side}_loss"] == pytest.approx(0.5 * drop * flow, rel=1e-9)


def test_flow_between_two_pressures_comes_to_that_of_hagen_poiseuille() -> None:
    """From rest, after some hundred delays."""
    system = model(source(), source("B", PRESSURE - 1e5), line("kagawa", reaches=4))
    result = system.simulation(solver="rodas5p").run(stop=4.0, output_step=0.1)
    assert result["circuit.line.outlet_flow"][-1] == pytest.approx(1e5 / RESISTANCE, rel=1e-4)


def response(friction: str, reaches: int, size: float) -> tuple[Any, Any, Any]:
    """Laplace transforms of inlet flow and outlet pressure over inlet pressure, by a pulse and what follows it."""
    step, stop = DELAY / 40.0, 60.0 * DELAY
    times = np.linspace(0.0, 0.8 * DELAY, 41)
    pulse = 1e5 * np.sin(np.pi * times / times[-1]) ** 2
    signal = LinearSignal(times=tuple(times), values=tuple(PRESSURE + pulse))
    parts = driven(), line(friction, reaches=reaches), volume(size=size)
    system = model(*parts, signals={"circuit.drive.pressure": signal}, B=PRESSURE)
    result = system.simulation(solver="rodas5p").run(stop=stop, output_step=step)
    s = 0.1 / DELAY + 2j * np.pi * np.arange(0.05, 1.3, 0.02) / DELAY
    at = np.arange(round(stop / step)) * step
    kernel = np.exp(-np.outer(s, at))
    into = np.interp(at, result.time, result["circuit.line.inlet_flow"])
    there = np.interp(at, result.time, result["circuit.B.pressure"]) - PRESSURE
    here = np.interp(at, times, pulse, right=0.0)
    transformed = [np.trapezoid(kernel * each, at, axis=1) for each in (into, there, here)]
    return s, transformed[0] / transformed[2], transformed[1] / transformed[2]


@pytest.mark.parametrize("friction", ["none", "steady", "trikha", "kagawa"])
def test_frequency_response_is_that_of_the_closed_form(friction: str) -> None:
    """Over three resonances the error of Z_c tanh Γ and 1 / cosh Γ falls as the reaches squared."""
    size, errors = 1e-6, []
    for reaches in (10, 40):
        s, into, there = response(friction, reaches, size)
        expected = closed_line(s, friction, size)
        errors.append([np.max(np.abs(a - b)) / np.max(np.abs(b)) for a, b in zip((into, there), expected, strict=True)])
    assert np.max(errors[0]) < 0.12
    assert np.max(errors[1]) < 0.016
    assert np.min(np.array(errors[0]) / np.array(errors[1])) > 5.0
    if friction == "kagawa":
        exact = closed_line(s, "exact", size)
        assert np.max(np.abs(into - exact[0])) < 0.025 * np.max(np.abs(exact[0]))
        assert np.max(np.abs(there - exact[1])) < 0.025 * np.max(np.abs(exact[1]))


@pytest.mark.parametrize(("friction", "error"), [("kagawa", 0.01), ("trikha", 0.17)])
def test_weighting_functions_are_those_of_viscous_flow(friction: str, error: float) -> None:
    """The friction function N of their sums against −J₀ / J₂, from slow to fast oscillations."""
    s = 1j * np.geomspace(1e-1, 1e4, 60) * VISCOSITY / OIL.density / (0.5 * DIAMETER) ** 2
    exact = friction_function(s, "exact")
    assert np.max(np.abs(friction_function(s, friction) / exact - 1.0)) < error
    assert all(len(weighting.factors) == len(weighting.rates) for weighting in WEIGHTINGS.values())


def lumped(segments: int, friction: bool) -> tuple[list[Any], dict[str, float]]:
    """A line as segments with inertia, and volumes of its oil between them."""
    nodes = ["A", *(f"N{index}" for index in range(1, segments)), "B"]
    viscosity = VISCOSITY if friction else 1e-9
    # the compliance l A / ρ c² in volumes of the oil
    size = AREA * LENGTH / segments * OIL.bulk_modulus / (OIL.density * SPEED**2)
    parts: list[Any] = []
    for index in range(segments):
        ends = {"inlet": nodes[index], "outlet": nodes[index + 1]}
        length = LENGTH / segments
        parts.append(Line(name=f"part_{index}", **ends, diameter=DIAMETER, length=length, viscosity=viscosity))
        share = 0.5 if index == segments - 1 else 1.0
        parts.append(volume(nodes[index + 1], share * size))
    return parts, dict.fromkeys(nodes[1:], PRESSURE)


def test_lumped_line_of_many_segments_comes_to_the_same() -> None:
    """The difference of a smooth pulse falls with the number of segments squared."""
    times = np.linspace(0.0, 4.0 * DELAY, 81)
    signal = LinearSignal(times=tuple(times), values=tuple(PRESSURE + 1e5 * np.sin(np.pi * times / times[-1]) ** 2))
    signals, stop, step = {"circuit.drive.pressure": signal}, 10.0 * DELAY, DELAY / 8.0
    whole = model(driven(), line("steady", reaches=40), volume(size=1e-9), signals=signals, B=PRESSURE)
    expected = whole.simulation(solver="rodas5p").run(stop=stop, output_step=step)["circuit.B.pressure"]
    errors = []
    for segments in (8, 16, 32):
        parts, pressures = lumped(segments, friction=True)
        result = model(driven(), *parts, signals=signals, **pressures).simulation(solver="rodas5p")
        there = result.run(stop=stop, output_step=step)["circuit.B.pressure"]
        errors.append(np.max(np.abs(there - expected)) / np.ptp(expected))
    assert errors[0] / errors[1] > 3.0
    assert errors[1] / errors[2] > 2.5
    assert errors[2] < 0.01


@pytest.mark.parametrize("friction", ["none", "steady", "kagawa"])
def test_oil_and_energy_in_the_line_are_those_of_its_pressure(friction: str) -> None:
    """Filled by a pump, closed, and come to rest: V (p − p_a) / K of oil and V (p² − p_a²) / 2 K more than at p_a."""
    parts = FlowSource(name="pump", node="A"), line(friction), volume("A", 1e-4), volume("B", 1e-4)
    pumped = LinearSignal(times=(0.0, 10.0 * DELAY, 20.0 * DELAY), values=(0.0, 1e-4, 0.0))
    system = model(*parts, signals={"circuit.pump.flow": pumped}, A=1e6, B=1e6)
    result = system.simulation(solver="rodas5p").run(stop=60.0 * DELAY, output_step=DELAY / 2.0)
    last = slice(-40, None)  # over whole periods of what still swings
    pressure = np.mean(0.5 * (result["circuit.A.pressure"] + result["circuit.B.pressure"])[last])
    assert pressure > 5e6
    compliance = LENGTH * AREA / (OIL.density * SPEED**2)
    content = LENGTH * AREA + compliance * (pressure - ATMOSPHERIC_PRESSURE)
    taken = result["circuit.line.volume"][last] - LENGTH * AREA
    assert np.mean(taken) == pytest.approx(content - LENGTH * AREA, rel=2e-4)
    energy = 0.5 * compliance * (pressure**2 - ATMOSPHERIC_PRESSURE**2)
    assert np.mean(result["circuit.line.stored_energy"][last]) == pytest.approx(energy, rel=3e-3)
    assert np.max(np.abs(result["circuit.hydraulic_energy.drift"])) < 1e-6 * energy
    supplied = OIL.density * 1e-4 * 10.0 * DELAY
    mass = result["circuit.oil.mass"]
    assert mass[-1] - mass[0] == pytest.approx(supplied, rel=0.01)  # the pump's flow is that at the node's density
    density = OIL.density * np.exp((result["circuit.A.pressure"] - ATMOSPHERIC_PRESSURE) / OIL.bulk_modulus)
    flow = np.interp(result.time, (0.0, 10.0 * DELAY, 20.0 * DELAY), (0.0, 1e-4, 0.0))
    assert mass[-1] - mass[0] == pytest.approx(np.trapezoid(density * flow, result.time), rel=1e-4)


def test_friction_takes_the_energy_of_the_waves() -> None:
    """Of a stopped flow nothing remains; friction took the kinetic energy, and that of the pressure drop."""
    viscosity, high = 0.1, 3e5
    drop = viscosity / VISCOSITY * RESISTANCE * FLOW
    parts = source("A", high), line("kagawa", viscosity=viscosity, initial_flow=FLOW, reaches=40), volume()
    result = model(*parts, B=high - drop).simulation(solver="rodas5p").run(stop=2.0, output_step=0.01)
    compliance = LENGTH * AREA / (OIL.density * SPEED**2)
    kinetic = 0.5 * OIL.density * LENGTH / AREA * FLOW**2
    counted_late = 0.25 * DELAY * drop * FLOW  # of the flow before the start: a quarter of the delay on average
    expected = kinetic + 0.5 * compliance * drop**2 / 3.0 + counted_late
    assert result["circuit.hydraulic_energy.dissipated"][-1] == pytest.approx(expected, rel=0.02)
    still = 0.5 * compliance * (high**2 - ATMOSPHERIC_PRESSURE**2)
    assert result["circuit.line.stored_energy"][-1] == pytest.approx(still, abs=0.02 * kinetic)
    assert result["circuit.B.pressure"][-1] == pytest.approx(high, rel=1e-3)
    assert np.max(np.abs(result["circuit.hydraulic_energy.drift"])) < 1e-5 * kinetic


@pytest.mark.parametrize("reaches", [2, 3])
def test_few_reaches_are_right_for_slow_flow(reaches: int) -> None:
    """The compliance of a closed line, and its steady flow, do not depend on the grid."""
    slow = LinearSignal(times=(0.0, 1.0), values=(PRESSURE, 1.1 * PRESSURE))
    parts = driven(), line("kagawa", reaches=reaches), volume(size=1e-9)
    system = model(*parts, signals={"circuit.drive.pressure": slow}, B=PRESSURE)
    result = system.simulation(solver="rodas5p").run(stop=1.0, output_step=0.05)
    filling = (LENGTH * AREA / (OIL.density * SPEED**2) + 1e-9 / OIL.bulk_modulus) * 0.1 * PRESSURE
    assert result["circuit.line.inlet_flow"][-1] == pytest.approx(filling, rel=1e-3)


# -- solvers, states ------------------------------------------------------------------------------------------


def test_python_and_compiled_runs_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps in C and those in Python are the same to round-off."""
    compiled = hammer("trapezoidal", reaches=4, friction="kagawa", viscosity=VISCOSITY)
    monkeypatch.setenv("MBSFMU_COMPILED", "0")
    plain = hammer("trapezoidal", reaches=4, friction="kagawa", viscosity=VISCOSITY)
    for name in ("circuit.B.pressure", "circuit.line.inlet_flow", "circuit.line.stored_energy"):
        assert plain[name] == pytest.approx(compiled[name], rel=1e-9, abs=1e-12 * np.max(np.abs(compiled[name])))


@pytest.mark.parametrize("solver", ["rodas5p", "bdf2"])
def test_saved_state_has_the_waves(solver: str) -> None:
    """A run goes on from a saved state to the last bit."""
    simulation = model(source(), line("trikha", initial_flow=FLOW), volume(), B=PRESSURE).simulation(solver=solver)
    simulation.initialize()
    simulation.step(0.0, 3.3 * DELAY)
    saved = simulation.save()
    simulation.step(3.3 * DELAY, 2.0 * DELAY)
    there = simulation.get("B.pressure")
    simulation.step(5.3 * DELAY, DELAY)
    simulation.restore(saved)
    simulation.step(3.3 * DELAY, 2.0 * DELAY)
    assert simulation.get("B.pressure") == there


def test_equilibrium_with_flow_is_where_the_model_starts() -> None:
    """Flow through a line between two resistances: pressures and flow divide by Hagen and Poiseuille, and stay."""
    resistance = 128.0 * VISCOSITY * 0.5 / (pi * 2e-3**4)
    gap = {"diameter": 2e-3, "length": 0.5, "viscosity": VISCOSITY}
    inlet, outlet = (
        Capillary(name="inlet", inlet="P", outlet="A", **gap),
        Capillary(name="outlet", inlet="B", outlet="T", **gap),
    )
    parts = source("P"), inlet, volume("A", 1e-5), line("kagawa"), volume("B", 1e-5), outlet, source("T", 1e6)
    found = model(*parts, A=5e6, B=4e6).equilibrium()
    flow = found.values["circuit.line.outlet_flow"]
    # mass, not volume, is conserved: a fraction p / K of the flow
    assert flow == pytest.approx((PRESSURE - 1e6) / (2.0 * resistance + RESISTANCE), rel=PRESSURE / OIL.bulk_modulus)
    result = found.model.simulation(solver="rodas5p").run(stop=4.0 * DELAY, output_step=DELAY)
    for node in ("A", "B"):
        assert result[f"circuit.{node}.pressure"] == pytest.approx(found.values[f"circuit.{node}.pressure"], rel=1e-9)
    drop = found.values["circuit.A.pressure"] - found.values["circuit.B.pressure"]
    assert drop == pytest.approx(RESISTANCE * flow, rel=1e-9)


def test_ensemble_has_the_runs_of_single_machines() -> None:
    """Lines in lanes of vectors, of other viscosity."""
    alone = model(source(), line("kagawa", initial_flow=FLOW, reaches=4), volume(size=1e-5), B=PRESSURE)
    system = mbsfmu.CoupledModel.from_dict({**alone.to_dict(), "outputs": ["circuit.B.pressure"]})
    given = np.array([0.01, 0.04, 0.2])
    many = system.ensemble({"circuit.line.viscosity": given}, step=DELAY / 8.0).run(stop=6.0 * DELAY)
    for index, viscosity in enumerate(given):
        alone = mbsfmu.CoupledModel.from_dict({**system.to_dict(), "start": {"circuit.line.viscosity": viscosity}})
        result = alone.simulation(solver="trapezoidal", step=DELAY / 8.0).run(stop=6.0 * DELAY)
        assert many["circuit.B.pressure"][index, -1] == pytest.approx(result["circuit.B.pressure"][-1], rel=1e-9)


# -- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"length": 0.0}, "length"),
        ({"wave_speed": 6000.0}, "wave_speed"),
        ({"wave_speed": 1.0}, "wave_speed"),
        ({"reaches": 1}, "reaches"),
        ({"reaches": 201}, "reaches"),
        ({"diameter": -0.01}, "diameter"),
        ({"friction": "zielke"}, "friction"),
        ({"viscosity": 0.04}, "has a viscosity of 0.04 Pa s, but no friction"),
        ({"friction": "kagawa"}, "has no viscosity; its friction 'kagawa' needs it"),
        ({"length": 0.01}, "a delay of 8.33e-06 s in 10 reaches, 8.33e-07 s each; a reach must take at least 1e-06 s"),
    ],
)
@pytest.mark.parametrize("kind", [TransmissionLine, LineEnd])
def test_impossible_lines_are_refused(
    kind: type[TransmissionLine | LineEnd], given: dict[str, Any], reason: str
) -> None:
    """In one sentence that names the number."""
    nodes = {"inlet": "A", "outlet": "B"} if kind is TransmissionLine else {"node": "A"}
    with pytest.raises(DataError, match=re.escape(reason)):
        kind(name="line", **nodes, **{**fields(), **given})


def test_linear_system_and_sensitivities_of_a_delay_are_refused() -> None:
    """A delay has no linear system with finitely many states, and runs with updates no derivatives."""
    system = model(driven(), line(), volume(), B=PRESSURE)
    with pytest.raises(mbsfmu.InputError, match=r"circuit\.line has a delay, which no linear system"):
        system.linearize()
    with pytest.raises(mbsfmu.InputError, match="has sampled blocks or lines with a delay"):
        system.sensitivities(["circuit.line.diameter"], stop=0.1)


def test_wave_speed_is_that_of_oil_air_and_walls() -> None:
    """1 / K of oil and walls add up; air softens oil at low pressure [Wylie, Streeter 1993, ch. 1]."""
    assert wave_speed(OIL, 1e7) == pytest.approx(sqrt(1.5e9 / 850.0), rel=1e-12)
    assert wave_speed(OIL, 1e7, 1.5e9) == pytest.approx(sqrt(0.75e9 / 850.0), rel=1e-12)
    airy = Oil(bulk_modulus=1.5e9, density=850.0, air_content=0.01)
    pressure, air = 1e6, 0.01 * ATMOSPHERIC_PRESSURE / 1e6
    liquid = np.exp((ATMOSPHERIC_PRESSURE - pressure) / 1.5e9)
    compliance = (liquid / 1.5e9 + air / pressure) / (liquid + air)
    assert wave_speed(airy, pressure) == pytest.approx(1.0 / sqrt(850.0 * compliance), rel=1e-12)
    with pytest.raises(DataError, match="pressure is 0 Pa; it must be above the vapour pressure"):
        wave_speed(airy, 0.0)
    with pytest.raises(DataError, match="wall_modulus is -1 Pa"):
        wave_speed(OIL, 1e7, -1.0)


def test_impedance_and_laminar_drop_are_those_of_the_line() -> None:
    """p = a + Z Q at an end without friction, and the equations give that flow."""
    equations = CircuitEquations(Circuit(oil=OIL, components=(source(), source("B"), line()), initial_pressures={}))
    parameters = np.array([each.start for each in equations.parameters])
    states = equations.initial_states(parameters)
    states[[each.name for each in equations.states].index("line.inlet_characteristic")] -= 1e5
    discrete = equations.initial_discrete(parameters)
    outputs = equations.evaluate_outputs(states, np.zeros(0), parameters, discrete)
    place = [each.name for each in equations.outputs].index("line.inlet_flow")
    assert outputs[place] == pytest.approx(1e5 / IMPEDANCE, rel=1e-9)
    assert LineGrid(LENGTH, SPEED, 10, "none").period == pytest.approx(DELAY / 10.0)
    assert turbulent_factor(np.array(1e5)) == pytest.approx(0.3164 / 1e5**0.25 * 1e5 / 64.0)
