"""Shapes of bodies and symbols of joints: from data, or rods, cuboids and balls by default."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.equations.rotation import quaternion_from_rotation, rotation_from_vector, unit
from mbsfmu.model.body import (
    AnyShape,
    Beam,
    Body,
    BoxShape,
    Cuboid,
    CylinderShape,
    MeshShape,
    PlateShape,
    RigidBody,
    RodShape,
    SphereShape,
)
from mbsfmu.model.joint import AnyJoint, JointElement
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.view.scene.gltf import triangles
from mbsfmu.view.scene.poses import Floats, Placement


def packed(values: Floats) -> str:
    """Return numbers of four bytes each, least significant byte first, in base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")


Shape = dict[str, Any]
"""A shape in the form of the page: kind, sizes in m, and pose in the body frame."""

Vector3 = Sequence[float] | Floats

_SAME = 1e-9
"""Fraction of a mechanism's size within which two points are equal."""
_RODS = 3
"""Largest number of points of a body connected to each other; more are connected to their centre."""
_DENSITY = 7850.0
"""Of steel in kg/m³, which balls are of that stand for masses without an extent."""
_LEAST_DENSITY = 50.0
"""In kg/m³, lighter than the frames and hulls of machines: what seems lighter has an inertia that nobody weighed."""


def shapes_of(placement: Placement, size: float) -> list[list[Shape]]:
    """Return the shapes of each body from its data.

    Parameters
    ----------
    placement
        The mechanism.
    size
        How large it is in m: rods get no thicker than a share of that.
    """
    joined = _joined_points(placement, size)
    return [list(_from_data(body, joined[body.name], size)) for body in placement.bodies]


def _joined_points(placement: Placement, size: float) -> dict[str, tuple[list[Floats], list[Floats]]]:
    """Return the joint points of each body, and its other named or loaded points."""
    mechanism = placement.mechanism
    joints = [reference for joint in mechanism.joints for reference in (joint.parent, joint.child)]
    forces = [reference for force in mechanism.forces for reference in references(force, ReferenceKind.POINT)]
    result: dict[str, tuple[list[Floats], list[Floats]]] = {}
    for body in mechanism.bodies:
        held: list[Floats] = []
        acted: list[Floats] = []
        named = [f"{body.name}.{name}" for name in body.points]
        for reference, places in [*((each, held) for each in joints), *((each, acted) for each in (*forces, *named))]:
            if reference.partition(".")[0] == body.name:
                place = placement.point(reference)[1]
                if not any(np.linalg.norm(place - other) <= _SAME * size for other in (*held, *acted)):
                    places.append(place)
        result[body.name] = held, acted
    return result


def _from_data(body: Body, places: tuple[list[Floats], list[Floats]], size: float) -> Iterator[Shape]:
    """Yield the shapes of a body that has none of its own."""
    held, acted = places
    if isinstance(body, Cuboid):
        yield box((body.length,) * 3)
        return
    if isinstance(body, Beam):
        held = [np.zeros(3), np.array([body.length, 0.0, 0.0])]
    if len(held) == 1 and acted:
        held = [*held, acted.pop(int(np.argmax([np.linalg.norm(place - held[0]) for place in acted])))]
    if len(held) + len(acted) > 1:
        longest = max(np.linalg.norm(one - other) for one, other in combinations([*held, *acted], 2))
        radius = float(min(0.06 * longest, 0.018 * size))
        yield from _frame(held or acted[:1], radius)
        for place in acted if held else acted[1:]:
            nearest = min(held or acted[:1], key=lambda other: float(np.linalg.norm(other - place)))
            yield rod(nearest, place, 0.6 * radius)
        return
    centre = np.array(body.centre_of_mass.position)
    if held and np.linalg.norm(held[0] - centre) > _SAME * size:
        yield rod(held[0], centre, 0.008 * size)
    yield _of_inertia(body, centre) if isinstance(body, RigidBody) else ball(0.03 * size, centre)


def _frame(held: Sequence[Floats], radius: float) -> Iterator[Shape]:
    """Yield rods that join the joints of a body, each to each where they are few."""
    if len(held) <= _RODS:
        for one, other in combinations(held, 2):
            yield rod(one, other, radius)
        return
    middle = np.mean(held, axis=0)
    for place in held:
        yield rod(middle, place, radius)


def _of_inertia(body: RigidBody, centre: Floats) -> Shape:
    """Return the cuboid that has a body's mass and inertia; a ball of steel where that has no extent.

    Where it would be lighter than anything built, as of 2 kg on a slide with moments of 1 kg m², which do not count
    there, it is as large as its mass lets it.
    """
    moments, axes = np.linalg.eigh(body.inertia_tensor)
    squares = 6.0 * (np.sum(moments) - 2.0 * moments) / body.mass
    if not np.all(squares > 0.0):
        squares = np.maximum(squares, 1e-3 * np.max(squares))
    if not np.max(squares) > 0.0:
        return ball(float(np.cbrt(0.75 * body.mass / (np.pi * _DENSITY))), centre)
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    edges = np.sqrt(squares)
    return box(edges * min(1.0, np.cbrt(body.mass / (_LEAST_DENSITY * np.prod(edges)))), centre, axes)


def box(size: Vector3, centre: Vector3 = (0.0, 0.0, 0.0), axes: Floats | None = None) -> Shape:
    """Return a box of three edges in m, turned by a rotation matrix."""
    return {"kind": "box", "size": numbers(size), **placed(centre, axes)}


def ball(radius: float, centre: Vector3) -> Shape:
    """Return a ball."""
    return {"kind": "sphere", "radius": radius, **placed(centre)}


def rod(start: Vector3, end: Vector3, radius: float) -> Shape:
    """Return a rod between two points."""
    return {"kind": "rod", "start": numbers(start), "end": numbers(end), "radius": radius}


def placed(centre: Vector3, axes: Floats | None = None) -> Shape:
    """Return place and orientation (x, y, z, w) of a shape."""
    turned = np.eye(3) if axes is None else axes
    return {"position": numbers(centre), "quaternion": numbers(np.roll(quaternion_from_rotation(turned), -1))}


def numbers(values: Vector3) -> list[float]:
    """Return numbers as a page takes them, to seven digits."""
    return [float(f"{value:.7g}") for value in values]


def given_shapes(shapes: Iterable[AnyShape], owner: str) -> tuple[list[Shape], list[str]]:
    """Return shapes, and sentences on those that cannot be drawn.

    Parameters
    ----------
    shapes
        Those of a body or of the ground.
    owner
        Whose they are, for the sentences.
    """
    drawn, notes = [], []
    for shape in shapes:
        try:
            found = _drawn(shape)
        except InputError as error:
            notes.append(f"{owner}: {error}")
            continue
        drawn.append(found if shape.colour is None else {**found, "colour": shape.colour})
    return drawn, notes


def _drawn(shape: AnyShape) -> Shape:
    if isinstance(shape, RodShape):
        return rod(shape.start, shape.end, shape.radius)
    axes = rotation_from_vector(shape.orientation)
    place = placed(shape.position, axes)
    match shape:
        case BoxShape():
            return box(shape.size, shape.position, axes)
        case SphereShape():
            return {"kind": "sphere", "radius": shape.radius, **place}
        case CylinderShape():
            return {"kind": "cylinder", "radius": shape.radius, "length": shape.length, **place}
        case PlateShape():
            outline = [numbers(corner) for corner in shape.outline]
            return {"kind": "plate", "outline": outline, "thickness": shape.thickness, **place}
        case MeshShape():
            return {"kind": "mesh", "triangles": packed(triangles(shape.file) * np.array(shape.scale)), **place}


def joint_symbols(placement: Placement, first_body: int) -> list[dict[str, Any]]:
    """Return the symbols of all joints, each on its moving body.

    Parameters
    ----------
    placement
        The mechanism.
    first_body
        Index of its first body among those of the scene.
    """

    def end(reference: str, axis: Floats) -> dict[str, Any]:
        body, position = placement.point(reference)
        body = body if body < 0 else first_body + body
        return {"body": body, "position": numbers(position), "axis": numbers(axis)}

    result = []
    for joint in placement.mechanism.joints:
        turned = rotation_from_vector(joint.orientation).T
        for kind, reference, axis in _marks(joint):
            symbol = {"name": joint.name, "kind": kind, **end(reference, axis)}
            if kind == "slide":  # a rail on the parent, on which a sleeve of the child goes
                along = axis if reference == joint.parent else turned.T @ axis
                symbol = {**symbol, **end(joint.child, turned @ along), "rail": end(joint.parent, along)}
            result.append(symbol)
    return result


def _marks(joint: AnyJoint) -> Iterator[tuple[str, str, Floats]]:
    """Yield kind, point and axis of a joint's marks: the first element's on the parent, the last one's on the child."""
    slides = [each for each in joint.elements if each.slides]
    hinges = [each for each in joint.elements if not each.slides]
    if len(joint.elements) == 6:
        return
    if joint.only_closes:
        yield "ball", joint.parent, np.array([0.0, 1.0, 0.0])
        yield "ball", joint.child, np.array([0.0, 1.0, 0.0])
        return
    if not joint.elements:
        yield "fixed", joint.parent, np.array([0.0, 1.0, 0.0])
    if len(hinges) == 3:
        yield "ball", joint.child, np.array([0.0, 1.0, 0.0])
        hinges = []
    for kind, elements in (("slide", slides), ("pin", hinges)):
        for element in elements:
            yield kind, *_axis(joint, element)


def _axis(joint: AnyJoint, element: JointElement) -> tuple[str, Floats]:
    """Return the point and the axis, in that body's frame, of an element that only the first ones or the last have."""
    if element is joint.elements[-1] and len(joint.elements) > 1:
        return joint.child, rotation_from_vector(joint.orientation).T @ unit(element.axis)
    return joint.parent, unit(element.axis)
