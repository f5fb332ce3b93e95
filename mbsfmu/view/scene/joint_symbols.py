"""Joint symbols from their elements: a pin for a hinge, a sleeve for a slide, a ball for three hinges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mbsfmu.equations.rotation import rotation_from_vector, unit
from mbsfmu.model.joint import AnyJoint, JointElement
from mbsfmu.view.scene.body_shapes import numbers
from mbsfmu.view.scene.poses import Placement
from mbsfmu.view.scene.recorded import Floats


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
