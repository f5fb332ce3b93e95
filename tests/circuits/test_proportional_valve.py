"""Proportional valves of all patterns, against orifices with branches and the directional valve of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hydraulic_bench import Bench
from hypothesis import given
from hypothesis import strategies as st
from valves import LEAN, orifice, rated, volumes

from hydraulics import (
    Circuit,
    DataError,
    DirectionalValve,
    Edge,
    PressureSource,
    ProportionalValve,
    Throttle,
    closed_centre,
    float_centre,
    open_centre,
    tandem_centre,
    three_way,
    two_way,
)
from hydraulics.flow import kept_below
from mbsfmu import CoupledModel, StepSignal

FLOW, DROP, LAMINAR = 1e-3, 5e5, 2e5
PORTS = {"supply": "P", "tank": "R", "a": "A", "b": "B"}
pressures = st.floats(0.0, 5e7)
four = st.tuples(pressures, pressures, pressures, pressures)
spools = st.floats(-1.2, 1.2)


def valve(edges: Any, ports: str = "supply tank a b", **fields: Any) -> ProportionalValve:
    nodes = {port: PORTS[port] for port in ports.split()}
    return ProportionalValve(name="valve", edges=edges, rated_flow=FLOW, rated_drop=DROP, **nodes, **fields)


def bench(each: ProportionalValve) -> Bench:
    return Bench(volumes(each, **dict.fromkeys(each.nodes(), 1e6)))


def drained(bench: Bench, spool: float, **pressures: float) -> dict[str, float]:
    """What flows into each node in m³/s, of volumes whose capacity is that of the oil alone."""
    rates = bench.rates(valve__command=spool, **{f"{node}__pressure": each for node, each in pressures.items()})
    return {name[0]: rate * 1e-3 / 1.5e9 for name, rate in rates.items() if name.endswith(".pressure")}


# -- patterns -----------------------------------------------------------------------------------------------


def rising(spool: float, overlap: float, share: float = 1.0) -> float:
    """Opening of an edge that a positive spool opens."""
    return min(max((min(spool, 1.0) - overlap) / (1.0 - overlap), 0.0), 1.0) * share


PATTERNS: dict[str, tuple[str, Any, Any]] = {
    "closed": (
        "supply tank a b",
        closed_centre(0.1, outlet_share=0.8, b_share=0.6),
        lambda x: {
            "PA": rising(x, 0.1),
            "AR": rising(-x, 0.1, 0.8),
            "PB": rising(-x, 0.1, 0.6),
            "BR": rising(x, 0.1, 0.48),
        },
    ),
    "open": (
        "supply tank a b",
        open_centre(0.2),
        lambda x: {"PA": rising(x, -0.2), "AR": rising(-x, -0.2), "PB": rising(-x, -0.2), "BR": rising(x, -0.2)},
    ),
    "float": (
        "supply tank a b",
        float_centre(0.05, 0.3),
        lambda x: {"PA": rising(x, 0.05), "AR": rising(-x, -0.3), "PB": rising(-x, 0.05), "BR": rising(x, -0.3)},
    ),
    "tandem": (
        "supply tank a b",
        tandem_centre(0.1, bypass_end=0.4, bypass_share=1.5),
        lambda x: {
            "PA": rising(x, 0.1),
            "AR": rising(-x, 0.1),
            "PB": rising(-x, 0.1),
            "BR": rising(x, 0.1),
            "PR": 1.5 * max(1.0 - abs(x) / 0.4, 0.0),
        },
    ),
    "3/2": ("supply tank a", three_way(-0.01), lambda x: {"PA": rising(x, -0.01), "AR": rising(-x, -0.01)}),
    "2/2": ("supply a", two_way(), lambda x: {"PA": rising(x, 0.0)}),
    "table": (
        "supply a",
        (Edge(origin="supply", target="a", points=((-0.5, 0.3), (0.2, 0.0), (0.6, 0.1), (1.0, 1.2))),),
        lambda x: {"PA": float(np.interp(x, (-0.5, 0.2, 0.6, 1.0), (0.3, 0.0, 0.1, 1.2)))},
    ),
}
BENCHES = {name: bench(valve(edges, ports)) for name, (ports, edges, _) in PATTERNS.items()}


@pytest.mark.parametrize("name", PATTERNS)
def test_edges_are_orifices_as_far_open_as_the_pattern_says(name: str) -> None:
    ports, _, openings = PATTERNS[name]
    nodes = [PORTS[port] for port in ports.split()]

    @given(spools, four)
    def check(spool: float, at: tuple[float, ...]) -> None:
        pressure = dict(zip("PRAB", at, strict=True))
        into = dict.fromkeys(nodes, 0.0)
        lost = 0.0
        for (origin, target), share in openings(max(min(spool, 1.0), -1.0)).items():
            flow = orifice(share * rated(FLOW, DROP, LAMINAR), pressure[origin] - pressure[target], LAMINAR)
            into[origin] -= flow
            into[target] += flow
            lost += flow * (pressure[origin] - pressure[target])
        found = drained(BENCHES[name], spool, **{node: pressure[node] for node in nodes})
        for node in nodes:
            assert found[node] == pytest.approx(into[node], rel=1e-9, abs=1e-15)
        assert lost >= 0.0
        assert -sum(pressure[node] * found[node] for node in nodes) == pytest.approx(lost, rel=1e-6, abs=1e-6)

    check()


@given(spools, four)
def test_closed_centre_is_the_directional_valve_of_the_paper(spool: float, at: tuple[float, ...]) -> None:
    """C (|U| − U₀) of the paper is the opening of an edge with the overlap U₀ / 10 V: two codes, one valve."""
    p, r, a, b = at
    paper = _PAPER.outputs(
        valve__spool=10.0 * max(min(spool, 1.0), -1.0), P__pressure=p, R__pressure=r, A__pressure=a, B__pressure=b
    )
    ours = _OURS.outputs(valve__command=spool, P__pressure=p, R__pressure=r, A__pressure=a, B__pressure=b)
    for port in "ab":
        assert ours[f"valve.flow_{port}"] == pytest.approx(paper[f"valve.flow_{port}"], rel=1e-9, abs=1e-16)


_OURS = bench(valve(closed_centre(0.1)))
_PAPER = Bench(
    volumes(
        DirectionalValve(
            name="valve",
            flow_coefficient=FLOW / DROP**0.5 / 9.0,
            time_constant=0.01,
            dead_band=1.0,
            **PORTS,
        ),
        **dict.fromkeys("PRAB", 1e6),
    )
)


# -- spool --------------------------------------------------------------------------------------------------


def stepped(last: float = -3.0, **fields: Any) -> Any:
    circuit = volumes(
        PressureSource(name="pump", node="P", pressure=1e7),
        valve(two_way(), "supply a", **fields),
        Throttle(name="out", inlet="A", outlet="T", orifice_diameter=2e-3, discharge_coefficient=0.7),
        A=1e5,
    )
    model = CoupledModel(
        name="spool",
        systems={"circuit": circuit},
        signals={"circuit.valve.command": StepSignal(times=(0.0, 0.01, 0.05), values=(0.0, 0.6, last))},
    )
    return model.simulation(solver="radau", relative_tolerance=1e-9, absolute_tolerance=1e-9).run(0.1)


def test_spool_of_first_order_lags() -> None:
    result = stepped(time_constant=0.008, initial_spool=0.2)
    time, spool = result.time, result["valve.spool"]
    first, second = time <= 0.01, (time > 0.01) & (time <= 0.05)
    np.testing.assert_allclose(spool[first], 0.2 * np.exp(-time[first] / 0.008), atol=1e-7)
    begin = 0.2 * np.exp(-0.01 / 0.008)
    expected = 0.6 + (begin - 0.6) * np.exp(-(time[second] - 0.01) / 0.008)
    np.testing.assert_allclose(spool[second], expected, atol=1e-7)
    assert spool[-1] == pytest.approx(-1.0, abs=5e-3)  # the command saturates


def test_spool_of_second_order_swings_as_in_closed_form() -> None:
    frequency, damping = 2.0 * np.pi * 50.0, 0.4
    result = stepped(natural_frequency=frequency, damping_ratio=damping)
    time = result.time[(result.time >= 0.01) & (result.time <= 0.05)] - 0.01
    spool = result["valve.spool"][(result.time >= 0.01) & (result.time <= 0.05)]
    root = np.sqrt(1.0 - damping**2)
    swing = np.cos(frequency * root * time) + damping / root * np.sin(frequency * root * time)
    np.testing.assert_allclose(spool, 0.6 * (1.0 - np.exp(-damping * frequency * time) * swing), atol=1e-6)
    assert spool.max() > 0.7


@pytest.mark.parametrize("end", [-1.0, 1.0])
def test_spool_without_dynamics_is_where_the_command_is(end: float) -> None:
    result = stepped(3.0 * end)
    time, spool = result.time, result["valve.spool"]
    np.testing.assert_array_equal(spool[(time > 0.01) & (time < 0.05)], 0.6)
    np.testing.assert_array_equal(spool[time > 0.05], end)


# -- compensation -------------------------------------------------------------------------------------------

COMPENSATED = bench(valve(closed_centre(), compensation=8e5, load_check=True))


@given(st.floats(0.05, 1.0), pressures, pressures)
def test_compensator_keeps_the_drop_as_long_as_there_is_one(spool: float, supply: float, load: float) -> None:
    into = drained(COMPENSATED, spool, P=supply, R=1e5, A=load, B=1e5)["A"]
    drop, full = supply - load, orifice(spool * rated(FLOW, DROP, LAMINAR), 8e5, LAMINAR)
    if drop >= 8.4e5:
        assert into == pytest.approx(full, rel=1e-12)
    elif drop <= 0.0:
        assert into == 0.0
    elif drop <= 7.6e5:
        assert into == pytest.approx(orifice(spool * rated(FLOW, DROP, LAMINAR), drop, LAMINAR), rel=1e-9, abs=1e-16)
    else:
        kept = 8e5 - (8e5 - drop + 4e4) ** 2 / 1.6e5
        assert into == pytest.approx(full * np.sqrt(kept / 8e5), rel=1e-9)


def test_load_check_lets_nothing_back() -> None:
    into = drained(bench(valve(closed_centre())), 0.5, P=1e6, R=1e5, A=2e7, B=1e5)
    assert into["A"] < 0.0
    assert drained(COMPENSATED, 0.5, P=1e6, R=1e5, A=2e7, B=1e5)["A"] == 0.0


def test_a_limit_is_reached_along_a_parabola() -> None:
    """The slope falls from 1 to 0 in proportion from a twentieth below the limit to a twentieth above."""
    most, width = 8e5, 0.05 * 8e5
    value = most + width * np.linspace(-4.0, 4.0, 81)
    slope = np.clip((most + width - value) / (2.0 * width), 0.0, 1.0)
    # From its highest value down, by the trapezoidal rule: exact, for the slope is straight from point to point.
    falls = np.append(np.cumsum((0.5 * (slope[1:] + slope[:-1]) * np.diff(value))[::-1])[::-1], 0.0)
    np.testing.assert_allclose(kept_below(value, most), most - falls, rtol=1e-13)
    assert kept_below(np.float64(-most), most) == -most


def test_nothing_but_what_feeds_a_port_is_compensated_checked_and_sensed() -> None:
    """Regeneration from a to b, the way round to the supply, and the bypass are plain orifices, whatever the drop."""
    share, ports = (
        ((0.0, 0.0), (1.0, 1.0)),
        (("supply", "a"), ("supply", "b"), ("supply", "tank"), ("a", "b"), ("b", "supply")),
    )
    edges = tuple(Edge(origin=origin, target=target, points=share) for origin, target in ports)
    pressure = {"P": 2e7, "A": 3e7, "B": 5e6, "R": 1e6, "L": 1e5}
    found = drained(bench(valve(edges, compensation=8e5, load_check=True, load_sense="L")), 0.5, **pressure)

    def half(origin: str, target: str) -> float:
        return orifice(0.5 * rated(FLOW, DROP, LAMINAR), pressure[origin] - pressure[target], LAMINAR)

    fed = orifice(0.5 * rated(FLOW, DROP, LAMINAR), 8e5, LAMINAR)  # b; a has the higher pressure and gets nothing
    sensed = {port: orifice(rated(2e-5, DROP, LAMINAR), pressure[port] - pressure["L"], LAMINAR) for port in "AB"}
    assert found == pytest.approx(
        {
            "P": half("B", "P") - half("P", "R") - fed,
            "A": -half("A", "B") - sensed["A"],
            "B": fed + half("A", "B") - half("B", "P") - sensed["B"],
            "R": half("P", "R"),
            "L": sensed["A"] + sensed["B"],
        },
        rel=1e-9,
    )


# -- words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: valve(()), "edges are none; closed_centre() and others give those of usual valves"),
        (lambda: valve(closed_centre(), "supply a b"), "edges[1] joins a to tank; tank is missing"),
        (lambda: valve(two_way(), "supply a b"), "b is given, but no edge leads there"),
        (lambda: valve((Edge(origin="a", target="a", points=((0, 0), (1, 1))),)), "edges[0] joins port a to itself"),
        (
            lambda: valve(two_way(), "supply a", natural_frequency=200.0),
            "natural_frequency and damping_ratio go together; one of them is missing",
        ),
        (
            lambda: valve(two_way(), "supply a", natural_frequency=200.0, damping_ratio=1.0, time_constant=0.1),
            "a spool has a time_constant, or a natural_frequency and a damping_ratio, not both",
        ),
        (
            lambda: valve(two_way(), "supply a", initial_spool=0.5),
            "initial_spool is 0.5, but without a time_constant the spool is where the command is",
        ),
        (
            lambda: Edge(origin="a", target="tank", points=((0.5, 0.0), (0.5, 1.0))),
            "points go from 0.5 to 0.5; each must lie beyond the one before",
        ),
        (lambda: Edge(origin="a", target="tank", points=((0.5, 0.0),)), "points are 1; a table has at least two"),
        (
            lambda: Edge(origin="a", target="tank", points=((0.5, 0.0), (0.6, -0.1))),
            "points[1][1] is -0.1; it must be greater than or equal to 0",
        ),
        (
            lambda: closed_centre(5.0),
            "overlap is 5.0; as a spool position it must be greater than -1 and less than 1",
        ),
    ],
)
def test_wrong_data_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        make()
    assert str(caught.value).endswith(sentence)


def test_valves_go_through_json() -> None:
    circuit = volumes(
        valve(tandem_centre(0.1, bypass_end=0.3), compensation=1e6), **dict.fromkeys("PRAB", 1e6), oil=LEAN
    )
    assert Circuit.from_dict(circuit.to_dict()) == circuit
