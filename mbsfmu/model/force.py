"""What acts on a mechanism: actuators, springs and dampers between points, and loads in joints."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mbsfmu.data import Data
from mbsfmu.model.names import JointReference, Name, NonNegative, PointReference


class Actuator(Data):
    """A line between two points along which a force acts from outside: a hydraulic cylinder, say.

    It gives the outputs `length` and `velocity` and takes the input `force`; a positive force pushes the
    points apart. Its `static_force` is the one that holds the mechanism still where it starts.

    Attributes
    ----------
    start, end
        The two points, each as `body.point`.
    """

    type: Literal["actuator"] = "actuator"
    name: Name
    start: PointReference
    end: PointReference


class SpringDamper(Data):
    """A spring and a damper side by side between two points.

    Attributes
    ----------
    start, end
        The two points, each as `body.point`.
    stiffness
        In N/m.
    damping
        In N s/m.
    free_length
        Length without force in m.
    """

    type: Literal["spring-damper"] = "spring-damper"
    name: Name
    start: PointReference
    end: PointReference
    stiffness: NonNegative = 0.0
    damping: NonNegative = 0.0
    free_length: NonNegative = 0.0


class JointSpringDamper(Data):
    """A spring and a damper on the coordinate of a joint of the spanning tree.

    Attributes
    ----------
    joint
        Name of a revolute or prismatic joint.
    stiffness
        In N m/rad, or N/m on a prismatic joint.
    damping
        In N m s/rad, or N s/m.
    free_coordinate
        Coordinate without force in rad or m.
    """

    type: Literal["joint-spring-damper"] = "joint-spring-damper"
    name: Name
    joint: JointReference
    stiffness: NonNegative = 0.0
    damping: NonNegative = 0.0
    free_coordinate: float = 0.0


class JointDrive(Data):
    """A torque (or force, on a prismatic joint) in a joint of the spanning tree, given from outside.

    It takes the input `torque` in N m, or `force` in N.

    Attributes
    ----------
    joint
        Name of a revolute or prismatic joint.
    """

    type: Literal["joint-drive"] = "joint-drive"
    name: Name
    joint: JointReference


AnyForce = Annotated[Actuator | SpringDamper | JointSpringDamper | JointDrive, Field(discriminator="type")]
