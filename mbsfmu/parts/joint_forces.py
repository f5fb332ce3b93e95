"""Loads along the coordinates of joints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from mbsfmu.data import Array, Parameter, Quantity
from mbsfmu.model.force import Force, JointLoad
from mbsfmu.model.names import JointReference, NonNegative
from mbsfmu.model.present import Present


class JointSpringDamper(Force):
    """A spring and a damper on the coordinate of a joint of the spanning tree.

    Attributes
    ----------
    joint
        Name of a joint of the spanning tree with one coordinate, as revolute or prismatic ones.
    stiffness
        In N m/rad, or N/m on a joint that slides.
    damping
        In N m s/rad, or N s/m.
    free_coordinate
        Coordinate without force in rad or m.
    """

    type: Literal["joint-spring-damper"] = "joint-spring-damper"
    joint: JointReference
    stiffness: Annotated[NonNegative, Parameter("{joint.load}/{joint.coordinate}", "stiffness")] = 0.0
    damping: Annotated[NonNegative, Parameter("{joint.load}.s/{joint.coordinate}", "damping")] = 0.0
    free_coordinate: Annotated[float, Parameter("{joint.coordinate}", "coordinate without force")] = 0.0

    def loads(self, now: Present) -> Iterable[JointLoad]:
        """Load the joint with the spring's and the damper's effort."""
        load = -now["stiffness"] * self._stretch(now) - now["damping"] * now.joint("joint").rate
        return (JointLoad("joint", load),)

    def dissipation(self, now: Present) -> Array:
        """Return the damper's loss in W."""
        return now["damping"] * now.joint("joint").rate ** 2

    def energy(self, now: Present) -> Array:
        """Return the spring's energy in J."""
        return 0.5 * now["stiffness"] * self._stretch(now) ** 2

    def _stretch(self, now: Present) -> Array:
        return now.joint("joint").coordinate - now["free_coordinate"]


class JointDrive(Force):
    """A torque (or force, where it slides) in a joint of the spanning tree, given from outside.

    It takes the input `torque` in N m, or `force` in N.

    Attributes
    ----------
    joint
        Name of a joint of the spanning tree with one coordinate, as revolute or prismatic ones.
    """

    type: Literal["joint-drive"] = "joint-drive"
    joint: JointReference

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the torque or force."""
        described = "{joint.effort} in the joint, on the outer body"
        return (Quantity("{joint.effort}", "{joint.load}", 0.0, description=described),)

    def loads(self, now: Present) -> Iterable[JointLoad]:
        """Load the joint with what is given."""
        return (JointLoad("joint", now["{joint.effort}"]),)

    def work_rate(self, now: Present) -> Array:
        """Return load times rate in W."""
        return now["{joint.effort}"] * now.joint("joint").rate
