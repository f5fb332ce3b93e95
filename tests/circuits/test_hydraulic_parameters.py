"""Names and parameters of a circuit's equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hydraulic_bench import AIRY, FRICTION, PUMP, Bench, names, paper_circuit

from hydraulics import Circuit, CircuitEquations, DataError


def test_names_are_unique_and_structured() -> None:
    equations = CircuitEquations(paper_circuit())
    everything = [*equations.states, *equations.inputs, *equations.outputs, *equations.parameters]
    assert len(set(names(tuple(everything)))) == len(everything)
    assert all(each.name.count(".") == 1 and each.unit and each.description for each in everything)
    assert names(equations.states) == ["V1.pressure", "V3.pressure", "V2.pressure", "valve.spool"]
    assert names(equations.inputs) == ["valve.command", "cylinder.length", "cylinder.velocity"]
    told = ["force", "pressure_piston", "pressure_rod", "friction", "power"]  # from the actuator back to the sources
    assert names(equations.outputs) == [
        *(f"cylinder.{each}" for each in told),
        *("throttle.flow", "valve.flow_a", "valve.flow_b"),
        *("pump.flow", "pump.power", "tank.flow", "tank.power", "oil.mass"),
    ]
    assert [each.nominal for each in equations.states] == [1e6, 1e6, 1e6, 10.0]


def test_start_values_lie_within_their_bounds() -> None:
    equations = CircuitEquations(paper_circuit(**FRICTION))
    for each in (*equations.inputs, *equations.parameters):
        assert each.start is not None
        assert each.minimum is None or each.minimum <= each.start


def test_small_numbers_may_be_set_to_what_they_are() -> None:
    """A leakage of 1e-13 m³/(s Pa) is usual."""
    leaking = paper_circuit(leakage=1e-13)
    (leakage,) = (each for each in CircuitEquations(leaking).parameters if each.name == "cylinder.leakage")
    assert leakage.start == 1e-13
    assert leakage.minimum is not None
    assert 0.0 < leakage.minimum < 1e-18


@pytest.mark.parametrize(("fields", "length"), [({}, 0.9 + 0.9 / 2.0), ({"initial_length": 1.4}, 1.4)])
def test_length_starts_as_said_or_at_mid_stroke(fields: dict[str, Any], length: float) -> None:
    starts = {each.name: each.start for each in CircuitEquations(paper_circuit(**fields)).inputs}
    assert starts == {
        "valve.command": 0.0,
        "cylinder.length": pytest.approx(length, rel=1e-15),
        "cylinder.velocity": 0.0,
    }


def rebuilt(name: str, value: float) -> Bench:
    """Return a bench of the circuit whose data has another value for a parameter."""
    data = generic_circuit().to_dict()
    owner, _, field = name.partition(".")
    if field == "initial_pressure":
        data["initial_pressures"][owner] = value
    elif owner == "oil":
        data["oil"][field] = value
    else:
        next(each for each in data["components"] if each["name"] == owner)[field] = value
    return Bench(Circuit.from_dict(data))


def generic_circuit() -> Circuit:
    """Return a circuit in which no parameter is idle."""
    valve = {"dead_band": 0.5, "initial_spool": 1.0}
    return paper_circuit(valve=valve, oil=AIRY, initial_load=5e3, stop_damping=2.0, **FRICTION)


@pytest.mark.parametrize("name", names(CircuitEquations(generic_circuit()).parameters))
def test_parameter_acts_like_the_data_it_comes_from(name: str) -> None:
    bench = Bench(generic_circuit())
    value = 1.05 * next(each.start or 0.0 for each in bench.equations.parameters if each.name == name)
    other = rebuilt(name, value)
    seen = []
    # Laminar and turbulent flow, within the stroke and in both stops, commands within the limit and beyond.
    for p1, p2, length, speed, command in (
        (5e6, 4e6, 1.3, 0.01, 20.0),
        (3e6, 2.95e6, 0.899, -0.05, -3.0),
        (PUMP - 1e5, 4e6, 1.81, 0.02, 0.0),
    ):
        at = {
            "V1__compression": p1,
            "V2__compression": p2,
            "V3__compression": 3e6,
            "valve__spool": 4.0,
            "valve__command": command,
            "cylinder__length": length,
            "cylinder__velocity": speed,
        }
        before = [*bench.rates(**at).values(), *bench.outputs(**at).values(), *bench.start().values()]
        changed = {name: value}
        after = [
            *bench.rates(changed, **at).values(),
            *bench.outputs(changed, **at).values(),
            *bench.start(changed).values(),
        ]
        expected = [*other.rates(**at).values(), *other.outputs(**at).values(), *other.start().values()]
        assert after == expected
        seen.append(after != before)
    assert any(seen), "the parameter changes nothing"


@pytest.mark.parametrize("name", names(CircuitEquations(generic_circuit()).parameters))
def test_parameters_have_the_bounds_of_the_data_they_come_from(name: str) -> None:
    """What data refuses, a parameter of a run must refuse too: negative stiffness, a valve without flow."""
    parameter = next(each for each in CircuitEquations(generic_circuit()).parameters if each.name == name)
    lowest = -np.inf if parameter.minimum is None else parameter.minimum

    def is_data(value: float) -> bool:
        try:
            rebuilt(name, value)
        except DataError:
            return False
        return True

    assert is_data(-1.0) == (lowest <= -1.0)
    assert is_data(0.0) == (lowest <= 0.0) or name in ("oil.air_content", "cylinder.static_friction")


def test_states_of_oil_with_air_are_compressions() -> None:
    equations = CircuitEquations(generic_circuit())
    assert names(equations.states) == ["V1.compression", "V3.compression", "V2.compression", "valve.spool"]
    assert names(equations.outputs)[-4:] == ["V1.pressure", "V3.pressure", "V2.pressure", "oil.mass"]
    assert [each.minimum for each in equations.outputs[-4:-1]] == [200.0] * 3


def test_rods_must_stay_thinner_than_their_pistons() -> None:
    equations = CircuitEquations(paper_circuit())
    names = [each.name for each in equations.parameters]
    pairs = [(names[smaller], names[greater]) for smaller, greater in equations.orderings]
    assert pairs == [("cylinder.rod_diameter", "cylinder.piston_diameter")]
