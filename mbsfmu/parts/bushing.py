"""Bushings: translational and rotational springs and dampers between two bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from mbsfmu.equations.rotation import cross, rotation_from_vector, vector_from_rotation
from mbsfmu.model.force import Force, PointLoad
from mbsfmu.model.force_context import ForceContext
from mbsfmu.model.reference_types import NonNegative, PointReference, Vector
from mbsfmu.modelling import Array, Measured, Parameter, Quantity

_Three = tuple[NonNegative, NonNegative, NonNegative]


class _Strain(NamedTuple):
    """Deformation of a bushing along its axes: deflection, rotation, and their rates; and the axes, shape (3, 3)."""

    axes: Array
    shift: Array
    shift_rate: Array
    turn: Array
    turn_rate: Array


class Bushing(Force):
    """Linear springs and dampers along and about three axes between points of two bodies.

    The outputs are `deflection.x` to `.z` and `turn.x` to `.z` along the axes, which are fixed in the parent. The
    rotation is the rotation vector from parent to child; a spring of equal stiffnesses gives the moment stiffness times
    angle about it. It is discontinuous at half turns.

    Attributes
    ----------
    parent, child
        The two points, which coincide in the unloaded bushing.
    stiffness, damping
        Along the axes in N/m and N s/m.
    turning_stiffness, turning_damping
        About the axes in N m/rad and N m s/rad.
    orientation
        Rotation vector in rad from the parent's to the child's frame in the unloaded bushing.
    axes
        Rotation vector in rad from the parent's frame to the axes of the bushing.
    """

    symbol: ClassVar[str] = "none"
    type: Literal["bushing"] = "bushing"
    parent: PointReference
    child: PointReference
    stiffness: Annotated[_Three, Parameter("N/m", "stiffness")]
    turning_stiffness: Annotated[_Three, Parameter("N.m/rad", "rotational stiffness")]
    damping: Annotated[_Three, Parameter("N.s/m", "damping")] = (0.0, 0.0, 0.0)
    turning_damping: Annotated[_Three, Parameter("N.m.s/rad", "rotational damping")] = (0.0, 0.0, 0.0)
    orientation: Annotated[Vector, Measured("rad")] = (0.0, 0.0, 0.0)
    axes: Vector = (0.0, 0.0, 0.0)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return deflection and rotation."""
        return tuple(
            Quantity(
                f"{what}.{axis}", unit, description=f"{what} of {self.child} from {self.parent}, {axis}", shared=True
            )
            for what, unit in (("deflection", "m"), ("turn", "rad"))
            for axis in "xyz"
        )

    def loads(self, now: ForceContext) -> Iterable[PointLoad]:
        """Apply the spring and damper loads to both bodies."""
        strain = self._strain(now)
        force = strain.axes @ (-now["stiffness"] * strain.shift - now["damping"] * strain.shift_rate)
        along = -now["turning_stiffness"] * strain.turn - now["turning_damping"] * strain.turn_rate
        moment = strain.axes @ (_turning(strain.turn).T @ along)
        gap = now.point("child").position - now.point("parent").position
        return (PointLoad("child", force, moment), PointLoad("parent", -force, -moment - cross(gap, force)))

    def dissipation(self, now: ForceContext) -> Array:
        """Return the power dissipated by the dampers in W."""
        strain = self._strain(now)
        return now["damping"] @ strain.shift_rate**2 + now["turning_damping"] @ strain.turn_rate**2

    def energy(self, now: ForceContext) -> Array:
        """Return the elastic energy in J."""
        strain = self._strain(now)
        return 0.5 * (now["stiffness"] @ strain.shift**2 + now["turning_stiffness"] @ strain.turn**2)

    def evaluate_outputs(self, now: ForceContext) -> Mapping[str, Array]:
        """Return deflection and rotation."""
        strain = self._strain(now)
        told = (("deflection", strain.shift), ("turn", strain.turn))
        return {f"{what}.{axis}": vector[index] for what, vector in told for index, axis in enumerate("xyz")}

    def _strain(self, now: ForceContext) -> _Strain:
        parent, child = now.point("parent"), now.point("child")
        own = rotation_from_vector(self.axes)
        axes = parent.rotation @ own
        gap = child.position - parent.position
        passing = child.velocity - parent.velocity - cross(parent.angular_velocity, gap)
        turn = vector_from_rotation(axes.T @ (child.rotation @ rotation_from_vector(self.orientation).T @ own))
        turning = axes.T @ (child.angular_velocity - parent.angular_velocity)
        return _Strain(axes, axes.T @ gap, axes.T @ passing, turn, _turning(turn) @ turning)


def _turning(turn: Array) -> Array:
    """Return the matrix from the relative angular velocity to the rate of the rotation vector φ, shape (3, 3).

    I − [φ]/2 + (1 − (θ/2) cot(θ/2)) [φ]²/θ², θ = |φ| [Bullo1995]; for small angles by its series.
    """
    x, y, z = turn
    none = 0.0 * x
    skew = np.stack([np.stack([none, -z, y]), np.stack([z, none, -x]), np.stack([-y, x, none])])
    square = turn @ turn
    small = square < 1e-2
    half = 0.5 * np.sqrt(np.where(small, 1.0, square))
    far = (1.0 - half * np.cos(half) / np.sin(half)) / (4.0 * half**2)
    near = 1.0 / 12.0 + square / 720.0 + square**2 / 30240.0 + square**3 / 1209600.0 + square**4 / 47900160.0
    return np.eye(3) - 0.5 * skew + np.where(small, near, far) * (skew @ skew)
