"""Joints between two bodies: in the spanning tree a joint gives coordinates, where it is cut it constrains."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mbsfmu.data import Data
from mbsfmu.model.names import Direction, Name, PointReference, Vector


class Joint(Data):
    """What all joints have; see the subclasses for those that can be made.

    Attributes
    ----------
    name
        Name of the joint.
    parent, child
        The points that the joint joins, each as `body.point`; `ground.point` for the fixed frame.
    orientation
        Rotation vector in rad that turns the parent's frame into the child's at coordinate zero.
    cut
        True makes the joint close a loop; where it is False, the spanning tree decides.
    """

    name: Name
    parent: PointReference
    child: PointReference
    orientation: Vector = (0.0, 0.0, 0.0)
    cut: bool = False


class Revolute(Joint):
    """A hinge: the child turns about an axis through the joint's point.

    Attributes
    ----------
    axis
        Direction of the axis in the parent's frame.
    angle, angular_velocity
        Start values of the coordinate in rad and rad/s; no meaning where the joint is cut.
    """

    type: Literal["revolute"] = "revolute"
    axis: Direction = (0.0, 0.0, 1.0)
    angle: float = 0.0
    angular_velocity: float = 0.0


class Prismatic(Joint):
    """A slide: the child moves along an axis and does not turn relative to the parent.

    Attributes
    ----------
    axis
        Direction of the axis in the parent's frame.
    displacement, velocity
        Start values of the coordinate in m and m/s; no meaning where the joint is cut.
    """

    type: Literal["prismatic"] = "prismatic"
    axis: Direction = (1.0, 0.0, 0.0)
    displacement: float = 0.0
    velocity: float = 0.0


class Fixed(Joint):
    """A weld: the child does not move relative to the parent."""

    type: Literal["fixed"] = "fixed"


AnyJoint = Annotated[Revolute | Prismatic | Fixed, Field(discriminator="type")]
