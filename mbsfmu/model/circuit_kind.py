"""Hydraulic circuits as systems of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hydraulics import Circuit
from hydraulics.circuit import circuit_conditions, plausibility_warnings
from mbsfmu.model.actuator_lines import check_actuators
from mbsfmu.model.icon_strokes import FLUID, FORCE, JOINT, Stroke
from mbsfmu.model.system_kinds import SystemKind, register_system_kind


def circuits_of(systems: Mapping[str, Any]) -> dict[str, Circuit]:
    """Return the circuits among systems by name."""
    return {name: data for name, data in systems.items() if isinstance(data, Circuit)}


def _topology(circuit: Circuit) -> dict[str, Any]:
    """Return each node with its ports and the source of its pressure."""
    held = circuit.source_nodes
    nodes: dict[str, dict[str, Any]] = {}
    for component in circuit.components:
        for port, node in component.ports().items():
            at = "held" if node in held else "state"
            nodes.setdefault(node, {"pressure": at, "ports": []})["ports"].append(f"{component.name}.{port}")
    return {"nodes": nodes}


def _icon(circuit: Circuit) -> Iterator[Stroke]:
    """Draw nodes around a circle, and components as dots between the nodes at their ports; actuators stand out."""
    nodes = list(dict.fromkeys(node for component in circuit.components for node in component.nodes()))
    turns = 2.0 * np.pi * np.arange(len(nodes)) / len(nodes)
    places = {node: np.array([np.sin(turn), np.cos(turn)]) for node, turn in zip(nodes, turns, strict=True)}
    for component in circuit.components:
        own = [places[node] for node in component.nodes()]
        middle = np.mean(own, axis=0) if len(own) > 1 else 1.25 * own[0]
        width, colour = (14.0, FORCE) if component in circuit.actuators else (9.0, FLUID)
        for place in own:
            yield Stroke(tuple(middle.tolist()), tuple(place.tolist()), 3.0, FLUID)
        yield Stroke(tuple(middle.tolist()), tuple(middle.tolist()), width, colour)
    for place in places.values():
        yield Stroke(tuple(place.tolist()), tuple(place.tolist()), 7.0, JOINT)


register_system_kind(
    SystemKind(
        "circuit",
        Circuit,
        "components",
        diagnostics=plausibility_warnings,
        topology=_topology,
        icon=_icon,
        check_connections=check_actuators,
        conditions=circuit_conditions,
    )
)
