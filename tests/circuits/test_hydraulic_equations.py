"""The equations of whole circuits, against eqs. 22–29 and 42–44 of the paper written by hand."""

from __future__ import annotations

from math import exp, sqrt, tanh
from typing import Any

import pytest
from hydraulic_bench import (
    AIRLESS,
    AREA_2,
    AREA_3,
    FRICTION,
    HOSE,
    HOSE_1,
    HOSE_2,
    HOSE_3,
    LAMINAR,
    OIL,
    PUMP,
    STROKE,
    TANK,
    THROTTLE,
    TIME_CONSTANT,
    VALVE,
    WALL,
    Bench,
    paper_circuit,
    two_volume_circuit,
)
from hypothesis import given
from hypothesis import strategies as st

from hydraulics import Circuit, Hose, PressureSource, Tank, Throttle, Volume, balanced

LOAD = 11029.380862  # static force of the four-bar in N
START_LENGTH = sqrt(2.0)

pressures = st.floats(0.0, 2e7)
spools = st.floats(-10.0, 10.0)
commands = st.floats(-30.0, 30.0)
lengths = st.floats(0.9, 1.8)
speeds = st.floats(-0.5, 0.5)

PAPER = Bench(paper_circuit())
RUBBING = Bench(paper_circuit(**FRICTION))
OVERLAPPED = Bench(paper_circuit(valve={"dead_band": 1.5}))
TWO_VOLUMES = Bench(two_volume_circuit())


def root_flow(coefficient: float, drop: float) -> float:
    """Eqs. 24 and 26 with their laminar part, by branches."""
    if abs(drop) < LAMINAR:
        return coefficient * drop / sqrt(LAMINAR)
    return coefficient * sqrt(drop) if drop > 0.0 else -coefficient * sqrt(-drop)


def valve_flows(spool: float, at_a: float, at_b: float) -> tuple[float, float]:
    """Flows into a and out of b."""
    if spool >= 0.0:
        return root_flow(VALVE * spool, PUMP - at_a), root_flow(VALVE * spool, at_b - TANK)
    return -root_flow(VALVE * -spool, at_a - TANK), -root_flow(VALVE * -spool, PUMP - at_b)


def stiffness(hose: float, chamber: float) -> float:
    """B_e / V of eqs. 22 and 23 for a hose and a chamber."""
    volume = hose + chamber
    return 1.0 / (1.0 / OIL + hose / (volume * HOSE) + chamber / (volume * WALL)) / volume


def chambers(length: float, sign: float = 1.0) -> tuple[float, float]:
    """Lengths of the chambers by eq. 43, whose signs as printed come with `sign=-1`."""
    start_2 = START_LENGTH - STROKE
    start_3 = STROKE - start_2
    return start_2 + sign * (length - START_LENGTH), start_3 - sign * (length - START_LENGTH)


def paper_rates(
    *,
    p1: float,
    p2: float,
    p3: float,
    spool: float,
    command: float,
    length: float,
    speed: float,
    sign: float = 1.0,
) -> dict[str, float]:
    """Eqs. 27 and 42 to 44."""
    chamber_2, chamber_3 = chambers(length, sign)
    into_1, out_of_3 = valve_flows(spool, p1, p3)
    throttled = root_flow(THROTTLE, p1 - p2)
    return {
        "V1.pressure": stiffness(HOSE_1, 0.0) * (into_1 - throttled),
        "V2.pressure": stiffness(HOSE_2, AREA_2 * chamber_2) * (throttled - AREA_2 * speed),
        "V3.pressure": stiffness(HOSE_3, AREA_3 * chamber_3) * (AREA_3 * speed - out_of_3),
        "valve.spool": (min(10.0, max(-10.0, command)) - spool) / TIME_CONSTANT,
    }


def near(expected: dict[str, float]) -> Any:
    # Flows of up to 1e-3 m³/s cancel in nodes of up to 1e13 Pa/m³: round-off is below 1e-4 Pa/s.
    return pytest.approx(expected, rel=1e-10, abs=1e-4)


@given(
    p1=pressures,
    p2=pressures,
    p3=pressures,
    spool=spools,
    command=commands,
    length=lengths,
    speed=speeds,
)
def test_rates_are_those_of_the_paper(
    *, p1: float, p2: float, p3: float, spool: float, command: float, length: float, speed: float
) -> None:
    rates = PAPER.rates(
        V1__pressure=p1,
        V2__pressure=p2,
        V3__pressure=p3,
        valve__spool=spool,
        valve__command=command,
        cylinder__length=length,
        cylinder__velocity=speed,
    )
    assert rates == near(paper_rates(p1=p1, p2=p2, p3=p3, spool=spool, command=command, length=length, speed=speed))


def test_eq_43_as_printed_is_another_circuit() -> None:
    at = {"p1": 5e6, "p2": 4e6, "p3": 3e6, "spool": 4.0, "command": 4.0, "length": 1.6, "speed": 0.2}
    rates = PAPER.rates(
        V1__pressure=at["p1"],
        V2__pressure=at["p2"],
        V3__pressure=at["p3"],
        valve__spool=at["spool"],
        valve__command=at["command"],
        cylinder__length=at["length"],
        cylinder__velocity=at["speed"],
    )
    assert rates == near(paper_rates(**at))
    printed = paper_rates(**at, sign=-1.0)
    for node in ("V2.pressure", "V3.pressure"):
        assert abs(rates[node] - printed[node]) > 0.1 * abs(printed[node])


@given(pressures, pressures, spools, lengths, speeds)
def test_circuit_without_throttle(p2: float, p3: float, spool: float, length: float, speed: float) -> None:
    chamber_2, chamber_3 = chambers(length)
    into_2, out_of_3 = valve_flows(spool, p2, p3)
    rates = TWO_VOLUMES.rates(
        V2__pressure=p2,
        V3__pressure=p3,
        valve__spool=spool,
        cylinder__length=length,
        cylinder__velocity=speed,
    )
    assert rates == near(
        {
            "V2.pressure": stiffness(HOSE_2, AREA_2 * chamber_2) * (into_2 - AREA_2 * speed),
            "V3.pressure": stiffness(HOSE_3, AREA_3 * chamber_3) * (AREA_3 * speed - out_of_3),
            "valve.spool": -spool / TIME_CONSTANT,
        }
    )


@given(pressures, pressures, speeds, lengths)
def test_force_and_outputs_of_the_cylinder(p2: float, p3: float, speed: float, length: float) -> None:
    outputs = RUBBING.outputs(V2__pressure=p2, V3__pressure=p3, cylinder__velocity=speed, cylinder__length=length)
    rubbing = 400.0 * speed + (120.0 + 80.0 * exp(-((speed / 0.02) ** 2))) * tanh(speed / 0.003)
    force = p2 * AREA_2 - p3 * AREA_3 - rubbing
    expected = {"friction": rubbing, "force": force, "power": force * speed}
    assert {name: outputs[f"cylinder.{name}"] for name in expected} == pytest.approx(expected, rel=1e-10, abs=1e-9)
    assert outputs["cylinder.pressure_piston"] == p2
    assert outputs["cylinder.pressure_rod"] == p3


@given(pressures, pressures, spools)
def test_flows_of_the_valve(p1: float, p3: float, spool: float) -> None:
    outputs = PAPER.outputs(V1__pressure=p1, V3__pressure=p3, valve__spool=spool)
    into_a, out_of_b = valve_flows(spool, p1, p3)
    assert outputs["valve.flow_a"] == pytest.approx(into_a, rel=1e-12, abs=1e-18)
    assert outputs["valve.flow_b"] == pytest.approx(-out_of_b, rel=1e-12, abs=1e-18)
    pump, tank = (into_a, -out_of_b) if spool >= 0.0 else (-out_of_b, into_a)
    assert outputs["pump.flow"] == pytest.approx(pump, rel=1e-12, abs=1e-18)
    assert outputs["tank.flow"] == pytest.approx(tank, rel=1e-12, abs=1e-18)
    assert outputs["pump.power"] == pytest.approx(PUMP * pump, rel=1e-12, abs=1e-12)
    assert outputs["tank.power"] == pytest.approx(TANK * tank, rel=1e-12, abs=1e-12)


@given(pressures, pressures, spools)
def test_overlapped_valve_opens_beyond_its_dead_band(p1: float, p3: float, spool: float) -> None:
    outputs = OVERLAPPED.outputs(V1__pressure=p1, V3__pressure=p3, valve__spool=spool)
    opening = max(abs(spool) - 1.5, 0.0)
    into_a, out_of_b = valve_flows(opening if spool > 0.0 else -opening, p1, p3)
    assert outputs["valve.flow_a"] == pytest.approx(into_a, rel=1e-11, abs=1e-18)
    assert outputs["valve.flow_b"] == pytest.approx(-out_of_b, rel=1e-11, abs=1e-18)


@pytest.mark.parametrize(("length", "chamber_2", "chamber_3"), [(0.85, 0.0, STROKE + 0.05), (1.9, 1.0, 0.0)])
def test_chambers_never_take_from_the_hoses(length: float, chamber_2: float, chamber_3: float) -> None:
    rates = PAPER.rates(V2__pressure=5e6, V1__pressure=5e6, cylinder__velocity=0.1, cylinder__length=length)
    assert rates["V2.pressure"] == pytest.approx(-stiffness(HOSE_2, AREA_2 * chamber_2) * AREA_2 * 0.1)
    assert rates["V3.pressure"] == pytest.approx(stiffness(HOSE_3, AREA_3 * chamber_3) * AREA_3 * 0.1)


@pytest.mark.parametrize(("length", "push"), [(0.899, 1e5), (1.801, -1e5), (1.35, 0.0)])
def test_end_stops_push_in_the_force(length: float, push: float) -> None:
    free = PAPER.outputs(cylinder__length=1.35)["cylinder.force"]
    assert PAPER.outputs(cylinder__length=length)["cylinder.force"] - free == pytest.approx(push, abs=1e-6)


@pytest.mark.parametrize("bench", [PAPER, RUBBING])
def test_start_holds_the_static_load(bench: Bench) -> None:
    load = {"cylinder.initial_load": LOAD}
    start = bench.start(load)
    assert start["V1.pressure"] == start["V2.pressure"]
    assert start["V2.pressure"] == pytest.approx((LOAD + 3.5e6 * AREA_3) / AREA_2, rel=1e-14)
    assert (start["V3.pressure"], start["valve.spool"]) == (3.5e6, 0.0)
    held = {name.replace(".", "__"): value for name, value in start.items()}
    at_rest = {**held, "cylinder__length": START_LENGTH, "cylinder__velocity": 0.0, "valve__command": 0.0}
    assert set(bench.rates(load, **at_rest).values()) == {0.0}
    assert bench.outputs(load, **at_rest)["cylinder.force"] == pytest.approx(LOAD, rel=1e-13)


@given(st.floats(0.0, 30e3), st.floats(1.0, 2e3))
def test_start_holds_no_other_load(load: float, more: float) -> None:
    start = PAPER.start({"cylinder.initial_load": load})
    force = PAPER.outputs(V2__pressure=start["V2.pressure"], V3__pressure=start["V3.pressure"])["cylinder.force"]
    assert force == pytest.approx(load, rel=1e-12, abs=1e-9)
    assert force != pytest.approx(load + more, rel=1e-12, abs=1e-9)


def test_rod_side_can_balance_too() -> None:
    data = paper_circuit(initial_load=-4151.56).to_dict()
    data["initial_pressures"] = {"V1": 2e6, "V2": 2e6, "V3": balanced("cylinder").to_dict()}
    start = Bench(Circuit.from_dict(data)).start()
    assert start["V3.pressure"] == pytest.approx((2e6 * AREA_2 + 4151.56) / AREA_3, rel=1e-13)


def test_initial_pressures_are_parameters() -> None:
    start = PAPER.start({"V3.initial_pressure": 2e6, "valve.initial_spool": 3.0})
    assert (start["V3.pressure"], start["valve.spool"]) == (2e6, 3.0)
    assert start["V2.pressure"] == pytest.approx(2e6 * AREA_3 / AREA_2, rel=1e-13)


def test_rigid_volume_and_hose_of_one_node_add_up() -> None:
    circuit = Circuit(
        oil=AIRLESS,
        components=(
            PressureSource(name="pump", node="P", pressure=PUMP),
            Throttle(name="throttle", inlet="P", outlet="A", orifice_diameter=1e-3, discharge_coefficient=0.7),
            Hose(name="hose", node="A", volume=3e-5, bulk_modulus=HOSE),
            Volume(name="manifold", node="A", volume=5e-5),
        ),
        initial_pressures={"A": 1e6},
    )
    bench = Bench(circuit)
    flow = bench.outputs()["throttle.flow"]
    assert flow > 0.0
    # Compressed oil of 8e-5 m³, and a hose of 3e-5 m³ that widens.
    capacity = 8e-5 / OIL + 3e-5 / HOSE
    assert bench.rates()["A.pressure"] == pytest.approx(flow / capacity, rel=1e-12)


def test_circuit_of_sources_alone_has_no_states() -> None:
    circuit = Circuit(
        oil=AIRLESS,
        components=(
            PressureSource(name="pump", node="P", pressure=PUMP),
            Tank(name="tank", node="T", pressure=TANK),
            Throttle(name="leak", inlet="P", outlet="T", orifice_diameter=0.006, discharge_coefficient=0.8),
        ),
    )
    bench = Bench(circuit)
    assert bench.rates() == bench.start() == {}
    outputs = bench.outputs()
    assert outputs["leak.flow"] == pytest.approx(root_flow(THROTTLE, PUMP - TANK), rel=1e-13)
    assert outputs["pump.flow"] == -outputs["tank.flow"] == outputs["leak.flow"]
