"""Conditions on a run of a circuit: oil that cavitates, pressures that no line withstands, end stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite

from hydraulics.check_valve import Check
from hydraulics.circuit import Circuit
from hydraulics.component import Component, PortKind, Stage
from mbsfmu.modelling.conditions import Condition
from mbsfmu.modelling.parameters import parameter_fields

CAVITATING = 1e4
"""Partial pressure of the air in Pa below which oil cavitates here: its bubbles are ten times as large as at
atmospheric pressure, and real oil releases dissolved air.
"""
PROOF = 2.0
"""Factor above the pressure of pumps and relief valves from which lines are in danger: hoses are tested at twice their
greatest working pressure [ISO 1402]. Overshoots of relief valves, some ten percent, stay below, and so does what a
cylinder with twice the area on its piston's side intensifies.
"""


def circuit_conditions(circuit: Circuit) -> Iterator[Condition]:
    """Yield conditions on the pressures of a circuit, and those of its components."""
    if circuit.oil.air_content > 0.0:
        yield from _cavitation(circuit)
    yield from _excess_pressure(circuit)
    for component in circuit.components:
        yield from (condition.of(component.name) for condition in component.conditions())


def _cavitation(circuit: Circuit) -> Iterator[Condition]:
    """Yield the condition of cavitation of each volume; without air such a pressure is below what it can be."""
    for node in circuit.volume_nodes:
        yield Condition(
            f"the oil at {node} cavitates",
            {f"{node}.pressure": -1.0, "oil.vapour_pressure": 1.0},
            -CAVITATING,
            lasts=True,
            extent=": its pressure falls to {value:.4g} Pa",
            advice="; real oil releases more air than the model has, and check valves from the tank keep a line filled",
            doubtful=True,
            numbers={"oil.vapour_pressure": circuit.oil.vapour_pressure},
        )


def _excess_pressure(circuit: Circuit) -> Iterator[Condition]:
    """Yield the condition of a pressure that no line withstands for each volume."""
    working = _working_pressure(circuit)
    if working is None:
        return
    component, rises, constant = working
    limit = f"pressure that {component.type} '{component.name}' allows"
    for node in circuit.volume_nodes:
        yield Condition(
            f"the pressure at {node} is above twice the {limit}",
            {f"{node}.pressure": 1.0, **{f"{component.name}.{name}": -PROOF * by for name, by in rises.items()}},
            PROOF * constant,
            lasts=True,
            extent=": it rises to {value:.4g} Pa",
            advice=", at which hoses are tested; a relief valve at that node limits what a load or a shut valve causes",
            doubtful=True,
            numbers={f"{component.name}.{name}": getattr(component, name) for name in rises},
        )


def _working_pressure(circuit: Circuit) -> tuple[Component, Mapping[str, float], float] | None:
    """Return the component that allows the highest pressure, and this as a linear function of its parameters.

    None where a pump has no limit that is known, or there are tanks alone.
    """
    reliefs = [each for each in circuit.components if isfinite(each.relieving_pressure(_numbers(each)))]
    limits: list[tuple[Component, Callable[[Mapping[str, float]], float]]] = []
    for component in circuit.components:
        highest = component.highest_pressure(_numbers(component))
        if isfinite(highest):
            limits.append((component, component.highest_pressure))
            continue
        reached = _reached(circuit, component.nodes(PortKind.THROUGH, PortKind.HELD))
        relieving = [each for each in reliefs if reached.intersection(each.nodes())]
        if not relieving:
            return None
        limits += [(each, each.relieving_pressure) for each in relieving]
    component, limit = max(limits, key=lambda each: each[1](_numbers(each[0])))
    numbers = _numbers(component)
    if not limit(numbers) > 0.0:
        return None
    least = limit(numbers)
    changes = {name: limit({**numbers, name: 2.0 * value}) - least for name, value in numbers.items() if value}
    rises = {name: change / numbers[name] for name, change in changes.items() if change}
    return component, rises, least - sum(by * numbers[name] for name, by in rises.items())


def _numbers(component: Component) -> dict[str, float]:
    """Return the parameters of a component in its data, but for tables and those that are not there."""
    values = {name: getattr(component, name) for name in parameter_fields(type(component))}
    return {name: float(value) for name, value in values.items() if isinstance(value, (int, float))}


def _reached(circuit: Circuit, nodes: tuple[str, ...]) -> set[str]:
    """Return the nodes joined with some by lines, restrictors and check valves, which no command shuts."""
    joints = [
        set(each.nodes(PortKind.THROUGH))
        for each in circuit.components
        if each.stage is Stage.LINE or isinstance(each, Check)
    ]
    found = set(nodes)
    while more := {node for joint in joints if joint & found for node in joint} - found:
        found |= more
    return found
