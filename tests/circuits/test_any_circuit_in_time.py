"""Circuits of any components, joined by lot and run: nodes keep balance, energy closes, oil stays above vapour.

Another integrator is given the equations beside ours, with what flows into each node as states of its own.
"""

from __future__ import annotations

import json

import casadi as ca
import numpy as np
import pytest
from documented import documented_components
from hydraulic_bench import AIRY
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from hydraulics import Array, Circuit, CircuitEquations, Component, FlowSource, Hose
from hydraulics.component import PortKind, port_kinds
from hydraulics.equations import held_mass
from mbsfmu import CoupledModel, DataError
from mbsfmu.tracing.symbols import expression, symbols

COMPONENTS = {each.type: each for each in documented_components() if not each.discrete_states()}
"""Those of differential equations alone, which another integrator can solve."""
NODES = ("A", "B", "C")
STOP = 0.05


def joined(kinds: set[str], seed: int) -> Circuit:
    """Components of some kinds, each port at a node by lot, with a hose at all that no source holds."""
    generator = np.random.default_rng(seed)
    sources = [kind for kind in kinds if PortKind.HELD in port_kinds(type(COMPONENTS[kind])).values()]
    held = [f"S{index}" for index, _ in enumerate(sources)]
    parts: list[Component] = []
    for index, kind in enumerate(sorted(kinds)):
        given_kinds = port_kinds(type(COMPONENTS[kind]))
        ports = {port: given_kinds[port] for port in COMPONENTS[kind].ports()}
        inner = [port for port, each in ports.items() if each in (PortKind.FILLED, PortKind.CHAMBER)]
        free = [port for port, each in ports.items() if port not in inner and each is not PortKind.HELD]
        assume(len(inner) <= len(NODES) and len(inner) + len(free) <= len(NODES) + len(held))
        nodes = dict(zip(inner, generator.permutation(NODES).tolist(), strict=False))
        left = [node for node in (*NODES, *held) if node not in nodes.values()]
        nodes |= dict(zip(free, generator.permutation(left).tolist(), strict=False))
        nodes |= {port: f"S{sources.index(kind)}" for port, each in ports.items() if each is PortKind.HELD}
        parts.append(COMPONENTS[kind].model_copy(update={"name": f"part_{index}", **nodes}))
    hoses = [Hose(name=f"hose_{node}", node=node, volume=2e-4, bulk_modulus=2e8) for node in NODES]
    pressures = {node: float(10.0 ** generator.uniform(5.0, 7.3)) for node in NODES}
    try:
        return Circuit(oil=AIRY, components=(*parts, *hoses), initial_pressures=pressures)
    except DataError as error:
        assume(not error.args)
        raise


def somewhere(circuit: Circuit, seed: int) -> dict[str, float]:
    """Inputs by lot, next to those of the start; what actuators move with stands still."""
    generator = np.random.default_rng(seed)
    moving = {f"{each.name}.{name}" for each in circuit.actuators for name in each.motion}
    values = {}
    for each in CircuitEquations(circuit).inputs:
        spread = 1e-3 if each.unit == "m3/s" else 0.3
        values[each.name] = (each.start or 0.0) + (each.name not in moving) * spread * generator.uniform(-0.5, 0.5)
    return values


def by_another_integrator(circuit: Circuit, given_inputs: dict[str, float]) -> tuple[Array, Array]:
    """Return the states at the end, and what has flown into each node, by the measure in which flows are conserved."""
    equations = CircuitEquations(circuit)
    symbol, states = symbols("states", len(equations.states))
    parameters = np.array([each.start for each in equations.parameters])
    inputs = np.array([given_inputs[each.name] for each in equations.inputs])
    now = equations.snapshot(states, inputs, parameters)
    components = {each.name: each for each in circuit.components}
    pushed = dict.fromkeys(now.volume_nodes, np.asarray(0.0))
    for push in now.pushes:
        if isinstance(components[push.owner], FlowSource):  # what it brings comes from nowhere
            pushed[push.node] = pushed[push.node] + push.displaced / now.measures[push.node]
    intakes = np.stack([now.intakes[node] + pushed[node] for node in now.volume_nodes])
    flow = ca.vertcat(expression(equations.rates(states, inputs, parameters)), expression(intakes))
    size, nodes = len(equations.states), len(now.volume_nodes)
    rates = ca.Function("rates", [symbol], [flow])
    slope = ca.Function("slope", [symbol], [ca.jacobian(flow, symbol)])

    def derivative(_: float, values: Array) -> Array:
        return np.asarray(rates(values[:size])).ravel()

    def jacobian(_: float, values: Array) -> Array:
        return np.hstack([np.asarray(slope(values[:size])), np.zeros((size + nodes, nodes))])

    scales = [each.nominal or 1.0 for each in equations.states]
    absolute = np.concatenate([1e-8 * np.array(scales), np.full(nodes, 1e-13)])
    start = np.concatenate([equations.initial_states(parameters), np.zeros(nodes)])
    solution = solve_ivp(derivative, (0.0, STOP), start, "Radau", rtol=1e-8, atol=absolute, jac=jacobian)
    assert solution.success
    return solution.y[:size, -1], solution.y[size:, -1]


def masses(circuit: Circuit, states: Array, inputs: dict[str, float]) -> Array:
    """Return what each node holds in kg."""
    equations = CircuitEquations(circuit)
    parameters = np.array([each.start for each in equations.parameters])
    now = equations.snapshot(states, np.array([inputs[each.name] for each in equations.inputs]), parameters)
    nodes = now.volume_nodes
    return np.array([float(held_mass(now.oil, now.pressure(n), now.gas_pressure(n), now.spaces[n])) for n in nodes])


@settings(max_examples=6, derandomize=True, phases=[Phase.generate])
@given(st.sets(st.sampled_from(sorted(COMPONENTS)), min_size=3, max_size=6), st.integers(0, 2**32 - 1))
def test_random_circuits_run(kinds: set[str], seed: int) -> None:
    """Nodes hold what has flown into them; what is supplied is stored, delivered or lost; the file runs the same."""
    circuit = joined(kinds, seed)
    inputs = somewhere(circuit, seed)
    model = CoupledModel(
        name="any", systems={"circuit": circuit}, start={f"circuit.{name}": value for name, value in inputs.items()}
    )
    again = CoupledModel.from_dict(json.loads(json.dumps(model.to_dict())))
    assert again == model
    options = {"solver": "rodas5p", "relative_tolerance": 1e-7, "absolute_tolerance": 1e-7, "compiled": False}
    simulation = again.simulation(**options)
    result = simulation.run(STOP, output_step=STOP / 50.0)
    equations = CircuitEquations(circuit)
    end = np.array([result[each.name][-1] for each in equations.states])
    expected, flown = by_another_integrator(circuit, inputs)
    scales = np.array([each.nominal or 1.0 for each in equations.states])
    assert np.max(np.abs(end - expected) / np.maximum(scales, np.abs(expected))) < 1e-4
    start = np.array([result[each.name][0] for each in equations.states])
    gained = masses(circuit, end, inputs) - masses(circuit, start, inputs)
    assert gained == pytest.approx(AIRY.density * flown, rel=1e-4, abs=1e-6 * np.sum(masses(circuit, end, inputs)))
    turned = sum(np.ptp(result[f"hydraulic_energy.{each}"]) for each in ("supplied", "delivered", "dissipated"))
    assert result.largest("hydraulic_energy.drift") < 1e-5 * turned + 1e-6
    for node in circuit.volume_nodes:
        assert np.min(result[f"{node}.pressure"]) > AIRY.vapour_pressure
