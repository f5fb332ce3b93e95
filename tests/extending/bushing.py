"""A rubber bushing as a user would write it; also for turns that are not small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import numpy as np

from mbsfmu import Array, BodyPoint, Force, ForceContext, NonNegative, Parameter, PointLoad, PointReference, Quantity

Three = tuple[NonNegative, NonNegative, NonNegative]


class Bushing(Force):
    """Springs and dampers between two points, along and about the axes of the parent.

    Turns are measured by the vector part of the rotation, sin θ about its axis.

    Attributes
    ----------
    parent, child
        The two points, together without a load where the bodies have the same orientation.
    stiffness, damping
        Along the axes in N/m and N s/m.
    turning_stiffness, turning_damping
        About the axes in N m/rad and N m s/rad.
    """

    type: Literal["soft-bushing"] = "soft-bushing"
    parent: PointReference
    child: PointReference
    stiffness: Annotated[Three, Parameter("N/m", "stiffness")]
    turning_stiffness: Annotated[Three, Parameter("N.m/rad", "rotational stiffness")]
    damping: Annotated[Three, Parameter("N.s/m", "damping", tunable=True)] = (0.0, 0.0, 0.0)
    turning_damping: Annotated[Three, Parameter("N.m.s/rad", "rotational damping", tunable=True)] = (0.0, 0.0, 0.0)

    def outputs(self) -> tuple[Quantity, ...]:
        return tuple(
            Quantity(f"deflection.{axis}", "m", description=f"deflection, {axis} of the parent", shared=True)
            for axis in "xyz"
        )

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        parent, child = self._ends(now)
        gap = child.position - parent.position
        shift, rate = self._shift(now)
        force = parent.rotation @ (-now["stiffness"] * shift - now["damping"] * rate)
        turn, turning, jacobian = self._turn(now)
        moment = parent.rotation @ (jacobian.T @ (-now["turning_stiffness"] * turn - now["turning_damping"] * turning))
        return (PointLoad("child", force, moment), PointLoad("parent", -force, -moment - np.cross(gap, force)))

    def dissipation(self, now: ForceContext) -> Array:
        return now["damping"] @ self._shift(now)[1] ** 2 + now["turning_damping"] @ self._turn(now)[1] ** 2

    def energy(self, now: ForceContext) -> Array:
        return 0.5 * (now["stiffness"] @ self._shift(now)[0] ** 2 + now["turning_stiffness"] @ self._turn(now)[0] ** 2)

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        shift, _ = self._shift(now)
        return {f"deflection.{axis}": shift[index] for index, axis in enumerate("xyz")}

    def _ends(self, now: ForceContext) -> tuple[BodyPoint, BodyPoint]:
        return now.point("parent"), now.point("child")

    def _shift(self, now: ForceContext) -> tuple[Array, Array]:
        """Return the deflection in the parent's frame in m, and its rate."""
        parent, child = self._ends(now)
        gap = child.position - parent.position
        rate = child.velocity - parent.velocity - np.cross(parent.angular_velocity, gap)
        return parent.rotation.T @ gap, parent.rotation.T @ rate

    def _turn(self, now: ForceContext) -> tuple[Array, Array, Array]:
        """Return the turn in the parent's frame in rad, its rate, and what makes this of the angular velocity."""
        parent, child = self._ends(now)
        turned = parent.rotation.T @ child.rotation
        turn = 0.5 * np.stack([turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1]])
        jacobian = 0.5 * (np.trace(turned) * np.eye(3) - turned)
        relative = parent.rotation.T @ (child.angular_velocity - parent.angular_velocity)
        return turn, jacobian @ relative, jacobian
