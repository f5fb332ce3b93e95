"""Parts of a mechanism with points and joints: the motion in their evaluation context."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import NamedTuple

from mbsfmu.equations.bodies import Points, PointSlot, body_and_point
from mbsfmu.equations.frames import body_velocity, point_of_body
from mbsfmu.equations.joint_coordinates import coordinate_at
from mbsfmu.equations.loads import MotionState
from mbsfmu.equations.placed_part import PlacedPart
from mbsfmu.equations.properties import Properties
from mbsfmu.model.force_context import BodyPoint, JointMotion
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.reference_types import ReferenceKind, reference_fields
from mbsfmu.modelling import DynamicPart, Quantity, belonging_to
from mbsfmu.modelling.fields import Array


class Given(NamedTuple):
    """States, inputs and parameters of a mechanism, each a vector.

    Attributes
    ----------
    states, inputs, parameters
        Of the whole mechanism.
    """

    states: Array
    inputs: Array
    parameters: Array


class LocatedPart(PlacedPart):
    """A part that names points and joints of its mechanism.

    Parameters
    ----------
    part, mechanism, points
        The part, its mechanism, and the points of the mechanism.
    properties, first_state, first_input
        As for `PlacedPart`.
    """

    def __init__(
        self,
        part: DynamicPart,
        mechanism: Mechanism,
        points: Points,
        properties: Properties,
        *,
        first_state: int = 0,
        first_input: int = 0,
    ) -> None:
        named = reference_fields(part, ReferenceKind.POINT)
        self._points = {field: body_and_point(mechanism, points, reference) for field, reference in named.items()}
        joints = reference_fields(part, ReferenceKind.JOINT)
        self._joints = {field: coordinate_at(mechanism, points, joint) for field, joint in joints.items()}
        super().__init__(part, mechanism, joints, properties, first_state=first_state, first_input=first_input)

    def _placed(self, motion: MotionState, parameters: Array) -> dict[str, Callable[[], BodyPoint]]:
        """Return the positions and velocities of the points, by field."""
        return {field: cache(partial(_point, motion, *place, parameters)) for field, place in self._points.items()}

    def _moved(self, motion: MotionState, parameters: Array) -> dict[str, Callable[[], JointMotion]]:
        """Return the coordinates and rates of the joints, by field."""
        return {field: cache(partial(each.motion, motion, parameters)) for field, each in self._joints.items()}


def of_part(part: DynamicPart, quantities: Iterable[Quantity]) -> tuple[Quantity, ...]:
    """Return variables of a part with full names."""
    return tuple(belonging_to(part.name, quantity) for quantity in quantities)


def _point(motion: MotionState, body: int, slot: PointSlot, parameters: Array) -> BodyPoint:
    return point_of_body(motion.frames, body_velocity(motion.body_velocities, body), body, slot.of(parameters))
