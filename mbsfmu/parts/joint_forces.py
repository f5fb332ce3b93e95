"""Loads along the coordinates of joints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal

from mbsfmu.model.force import Force, JointLoad
from mbsfmu.model.force_context import ForceContext
from mbsfmu.model.reference_types import JointReference, NonNegative
from mbsfmu.modelling import Array, Parameter, Quantity


class JointSpringDamper(Force):
    """A spring and a damper on a coordinate of a joint.

    Attributes
    ----------
    joint
        The coordinate: the name of a joint with one, or `joint.coordinate`; of a cut joint angles are within ±π.
    stiffness
        In N m/rad, or N/m along a coordinate that slides.
    damping
        In N m s/rad, or N s/m.
    free_coordinate
        Coordinate at which the preload is all there is, in rad or m.
    preload
        Load there in N m or N, positive where it increases the coordinate.
    """

    type: Literal["joint-spring-damper"] = "joint-spring-damper"
    joint: JointReference
    stiffness: Annotated[NonNegative, Parameter("{joint.load}/{joint.coordinate}", "stiffness")] = 0.0
    damping: Annotated[NonNegative, Parameter("{joint.load}.s/{joint.coordinate}", "damping", tunable=True)] = 0.0
    free_coordinate: Annotated[float, Parameter("{joint.coordinate}", "coordinate without force")] = 0.0
    preload: Annotated[float, Parameter("{joint.load}", "load at the free coordinate")] = 0.0

    def loads(self, now: ForceContext) -> Iterable[JointLoad]:
        """Load the joint with the spring's and the damper's effort."""
        spring = now["preload"] - now["stiffness"] * self._stretch(now)
        return (JointLoad("joint", spring - now["damping"] * now.joint("joint").rate),)

    def dissipation(self, now: ForceContext) -> Array:
        """Return the damper's loss in W."""
        return now["damping"] * now.joint("joint").rate ** 2

    def energy(self, now: ForceContext) -> Array:
        """Return the spring's energy in J."""
        stretch = self._stretch(now)
        return 0.5 * now["stiffness"] * stretch**2 - now["preload"] * stretch

    def _stretch(self, now: ForceContext) -> Array:
        return now.joint("joint").coordinate - now["free_coordinate"]


class _JointEffort(Force, abstract=True):
    """A torque (or force, where it slides) along a coordinate of a joint, given from outside.

    Attributes
    ----------
    joint
        The coordinate: the name of a joint with one, or `joint.coordinate`.
    """

    joint: JointReference

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the torque or force."""
        described = "{joint.effort} in the joint, on the outer body"
        return (Quantity("{joint.effort}", "{joint.load}", 0.0, description=described),)

    def loads(self, now: ForceContext) -> Iterable[JointLoad]:
        """Load the joint with what is given."""
        return (JointLoad("joint", now["{joint.effort}"]),)

    def work_rate(self, now: ForceContext) -> Array:
        """Return load times rate in W."""
        return now["{joint.effort}"] * now.joint("joint").rate


class JointDrive(_JointEffort):
    """A torque (or force, where it slides) along a coordinate of a joint, given from outside.

    It takes the input `torque` in N m, or `force` in N.
    """

    type: Literal["joint-drive"] = "joint-drive"


class JointActuator(_JointEffort):
    """A joint of the spanning tree that something outside turns or slides: a hydraulic motor, say.

    It takes the input `torque` and gives the outputs `angle` and `angular_velocity`, or where it slides `force`,
    `displacement` and `velocity`. Its `static_torque` (or `static_force`) holds the mechanism still where it starts.
    """

    balancing: ClassVar[tuple[str, ...]] = ("{joint.effort}",)
    type: Literal["joint-actuator"] = "joint-actuator"

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the coordinate and its rate."""
        return (
            Quantity("{joint.position}", "{joint.coordinate}", description="coordinate of the joint", shared=True),
            Quantity("{joint.rate}", "{joint.coordinate}/s", description="rate of the coordinate", shared=True),
        )

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return the coordinate and its rate."""
        motion = now.joint("joint")
        return {"{joint.position}": motion.coordinate, "{joint.rate}": motion.rate}
