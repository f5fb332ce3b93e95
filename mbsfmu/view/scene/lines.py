"""Forces between two points: springs, dampers, hydraulic cylinders with pressures, others as plain lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hydraulics.component import HydraulicActuator
from hydraulics.cylinders import AnyCylinder
from mbsfmu.model.circuit_kind import circuits_of
from mbsfmu.model.force import Force
from mbsfmu.model.machine import Machine
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.view.scene.body_shapes import numbers
from mbsfmu.view.scene.poses import Placement

_DEAD, _HEAD = 0.4, 0.2
"""Shares of what a retracted cylinder is longer than its stroke: behind the piston, and the head before it."""
_WALL = 1.15
"""Ratio of outer to inner diameter of a barrel."""


def force_lines(placement: Placement, machine: Machine, first_body: int, size: float) -> list[dict[str, Any]]:
    """Return the forces of a mechanism between two points.

    Parameters
    ----------
    placement, machine
        The mechanism, and what it is part of.
    first_body
        Index of its first body among those of the scene.
    size
        How large the mechanism is in m.
    """
    result = []
    for force in placement.mechanism.forces:
        points = references(force, ReferenceKind.POINT)
        if len(points) != 2 or force.symbol == "none":
            continue
        ends = []
        for reference in points:
            body, position = placement.point(reference)
            ends.append({"body": body if body < 0 else first_body + body, "position": numbers(position)})
        line = {"name": f"{placement.system}.{force.name}", "kind": force.symbol, "radius": 0.012 * size, "ends": ends}
        for actuator in _actuators(machine, placement.system, force):
            line |= _cylinder(*actuator, machine)
        result.append(line)
    return result


def _actuators(machine: Machine, system: str, force: Force) -> Iterator[tuple[str, HydraulicActuator]]:
    """Yield the hydraulic cylinder of a force, with the name of its circuit."""
    inputs = {f"{system}.{force.name}.{each.name}" for each in force.inputs()}
    circuits = circuits_of(machine.systems)
    for source, target in machine.connections:
        circuit, variable = machine.split(source)
        if target in inputs and circuit in circuits:
            name = variable.partition(".")[0]
            yield from ((circuit, each) for each in circuits[circuit].actuators if each.name == name)


def _cylinder(circuit: str, actuator: HydraulicActuator, machine: Machine) -> dict[str, Any]:
    """Return the sizes of a cylinder in m, and the nodes of its chambers."""
    nodes = [f"{circuit}.{node}" for node in actuator.nodes()]
    if not isinstance(actuator, AnyCylinder):
        return {"nodes": nodes[:2]}

    def number(field: str) -> float:
        value = getattr(actuator, field)
        return machine.values.get(f"{circuit}.{actuator.name}.{field}", value)

    stroke, retracted = number("stroke"), number("retracted_length")
    spare = max(retracted - stroke, 0.0)
    sizes = {"dead": _DEAD * spare, "barrel": stroke + (_DEAD + _HEAD) * spare, "retracted": retracted}
    if hasattr(actuator, "piston_diameter"):
        piston, rod = number("piston_diameter"), number("rod_diameter")
        sizes |= {"bore": 0.5 * _WALL * piston, "rod": 0.5 * rod}
    return {"kind": "cylinder", "nodes": nodes[:2], "cylinder": sizes}
