"""Continuity and power of whole circuits: nothing appears, and only valves and friction take."""

from __future__ import annotations

import pytest
from hydraulic_bench import (
    AREA_2,
    AREA_3,
    FRICTION,
    HOSE,
    HOSE_1,
    HOSE_2,
    HOSE_3,
    OIL,
    WALL,
    Bench,
    paper_circuit,
)
from hypothesis import given
from hypothesis import strategies as st

BENCH = Bench(paper_circuit(valve={"dead_band": 0.3}, **FRICTION))
VALVE_POWER = 4e3  # W, of a wide open valve
states = st.fixed_dictionaries(
    {
        "V1__pressure": st.floats(0.0, 2e7),
        "V2__pressure": st.floats(0.0, 2e7),
        "V3__pressure": st.floats(0.0, 2e7),
        "valve__spool": st.floats(-10.0, 10.0),
        "cylinder__length": st.floats(0.9, 1.8),
        "cylinder__velocity": st.floats(-0.5, 0.5),
    }
)


def stored_flows(at: dict[str, float]) -> dict[str, float]:
    """Return the flow that each node stores in m³/s, from its rate and its capacity worked out by hand."""
    rates = BENCH.rates(**at)
    chamber_2 = AREA_2 * (at["cylinder__length"] - 0.9)
    chamber_3 = AREA_3 * (1.8 - at["cylinder__length"])
    capacities = {
        "V1": HOSE_1 / OIL + HOSE_1 / HOSE,
        "V2": (HOSE_2 + chamber_2) / OIL + HOSE_2 / HOSE + chamber_2 / WALL,
        "V3": (HOSE_3 + chamber_3) / OIL + HOSE_3 / HOSE + chamber_3 / WALL,
    }
    return {node: capacity * rates[f"{node}.pressure"] for node, capacity in capacities.items()}


@given(states)
def test_what_flows_in_is_stored_or_makes_room(at: dict[str, float]) -> None:
    outputs, stored = BENCH.outputs(**at), stored_flows(at)
    speed = at["cylinder__velocity"]
    assert sum(stored.values()) + (AREA_2 - AREA_3) * speed == pytest.approx(
        outputs["pump.flow"] + outputs["tank.flow"], rel=1e-9, abs=1e-14
    )
    assert outputs["pump.flow"] + outputs["tank.flow"] == pytest.approx(
        outputs["valve.flow_a"] + outputs["valve.flow_b"], rel=1e-12, abs=1e-18
    )
    nodes = {
        "V1": outputs["valve.flow_a"] - outputs["throttle.flow"],
        "V2": outputs["throttle.flow"] - AREA_2 * speed,
        "V3": outputs["valve.flow_b"] + AREA_3 * speed,
    }
    assert stored == pytest.approx(nodes, rel=1e-9, abs=1e-14)


@given(states)
def test_power_is_stored_used_or_lost(at: dict[str, float]) -> None:
    outputs, stored = BENCH.outputs(**at), stored_flows(at)
    speed = at["cylinder__velocity"]
    p1, p2, p3 = (at[f"V{number}__pressure"] for number in (1, 2, 3))
    supplied = outputs["pump.power"] + outputs["tank.power"]
    compression = p1 * stored["V1"] + p2 * stored["V2"] + p3 * stored["V3"]
    throttle = (p1 - p2) * outputs["throttle.flow"]
    valve = supplied - p1 * outputs["valve.flow_a"] - p3 * outputs["valve.flow_b"]
    seals = outputs["cylinder.friction"] * speed
    # Each of these alone may only take.
    assert throttle >= 0.0
    assert valve >= -1e-12 * VALVE_POWER
    assert seals >= 0.0
    total = compression + outputs["cylinder.power"] + throttle + valve + seals
    assert total == pytest.approx(supplied, rel=1e-9, abs=1e-7)


@given(states)
def test_closed_valve_joins_nothing(at: dict[str, float]) -> None:
    outputs = BENCH.outputs(**{**at, "valve__spool": 0.29})
    assert [outputs[name] for name in ("valve.flow_a", "valve.flow_b", "pump.flow", "tank.flow")] == [0.0] * 4
