"""Valves take energy and never give any, whatever the pressures and openings are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from valves import LEAN, all_valves

from hydraulics import CircuitEquations

CIRCUIT = all_valves(LEAN)
EQUATIONS = CircuitEquations(CIRCUIT)
PARAMETERS = np.array([each.start for each in EQUATIONS.parameters])
RANGES = {"Pa": (0.0, 6e7), "1": (-1.5, 1.5), "1/s": (-1e3, 1e3)}


def values_of(quantities: tuple) -> st.SearchStrategy[list[float]]:
    """Values of states or inputs; lifts of poppets are between closed and open."""
    lifts = (name.endswith(".lift") for name in (each.name for each in quantities))
    ranges = ((0.0, 1.0) if lift else RANGES[each.unit] for each, lift in zip(quantities, lifts, strict=True))
    return st.tuples(*(st.floats(*ends) for ends in ranges)).map(list)


@given(values_of(EQUATIONS.states), values_of(EQUATIONS.inputs))
def test_oil_flows_from_the_higher_pressure_to_the_lower(states: list[float], inputs: list[float]) -> None:
    snapshot = EQUATIONS.snapshot(*(np.asarray(each) for each in (states, inputs, PARAMETERS)))
    for stream in snapshot.streams:
        drop = snapshot.pressure(stream.origin) - snapshot.pressure(stream.target)
        assert np.isfinite(stream.amount)
        assert stream.amount * drop >= 0.0, (stream.origin, stream.target)
