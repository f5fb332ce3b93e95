"""Numbers of mechanisms and of controllers that are hardly meant: angles in degrees, inertias in other units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import degrees, pi, radians

import numpy as np
from numpy.typing import NDArray

from mbsfmu.model.body import Body, Point, RigidBody
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.reference_types import GROUND, ReferenceKind, references
from mbsfmu.modelling.plausibility import unusual_numbers

Floats = NDArray[np.float64]

TURN = 2.0 * pi
"""A turn in rad: joints start within one, and cylinders turn joints by less than half of one."""
WIDER = 3.0
"""Factor by which a radius of gyration may exceed the largest distance in a mechanism: no mass of a body is farther
from its centre than the body is long.
"""
WIDER_WITH_DRIVE = 30.0
"""The same of bodies on an axis in the ground, whose inertia may be that of a motor behind a gear."""
_GRAVE_STOPS = 2.0 * TURN  # steering wheels have stops at less


def implausible_numbers(mechanism: Mechanism, numbers: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on each number of a mechanism that is hardly meant.

    Parameters
    ----------
    mechanism
        The mechanism.
    numbers
        Values by the names of its parameters that are not as in the data.
    """
    for force in mechanism.forces:
        yield from unusual_numbers(force, numbers)
    yield from _angles(mechanism, numbers)
    yield from _inertias(mechanism, numbers)


def angle_in_degrees(what: str, angle: float) -> str:
    """Return the sentence on an angle in rad that is probably in degrees."""
    return (
        f"{what} is {angle:g} rad ({degrees(angle):g} deg), {abs(angle) / TURN:.3g} turns, which is implausible; "
        f"numbers without a unit are in rad, and {angle:g} degrees are {radians(angle):.6g} rad"
    )


def _angles(mechanism: Mechanism, numbers: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on each joint that starts more than a turn away, and on each stop that is farther."""
    topology = mechanism.topology
    owners = {tree.joint.name: body.name for body, tree in zip(topology.bodies, topology.tree, strict=True)}
    for joint in mechanism.joints:
        for name, element in zip(joint.coordinate_names, joint.elements, strict=True):
            owner = owners.get(joint.name)
            start = element.start if owner is None else numbers.get(f"{owner}.{_start_name(name)}", element.start)
            if not element.slides and abs(start) > TURN:
                yield angle_in_degrees(f"{joint.type} '{joint.name}': the {name.replace('_', ' ')} at the start", start)
    for force in mechanism.forces:
        for reference in references(force, ReferenceKind.JOINT):
            joint, index = mechanism.joint_element(reference)
            for limit in ("lower", "upper") if not joint.elements[index].slides else ():
                value = numbers.get(f"{force.name}.{limit}", getattr(force, limit, None))
                if value is not None and abs(value) > (TURN if _is_round(value) else _GRAVE_STOPS):
                    yield angle_in_degrees(f"{force.type} '{force.name}': {limit}", value)


def _start_name(coordinate: str) -> str:
    """Return the last part of the parameter that a coordinate starts with: `angle_start_1` of `angle_1`."""
    for what in ("cardan_angle", "angle"):
        if coordinate.startswith(what):
            return f"{what}_start{coordinate.removeprefix(what)}"
    return f"{coordinate}_start"


def _is_round(angle: float) -> bool:
    """Return whether an angle is as angles in degrees are written, in halves: multiples of pi in rad are not."""
    return float(2.0 * angle).is_integer()


def _inertias(mechanism: Mechanism, numbers: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence on each body whose mass would be farther from its centre than the whole mechanism is long."""
    ground = np.array(list(mechanism.ground.values()) or [np.zeros(3)])
    size = max([*map(_size, mechanism.bodies), float(np.linalg.norm(np.ptp(ground, axis=0)))])
    topology = mechanism.topology
    for body, tree in zip(topology.bodies, topology.tree, strict=True):
        factor = WIDER_WITH_DRIVE if tree.parent < 0 and len(tree.joint.elements) == 1 else WIDER
        if not isinstance(body, RigidBody) or size == 0.0:
            continue
        tensor = body.inertia_tensor
        names = [[f"{body.name}.inertia_{min(a, b)}{max(a, b)}" for b in "xyz"] for a in "xyz"]
        moments = [[numbers.get(names[i][j], tensor[i, j]) for j in range(3)] for i in range(3)]
        mass, greatest = numbers.get(f"{body.name}.mass", body.mass), float(np.linalg.eigvalsh(moments)[-1])
        if mass > 0.0 and (radius := (max(greatest, 0.0) / mass) ** 0.5) > factor * size:
            yield (
                f"body '{body.name}' has {mass:g} kg and a moment of inertia of {greatest:g} kg m2, a radius of "
                f"gyration of {radius:.3g} m, where no distance in the mechanism is longer than {size:.3g} m, which is "
                "implausible; numbers are in SI units"
            )


def _size(body: Body) -> float:
    """Return the largest distance of a body's points from its origin or centre of mass in m."""
    length = getattr(body, "length", None) or 0.0

    def place(point: Point) -> Floats:
        x, y, z = point.position
        return np.array([x + point.along * length, y, z])

    middle = place(body.centre_of_mass)
    places = [place(point) for point in body.all_points.values()]
    return max((float(max(np.linalg.norm(each), np.linalg.norm(each - middle))) for each in places), default=0.0)


def joint_angle(mechanism: Mechanism, coordinate: str) -> tuple[float, bool] | None:
    """Return where an angle of a joint starts in rad, and whether a cylinder or stop keeps the joint within a turn.

    None of what is no angle of a joint of the spanning tree. The coordinate is `body.angle`.
    """
    topology = mechanism.topology
    limited = _limited_joints(mechanism)
    for body, tree in zip(topology.bodies, topology.tree, strict=True):
        for name, element in zip(tree.joint.coordinate_names, tree.joint.elements, strict=True):
            if coordinate == f"{body.name}.{name}" and not element.slides:
                return element.start, tree.joint.name in limited
    return None


def _limited_joints(mechanism: Mechanism) -> set[str]:
    """Return the joints that stops limit, or that a cylinder spans, which turns them by half a turn at most."""
    found: set[str] = set()
    for force in mechanism.forces:
        for reference in references(force, ReferenceKind.JOINT):
            if getattr(force, "lower", None) is not None and getattr(force, "upper", None) is not None:
                found.add(mechanism.joint_element(reference)[0].name)
        points = references(force, ReferenceKind.POINT)
        if force.balancing and len(points) == 2:
            first, second = (_joints_inwards(mechanism, point.partition(".")[0]) for point in points)
            found |= first ^ second
    return found


def _joints_inwards(mechanism: Mechanism, body: str) -> set[str]:
    """Return the joints between a body and the ground in the spanning tree."""
    topology, found = mechanism.topology, set()
    index = -1 if body == GROUND else topology.index(body)
    while index >= 0:
        found.add(topology.tree[index].joint.name)
        index = topology.tree[index].parent
    return found
