"""What schematics show as flow at a port is what the component's equations let through there."""

from __future__ import annotations

import numpy as np
import pytest
from test_any_circuit import mounted
from test_losses_of_components import LAWS, OIL, pick

from hydraulics import CircuitEquations, Component
from hydraulics.boundaries import Source
from mbsfmu.view.circuit.circuit_diagram import port_flows

MADE = [each for each, _ in LAWS if not isinstance(each, Source)]
"""Sources hold their nodes: what flows there is what the others need."""
UNTOLD = {"hose", "volume", "pressure-sensor", "cylinder", "single-acting-cylinder"}
"""Components without a variable that is a flow at a port."""


@pytest.mark.parametrize("component", MADE, ids=[each.type for each in MADE])
def test_flows_at_ports_are_those_of_the_equations(component: Component) -> None:
    equations = CircuitEquations(mounted(component, oil=OIL, walls=1e16))
    parameters = np.array([each.start for each in equations.parameters])
    discrete, random, largest = equations.initial_discrete(parameters), np.random.default_rng(5), 0.0
    assert bool(port_flows(component)) == (component.type not in UNTOLD)
    for _ in range(10):
        values = {each.name: pick(random, each.name) for each in (*equations.states, *equations.inputs)}
        states, inputs = (
            np.array([values[each.name] for each in group]) for group in (equations.states, equations.inputs)
        )
        outputs = equations.evaluate_outputs(states, inputs, parameters, discrete)
        values |= {each.name: float(value) for each, value in zip(equations.outputs, outputs, strict=True)}
        state = equations.snapshot(states, inputs, parameters, discrete)
        (located,) = (each for each in state.upstream if each.name == component.name)
        now = state.moment(located)
        expected = dict.fromkeys(component.ports(), 0.0)
        for flow, origin, target in component.flows(now):
            if "drain" in (origin, target):  # leakage of the case, which no output tells
                continue
            expected[origin] -= float(flow)
            expected[target] += float(flow)
        for port, flow in component.displacements(now).items():
            expected[port] += float(flow)
        for port, flow in component.uptakes(now).items():
            expected[port] -= float(flow)
        for port, terms in port_flows(component).items():
            shown = sum(sign * values[f"{component.name}.{variable}"] for variable, sign in terms)
            assert shown == pytest.approx(expected[port], rel=1e-9, abs=1e-15), port
            largest = max(largest, abs(shown))
    assert largest > 1e-7 or component.type in UNTOLD
