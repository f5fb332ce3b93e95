"""Schematics of hydraulic circuits: structure and symbols from data, as an element of a page."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hydraulics import (
    Accumulator,
    AnnularGap,
    Capillary,
    CheckValve,
    Circuit,
    Component,
    CounterbalanceValve,
    DirectionalValve,
    FlowSensor,
    FlowSource,
    Hose,
    InertialMotor,
    Line,
    LineEnd,
    Motor,
    PilotCheckValve,
    PortKind,
    PressureInput,
    PressureSensor,
    PressureSource,
    ProportionalValve,
    ReducingValve,
    ReliefValve,
    ShuttleValve,
    Stage,
    Tank,
    Throttle,
    TransmissionLine,
    VariableOrifice,
    Volume,
)
from hydraulics.boundaries import Source
from hydraulics.component import port_kinds
from hydraulics.cylinders import AnyCylinder
from hydraulics.displacement_machines import AnyPump, DisplacedPump, DisplacementMachine
from hydraulics.restrictors import TwoPort
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.model.model_data import circuits_of
from mbsfmu.view.pages.page import HtmlElement, data_block, filled, stack
from mbsfmu.view.plots.plot import SCRIPTS
from mbsfmu.view.scene.payload import node_pressure
from mbsfmu.view.scene.poses import Recorded

_SYMBOLS: tuple[tuple[type[Component] | tuple[type[Component], ...], str], ...] = (
    (Tank, "tank"),
    ((PressureSource, PressureInput), "pressure-source"),
    (FlowSource, "flow-source"),
    (DisplacedPump, "variable-pump"),
    (AnyPump, "pump"),
    ((Motor, InertialMotor), "motor"),
    (AnyCylinder, "cylinder"),
    ((DirectionalValve, ProportionalValve), "valve"),
    (PilotCheckValve, "pilot-check"),
    (CheckValve, "check"),
    (ShuttleValve, "shuttle"),
    ((ReliefValve, CounterbalanceValve), "relief"),
    (ReducingValve, "reducing"),
    (Throttle, "throttle"),
    (VariableOrifice, "variable-orifice"),
    ((Capillary, AnnularGap), "restrictor"),
    (Accumulator, "accumulator"),
    (Hose, "hose"),
    (Volume, "volume"),
    ((Line, TransmissionLine, LineEnd), "line"),
    (PressureSensor, "gauge"),
    (FlowSensor, "flow-meter"),
)
"""Symbols in `diagram.js` after ISO 1219, of the first class that a component belongs to; others are plain boxes."""
PortFlows = Mapping[str, tuple[tuple[str, int], ...]]
"""Variables by port, each with 1 where it is the flow out of the component there, -1 where it is the flow into it."""


def symbol_of(component: Component) -> str:
    """Return the name of a component's symbol; `box` without one."""
    return next((symbol for kinds, symbol in _SYMBOLS if isinstance(component, kinds)), "box")


def port_flows(component: Component) -> PortFlows:
    """Return the variables whose sum is the flow at a port, for the ports where there is one.

    Those of pumps and motors are without the leakage of the case. Components that users define have such a flow if
    they derive from `TwoPort` or a built-in component.
    """
    if isinstance(component, CounterbalanceValve):
        return {"load": (("flow", -1), ("free_flow", 1)), "valve": (("flow", 1), ("free_flow", -1))}
    if isinstance(component, (TwoPort, DisplacementMachine)):
        return _through("flow", *component.ends)
    if isinstance(component, (Line, FlowSensor)):
        return _through("flow", "inlet", "outlet")
    if isinstance(component, TransmissionLine):
        return {"inlet": (("inlet_flow", -1),), "outlet": (("outlet_flow", 1),)}
    if isinstance(component, (Source, FlowSource)):
        return {"node": (("flow", 1),)}
    if isinstance(component, (Accumulator, LineEnd)):
        return {"node": (("flow", -1),)}
    if isinstance(component, ShuttleValve):
        return {
            "a": (("flow_a", -1),),
            "b": (("flow_b", -1),),
            "outlet": (("flow_a", 1), ("flow_b", 1)),
        }
    if isinstance(component, (DirectionalValve, ProportionalValve)):
        return {port: ((f"flow_{port}", 1),) for port in ("a", "b") if port in component.ports()}
    return {}


def _through(variable: str, origin: str, target: str) -> PortFlows:
    return {origin: ((variable, -1),), target: ((variable, 1),)}


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


_SCRIPTS = ("pages/quantities.js", "assets/dagre/dagre.min.js", "circuit/layout.js", "circuit/diagram.js")


def circuit_elements(diagrams: Sequence[Mapping[str, Any]], group: str = "") -> HtmlElement:
    """Return the schematics of circuits, one below the other.

    Parameters
    ----------
    diagrams
        What `circuit_diagrams` gave.
    group
        The word of the plots that have the signals, whose time they follow; without one a script gives them values.
    """
    scripts = (*(SCRIPTS if group else ()), *_SCRIPTS)
    return stack(
        *(
            HtmlElement(
                filled("circuit/circuit.html", name=each["name"], data=data_block({**each, "group": group})),
                ("circuit/circuit.css",),
                scripts,
            )
            for each in diagrams
        )
    )
