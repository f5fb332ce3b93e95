"""Loads along joint coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal

from mbsfmu.model.force import Force, JointLoad
from mbsfmu.model.force_context import ForceContext
from mbsfmu.model.reference_types import JointReference, NonNegative
from mbsfmu.modelling import Array, Parameter, Quantity


class JointSpringDamper(Force):
    """Spring and damper on a joint coordinate.

    Attributes
    ----------
    joint
        The coordinate: the name of a joint with one, or `joint.coordinate`; of a cut joint angles are within ±π.
    stiffness
        In N m/rad, or N/m for a sliding coordinate.
    damping
        In N m s/rad, or N s/m.
    free_coordinate
        Coordinate in rad or m at which the load is the preload.
    preload
        Load at the free coordinate in N m or N, positive where it increases the coordinate.
    """

    type: Literal["joint-spring-damper"] = "joint-spring-damper"
    joint: JointReference
    stiffness: Annotated[NonNegative, Parameter("{joint.load}/{joint.coordinate}", "stiffness")] = 0.0
    damping: Annotated[NonNegative, Parameter("{joint.load}.s/{joint.coordinate}", "damping", tunable=True)] = 0.0
    free_coordinate: Annotated[float, Parameter("{joint.coordinate}", "coordinate without spring load")] = 0.0
    preload: Annotated[float, Parameter("{joint.load}", "load at the free coordinate")] = 0.0

    def loads(self, now: ForceContext) -> Iterable[JointLoad]:
        """Apply the spring and damper load to the joint."""
        spring = now["preload"] - now["stiffness"] * self._stretch(now)
        return (JointLoad("joint", spring - now["damping"] * now.joint("joint").rate),)

    def dissipation(self, now: ForceContext) -> Array:
        """Return the power dissipated by the damper in W."""
        return now["damping"] * now.joint("joint").rate ** 2

    def energy(self, now: ForceContext) -> Array:
        """Return the elastic energy in J."""
        stretch = self._stretch(now)
        return 0.5 * now["stiffness"] * stretch**2 - now["preload"] * stretch

    def _stretch(self, now: ForceContext) -> Array:
        return now.joint("joint").coordinate - now["free_coordinate"]


class _JointEffort(Force, abstract=True):
    """Base of an external torque (or force) along a joint coordinate.

    Attributes
    ----------
    joint
        The coordinate: the name of a joint with one, or `joint.coordinate`.
    """

    joint: JointReference

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the torque or force input."""
        described = "{joint.effort} in the joint, on the outer body"
        return (Quantity("{joint.effort}", "{joint.load}", 0.0, description=described),)

    def loads(self, now: ForceContext) -> Iterable[JointLoad]:
        """Apply the input to the joint."""
        return (JointLoad("joint", now["{joint.effort}"]),)

    def work_rate(self, now: ForceContext) -> Array:
        """Return the power of the input in W."""
        return now["{joint.effort}"] * now.joint("joint").rate


class JointDrive(_JointEffort):
    """External torque (or force, for a sliding coordinate) along a joint coordinate.

    It takes the input `torque` in N m, or `force` in N.
    """

    type: Literal["joint-drive"] = "joint-drive"


class JointActuator(_JointEffort):
    """Joint of the spanning tree that another system drives, such as a hydraulic motor.

    The input is `torque`, and the outputs are `angle` and `angular_velocity`; for a sliding joint `force`,
    `displacement` and `velocity`. `static_torque` (or `static_force`) is the load of static equilibrium at the start.
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
