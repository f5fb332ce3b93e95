"""Circuits of any components: flows balance in every node, energy closes, and nothing loses less than nothing.

A component joins by its section in docs/reference/hydraulics.md, whose code makes it.
"""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from documented import documented_components
from hydraulic_bench import AIRY
from hypothesis import given, settings
from hypothesis import strategies as st

from hydraulics import Array, Circuit, CircuitEnergies, CircuitEquations, Component, Hose, Oil, Tank
from hydraulics.component import HydraulicActuator, PortKind
from mbsfmu.tracing.symbols import expression, symbols

COMPONENTS = {each.type: each for each in documented_components()}
RIGID = 1e16
OILS = {"mass": AIRY, "volume": AIRY.model_copy(update={"conserves": "volume"})}


def mounted(*components: Component, oil: Oil = AIRY, walls: float = 2e8) -> Circuit:
    """Components at nodes of their own, each of which has a hose where no source holds it."""
    held = {node for each in components for node in each.nodes(PortKind.HELD)}
    filled = [node for node in dict.fromkeys(node for each in components for node in each.nodes()) if node not in held]
    hoses = [Hose(name=f"hose_{node}", node=node, volume=1e-4, bulk_modulus=walls) for node in filled]
    others = () if held or filled else (Tank(name="other", node="N"),)
    return Circuit(oil=oil, components=(*components, *hoses, *others), initial_pressures=dict.fromkeys(filled, 1e6))


@cache
def balance(kind: str, conserves: str) -> tuple[CircuitEquations, ca.Function]:
    """The equations of a component between hoses, and a function with the exact rate of its energy, and the powers."""
    component = COMPONENTS[kind]
    if conserves == "mass" and "bulk_modulus" in type(component).model_fields:
        component = component.model_copy(update={"bulk_modulus": RIGID})
    equations = CircuitEquations(mounted(component, oil=OILS[conserves], walls=RIGID if conserves == "mass" else 2e8))
    sizes = [len(each) for each in (equations.states, equations.inputs, equations.parameters, equations.discrete)]
    made = [symbols(f"argument_{index}", size) for index, size in enumerate(sizes)]
    (states, _), (inputs, _), *_ = made
    arrays = [array for _, array in made]
    energies = CircuitEnergies(equations)
    stored = expression(energies.evaluate_outputs(np.zeros(4), *arrays))[0]
    moving = ca.SX.zeros(sizes[1])
    names = [each.name for each in equations.inputs]
    if isinstance(component, HydraulicActuator) and len(component.motion) == 2:
        length, velocity = (names.index(f"{component.name}.{each}") for each in component.motion)
        moving[length] = inputs[velocity]
    rate = ca.jtimes(stored, states, expression(equations.rates(*arrays))) + ca.jtimes(stored, inputs, moving)
    return equations, ca.Function("balance", [each for each, _ in made], [rate, expression(energies.powers(*arrays))])


def somewhere(equations: CircuitEquations, seed: int) -> tuple[Array, Array, Array, Array]:
    """Any states and inputs: pressures of 0.01 to 300 bar, what else has a start about it, as far as its nominal.

    The discrete states are those of the start.
    """
    generator = np.random.default_rng(seed)
    parameters = np.array([each.start for each in equations.parameters])
    starts = equations.initial_states(parameters)
    states = []
    for start, each in zip(starts.tolist(), equations.states, strict=True):
        if each.name.endswith(".compression"):
            gas = 10.0 ** generator.uniform(3.0, 7.5)
            states.append(gas - AIRY.air_content * AIRY.bulk_modulus * 101325.0 / gas)
        else:
            nominal = each.nominal or 1.0
            if each.unit == "m3":  # next to nothing as well
                states.append(nominal * 10.0 ** generator.uniform(-4.0, -0.3))
            elif each.name.endswith(".lift"):
                states.append(generator.uniform(0.0, 1.0))
            else:
                states.append(start + nominal * generator.uniform(-1.0, 1.0))
    inputs = [
        (each.start or 0.0) * generator.uniform(0.9, 1.1) if each.start else generator.uniform(-0.5, 0.5)
        for each in equations.inputs
    ]
    return np.array(states), np.array(inputs), parameters, equations.initial_discrete(parameters)


@settings(max_examples=25)
@pytest.mark.parametrize("conserves", OILS)
@pytest.mark.parametrize("kind", COMPONENTS)
@given(st.integers(0, 2**32 - 1))
def test_energy_of_every_component_closes(kind: str, conserves: str, seed: int) -> None:
    """The exact rate of what is stored is what is supplied, less what is delivered and lost; by mass none is won."""
    equations, function = balance(kind, conserves)
    rate, powers = (np.asarray(each).ravel() for each in function(*somewhere(equations, seed)))
    supplied, delivered, dissipated, _ = powers
    scale = np.max(np.abs(powers))
    assert rate[0] == pytest.approx(supplied - delivered - dissipated, rel=1e-8, abs=1e-8 * scale + 1e-6)
    # a line stores the energy of linear acoustics, and flows carry enthalpy to it: the difference is of no sign
    if conserves == "mass" and kind not in {"transmission-line", "line-end"}:
        assert dissipated > -1e-6 * scale - 1e-6


@settings(max_examples=25)
@given(st.sets(st.sampled_from(sorted(COMPONENTS)), min_size=2, max_size=5), st.integers(0, 2**32 - 1))
def test_what_leaves_a_node_arrives_at_another(kinds: set[str], seed: int) -> None:
    """Of any components together: what leaves one node arrives at another one, and every pressure has a rate."""
    chosen = [COMPONENTS[kind].model_copy(update={"name": f"part_{index}"}) for index, kind in enumerate(sorted(kinds))]
    held: set[str] = set()
    taken = []
    for each in chosen:
        nodes = set(each.nodes(PortKind.HELD))
        others = {node for other in chosen for node in other.nodes(PortKind.FILLED, PortKind.CHAMBER)}
        if not nodes & (held | others):
            held |= nodes
            taken.append(each)
    equations = CircuitEquations(mounted(*taken))
    given = somewhere(equations, seed)
    now = equations.snapshot(*given)
    uptakes = [float(flow) for each in now.upstream for flow in each.component.uptakes(now.moment(each)).values()]
    scale = sum(abs(float(stream.amount)) for stream in now.streams) + sum(map(abs, uptakes))
    assert abs(sum(map(float, now.intakes.values())) + sum(uptakes)) <= 1e-12 * scale
    for node in now.volume_nodes:
        assert np.isfinite(now.pressure_rate(node))
