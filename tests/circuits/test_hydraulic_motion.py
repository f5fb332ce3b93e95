"""Circuits in motion, integrated with SciPy, against closed forms and against root finding."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np
import pytest
from hydraulic_bench import (
    AIRLESS,
    AREA_2,
    AREA_3,
    HOSE,
    HOSE_2,
    HOSE_3,
    LAMINAR,
    OIL,
    PUMP,
    TANK,
    THROTTLE,
    TIME_CONSTANT,
    VALVE,
    WALL,
    Bench,
    paper_circuit,
    two_volume_circuit,
)
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from hydraulics import Circuit, CircuitEquations, Hose, Throttle, Volume

Floats = NDArray[np.float64]


def start_parameters(equations: CircuitEquations) -> Floats:
    return np.array([each.start for each in equations.parameters])


def integrate(
    circuit: Circuit, inputs: Callable[[float], list[float]], times: Floats, start: list[float] | None = None
) -> Floats:
    """Return the states at the times, shape (number of states, number of times)."""
    equations = CircuitEquations(circuit)
    parameters = start_parameters(equations)
    run = solve_ivp(
        lambda time, states: equations.rates(states, np.array(inputs(time)), parameters),
        (times[0], times[-1]),
        equations.initial_states(parameters) if start is None else start,
        method="LSODA",
        t_eval=times,
        rtol=1e-10,
        atol=1e-9,
    )
    assert run.success, run.message
    return np.asarray(run.y)


@pytest.mark.parametrize(("command", "reached"), [(10.0, 10.0), (-4.0, -4.0), (25.0, 10.0), (-25.0, -10.0)])
def test_spool_follows_a_step_with_its_time_constant(command: float, reached: float) -> None:
    times = TIME_CONSTANT * np.array([0.0, 0.5, 1.0, 3.0])
    spool = integrate(paper_circuit(), lambda _: [command, 1.35, 0.0], times)[-1]
    assert spool[2] / reached == pytest.approx(1.0 - exp(-1.0), rel=1e-8)  # 63.2 %
    np.testing.assert_allclose(spool, reached * (1.0 - np.exp(-times / TIME_CONSTANT)), rtol=1e-8, atol=1e-9)


def chamber_pressure(before: float, hose: float, area: float, chambers: tuple[float, float]) -> float:
    """Return the pressure of trapped oil after its chamber changed from one length to another.

    dp = −A dl / (c₀ + c₁ l), with the capacity c₀ of the hose and c₁ l of the chamber, has a closed integral.
    """
    hose_capacity = hose * (1.0 / OIL + 1.0 / HOSE)
    capacity = area * (1.0 / OIL + 1.0 / WALL)
    first, last = (hose_capacity + capacity * length for length in chambers)
    return before - area / capacity * log(last / first)


@pytest.mark.parametrize("speed", [-0.01, 0.01])
def test_trapped_oil_is_compressed_as_the_integral_says(speed: float) -> None:
    start, duration = 1.35, 0.2
    states = integrate(
        two_volume_circuit(),
        lambda time: [0.0, start + speed * time, speed],
        np.array([0.0, duration]),
        start=[2e7, 2e7, 0.0],
    )
    moved = speed * duration
    lengths_2, lengths_3 = (0.45, 0.45 + moved), (0.45, 0.45 - moved)
    assert states[0, -1] == pytest.approx(chamber_pressure(2e7, HOSE_2, AREA_2, lengths_2), rel=1e-8)
    assert states[1, -1] == pytest.approx(chamber_pressure(2e7, HOSE_3, AREA_3, lengths_3), rel=1e-8)


@pytest.mark.parametrize("length", [0.95, 1.35, 1.75])
def test_trapped_oil_is_a_spring(length: float) -> None:
    step = 1e-6
    bench = Bench(two_volume_circuit())
    rates = bench.rates(cylinder__length=length, cylinder__velocity=1.0)  # Pa per metre
    force = [
        bench.outputs(
            V2__pressure=5e6 + moved * rates["V2.pressure"],
            V3__pressure=3.5e6 + moved * rates["V3.pressure"],
            cylinder__length=length,
        )["cylinder.force"]
        for moved in (-step, step)
    ]
    springs = 0.0
    for hose, area, chamber in ((HOSE_2, AREA_2, length - 0.9), (HOSE_3, AREA_3, 1.8 - length)):
        volume = hose + area * chamber
        modulus = 1.0 / (1.0 / OIL + hose / volume / HOSE + area * chamber / volume / WALL)
        springs += modulus * area**2 / volume
    assert (force[1] - force[0]) / (2.0 * step) == pytest.approx(-springs, rel=1e-9)


def equaliser(first: Volume | Hose, pressures: tuple[float, float]) -> Circuit:
    return Circuit(
        oil=AIRLESS,
        components=(
            first,
            Throttle(name="throttle", inlet="A", outlet="B", orifice_diameter=5e-4, discharge_coefficient=0.8),
            Volume(name="right", node="B", volume=3e-4),
        ),
        initial_pressures={"A": pressures[0], "B": pressures[1]},
    )


THIN = THROTTLE * (0.5 / 6.0) ** 2  # flow coefficient of an orifice of 0.5 mm
LEFT = Volume(name="left", node="A", volume=1e-4)
SOFT = Hose(name="left", node="A", volume=1e-4, bulk_modulus=HOSE)


@pytest.mark.parametrize(("first", "capacity"), [(LEFT, 1e-4 / OIL), (SOFT, 1e-4 * (1.0 / OIL + 1.0 / HOSE))])
@pytest.mark.parametrize("pressures", [(9e6, 1e6), (1e6, 9e6)])
def test_equalising_volumes_keep_their_oil(
    first: Volume | Hose, capacity: float, pressures: tuple[float, float]
) -> None:
    other = 3e-4 / OIL
    states = integrate(equaliser(first, pressures), lambda _: [], np.linspace(0.0, 5.0, 50))
    oil = capacity * states[0] + other * states[1]
    np.testing.assert_allclose(oil, oil[0], rtol=1e-9)
    mean = (capacity * pressures[0] + other * pressures[1]) / (capacity + other)
    np.testing.assert_allclose(states[:, -1], mean, rtol=1e-6)


def test_equalisation_takes_its_time() -> None:
    states = integrate(equaliser(LEFT, (9e6, 1e6)), lambda _: [], np.linspace(0.0, 0.15, 400))
    times, drop = np.linspace(0.0, 0.15, 400), states[0] - states[1]
    slope = THIN * OIL * (1.0 / 1e-4 + 1.0 / 3e-4)
    # Turbulent: √Δp falls on a straight line. Laminar from p_l on: Δp decays exponentially.
    turns = (sqrt(8e6) - sqrt(LAMINAR)) / (0.5 * slope)
    turbulent = times < turns
    assert 10 < np.count_nonzero(turbulent) < 390
    line = sqrt(8e6) - 0.5 * slope * times[turbulent]
    np.testing.assert_allclose(np.sqrt(drop[turbulent]), line, rtol=1e-6)
    decay = LAMINAR * np.exp(-slope / sqrt(LAMINAR) * (times[~turbulent] - turns))
    np.testing.assert_allclose(drop[~turbulent], decay, rtol=1e-5, atol=1.0)


def drop_at(flow: float, coefficient: float) -> float:
    """Return the pressure drop of an orifice, its law solved for Δp."""
    turbulent = flow * abs(flow) / coefficient**2
    return turbulent if abs(turbulent) > LAMINAR else flow * sqrt(LAMINAR) / coefficient


def steady_state(spool: float, load: float) -> tuple[float, float, float, float]:
    """Return speed and pressures of a cylinder that carries a load steadily, from the static flow laws."""
    edge = VALVE * abs(spool)
    at_a, at_b = (PUMP, TANK) if spool > 0.0 else (TANK, PUMP)

    def pressures(speed: float) -> tuple[float, float, float]:
        p1 = at_a - drop_at(AREA_2 * speed, edge)
        return p1, p1 - drop_at(AREA_2 * speed, THROTTLE), at_b + drop_at(AREA_3 * speed, edge)

    def excess(speed: float) -> float:
        _, p2, p3 = pressures(speed)
        return p2 * AREA_2 - p3 * AREA_3 - load

    speed = float(brentq(excess, -1.0, 1.0, xtol=1e-15, rtol=1e-14))
    return speed, *pressures(speed)


CASES = [(10.0, 11029.38), (10.0, 25e3), (-10.0, 11029.38), (-10.0, -4151.56), (4.0, 0.0)]


@pytest.mark.parametrize(("spool", "load"), CASES)
def test_nothing_changes_at_the_steady_speed(spool: float, load: float) -> None:
    speed, p1, p2, p3 = steady_state(spool, load)
    assert speed * spool > 0.0
    at = {
        "V1__pressure": p1,
        "V2__pressure": p2,
        "V3__pressure": p3,
        "valve__spool": spool,
        "valve__command": spool,
        "cylinder__velocity": speed,
    }
    bench = Bench(paper_circuit())
    # A speed that is off by a millionth must already stand out against the round-off of the balance.
    off_speed = {**at, "cylinder__velocity": speed * (1.0 + 1e-6)}
    left, control = (max(map(abs, bench.rates(**each).values())) for each in (at, off_speed))
    assert left < 1e-3 * control
    outputs = bench.outputs(**at)
    assert outputs["cylinder.force"] == pytest.approx(load, abs=1e-6)
    assert outputs["throttle.flow"] == pytest.approx(AREA_2 * speed, rel=1e-9)


@pytest.mark.parametrize(("spool", "load"), CASES[:3])
def test_loaded_cylinder_reaches_the_steady_speed(spool: float, load: float) -> None:
    equations = CircuitEquations(paper_circuit(initial_load=load))
    parameters, mass = start_parameters(equations), 500.0
    force = [each.name for each in equations.outputs].index("cylinder.force")

    def rates(_: float, state: Floats) -> Floats:
        inputs = np.array([spool, state[-2], state[-1]])
        pull = equations.evaluate_outputs(state[:-2], inputs, parameters)[force]
        return np.append(equations.rates(state[:-2], inputs, parameters), [state[-1], (pull - load) / mass])

    start = np.append(equations.initial_states(parameters), [1.35, 0.0])
    run = solve_ivp(rates, (0.0, 1.5), start, method="LSODA", rtol=1e-6, atol=1e-6)
    assert run.success, run.message
    assert 0.9 < run.y[-2, -1] < 1.8, "it has run into a stop"
    speed, p1, p2, p3 = steady_state(spool, load)
    assert run.y[-1, -1] == pytest.approx(speed, rel=1e-6)
    reached = dict(zip([each.name for each in equations.states], run.y[:, -1], strict=False))
    assert reached["V1.pressure"] == pytest.approx(p1, rel=1e-6)
    assert reached["V2.pressure"] == pytest.approx(p2, rel=1e-6)
    assert reached["V3.pressure"] == pytest.approx(p3, rel=1e-6)
