"""The schematic of a circuit as data for a page: components with their ports, nodes, and the signals of both."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from hydraulics import Circuit, Component, PortKind, Stage, Tank
from hydraulics.component import port_kinds
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.circuit_kind import circuits_of
from mbsfmu.model.machine import Machine
from mbsfmu.view.circuit.component_kinds import port_flows, symbol_of
from mbsfmu.view.scene.payload import node_pressure
from mbsfmu.view.scene.recorded import Recorded

Reader = Callable[[str], Any]
"""Gives what a page reads a signal by, from its name in the run: a name, a number that it always has, a reference."""


def recorded_reader(run: Trajectory) -> Reader:
    """Return a reader for pages with all signals of a run: the name of a signal, or the value of a constant one."""

    def read(name: str) -> str | float:
        values = run[name]
        return name if np.ptp(values) > 0.0 else float(values[0])

    return read


def circuit_diagrams(machine: Machine, run: Trajectory, read: Reader) -> list[dict[str, Any]]:
    """Return the schematics of a machine's circuits as plain data.

    Parameters
    ----------
    machine
        The machine.
    run
        A run of it, from which the ranges of pressures and flows are taken.
    read
        Gives the source of a signal's values in the page.

    Returns
    -------
    list
        For each circuit its `name`; `components` with `name`, `kind`, `symbol`, `level`, `leaf` and `ports`, of which
        each has its `port`, its `node`, whether it is `sensed`, and its `flow` as pairs of source and sign, in m³/s out
        of the component; `nodes` with `name`, `level`, `tank` and `pressure`, a source or a number in Pa or None; the
        range of the `pressures` in Pa, or None, and the largest flow `most` in m³/s.
    """
    recorded = Recorded(run, run.time, machine.systems)
    return [_diagram(name, data, machine, recorded, read) for name, data in circuits_of(machine.systems).items()]


def _diagram(name: str, data: Circuit, machine: Machine, recorded: Recorded, read: Reader) -> dict[str, Any]:
    tanks = {node for node, source in data.source_nodes.items() if isinstance(source, Tank)}
    of_components, of_nodes = levels(data)
    pressures: list[float] = []
    flows: list[float] = [0.0]

    def pressure(node: str) -> Any:
        source = node_pressure(machine, recorded, name, node)
        values = recorded.find(*source) if isinstance(source, tuple) else None
        if values is not None:
            pressures.extend((float(np.nanmin(values)), float(np.nanmax(values))))
        elif isinstance(source, float):
            pressures.append(source)
        return read(recorded.name(*source) or "") if isinstance(source, tuple) else source

    def flow(component: Component, port: str) -> list[list[Any]]:
        terms = port_flows(component).get(port, ())
        found = [(recorded.name(name, f"{component.name}.{variable}"), sign) for variable, sign in terms]
        known = [(signal, sign) for signal, sign in found if signal is not None]
        if len(known) < len(found) or not known:
            return []
        total = sum(sign * recorded.values(signal) for signal, sign in known)
        flows.append(float(np.nanmax(np.abs(total))))
        return [[read(signal), sign] for signal, sign in known]

    components = [
        {
            "name": each.name,
            "kind": each.type,
            "symbol": symbol_of(each),
            "level": of_components.get(each.name, 0),
            "leaf": _is_leaf(each, tanks),
            "ports": [
                {
                    "port": port,
                    "node": node,
                    "sensed": port_kinds(type(each))[port] is PortKind.SENSED,
                    "flow": flow(each, port),
                }
                for port, node in each.ports().items()
            ],
        }
        for each in data.components
    ]
    nodes = [
        {"name": node, "level": of_nodes.get(node, 0), "tank": node in tanks, "pressure": pressure(node)}
        for node in dict.fromkeys((*data.volume_nodes, *data.source_nodes))
    ]
    ends = [min(pressures), max(pressures)] if pressures else None
    return {"name": name, "components": components, "nodes": nodes, "pressures": ends, "most": max(flows)}


def _is_leaf(component: Component, tanks: set[str]) -> bool:
    """Return whether a component hangs at one node, besides tanks, and is drawn beside it."""
    ends = {node for node in component.ports().values() if node not in tanks}
    return len(ends) == 1 and component.stage not in (Stage.SOURCE, Stage.ACTUATOR)


def levels(circuit: Circuit) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the levels of components and of nodes above the sources: those of components even, of nodes odd.

    Levels count the steps from a source along ports through which oil flows. Nodes of tanks have none, for every port
    at a tank has a symbol of its own. Actuators stand above the nodes of their ports.
    """
    tanks = {node for node, source in circuit.source_nodes.items() if isinstance(source, Tank)}
    components = {each.name: each for each in circuit.components if not isinstance(each, Tank)}
    at: dict[str, list[str]] = {}
    for each in components.values():
        for node in _flowing(each, tanks):
            at.setdefault(node, []).append(each.name)
    of_components: dict[str, int] = {}
    of_nodes: dict[str, int] = {}
    begins = sorted(components.values(), key=lambda each: each.stage)
    while missing := [each.name for each in begins if each.name not in of_components]:
        sources = [name for name in missing if components[name].stage is Stage.SOURCE] or missing[:1]
        of_components |= dict.fromkeys(sources, 0)
        _spread(deque(sources), components, at, tanks, of_components, of_nodes)
    for each in components.values():
        if each.stage is Stage.ACTUATOR:
            of_components[each.name] = 1 + max((of_nodes[node] for node in _flowing(each, tanks)), default=-1)
    return of_components, of_nodes


def _spread(
    waiting: deque[str],
    components: Mapping[str, Component],
    at: Mapping[str, list[str]],
    tanks: set[str],
    of_components: dict[str, int],
    of_nodes: dict[str, int],
) -> None:
    """Give levels to what is reached from some components; through actuators last."""
    last: deque[str] = deque()
    while waiting or last:
        name = waiting.popleft() if waiting else last.popleft()
        for node in _flowing(components[name], tanks):
            if node in of_nodes:
                continue
            of_nodes[node] = of_components[name] + 1
            for other in at[node]:
                if other in of_components:
                    continue
                of_components[other] = of_nodes[node] + 1
                (last if components[other].stage is Stage.ACTUATOR else waiting).append(other)


def _flowing(component: Component, tanks: set[str]) -> Iterator[str]:
    """Yield the nodes at ports through which oil flows, but for tanks."""
    kinds = port_kinds(type(component))
    for port, node in component.ports().items():
        if kinds[port] is not PortKind.SENSED and node not in tanks:
            yield node
