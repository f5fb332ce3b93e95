"""Joints between FMUs as data: kind, two handles, axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from mbsfmu.base.errors import InputError

JointKind = Literal["spherical", "revolute", "prismatic", "fixed"]
JOINT_KINDS: tuple[JointKind, ...] = get_args(JointKind)
Component = str | None
Triple = tuple[Component, Component, Component]

_FORM = "it must read kind:a.handle=b.handle, with the axis behind another colon, as revolute:a.pin=b.pin:0,0,1"
_AXIAL = ("revolute", "prismatic")
TOLERANCE = 5e-10
"""Default of what a joint may be open by at a communication point, in m and rad: three components make less than 1e-9.
A fifth of it takes a tenth more evaluations, and leaves five digits of the errors as they are."""


@dataclass(frozen=True)
class JointHandle:
    """A handle of a mechanism: a point of a body that takes a wrench and tells pose and velocity.

    Attributes
    ----------
    unit
        The instance.
    prefixes
        What the names of its variables begin with: `pin` means `pin.force.x`, `pin.moment.x`, `pin.position.x`,
        `pin.velocity.x`, `pin.quaternion.w`, `pin.angular_velocity.x`, `pin.acceleration.x`,
        `pin.angular_acceleration.x` and the other components, or arrays `pin.force` and so on. Several prefixes are
        searched in turn.
    force, moment, position, velocity, quaternion, angular_velocity, acceleration, angular_acceleration
        Names of the components x, y, z (w, x, y, z of the quaternion) in the inertial frame, for an FMU that calls
        them otherwise. None for a component that a planar mechanism lacks: it takes no such load, and stays at zero.
    """

    unit: str
    prefixes: tuple[str, ...] = ()
    force: Triple | None = None
    moment: Triple | None = None
    position: Triple | None = None
    velocity: Triple | None = None
    quaternion: tuple[Component, Component, Component, Component] | None = None
    angular_velocity: Triple | None = None
    acceleration: Triple | None = None
    angular_acceleration: Triple | None = None

    @classmethod
    def parse(cls, text: str) -> JointHandle:
        """Read `unit.handle`, or `unit.load+seen` for a handle with two prefixes.

        Raises
        ------
        InputError
            When it does not read so.
        """
        unit, dot, rest = text.strip().partition(".")
        prefixes = tuple(rest.split("+"))
        if not unit or not dot or not all(prefixes):
            raise InputError(f"the handle '{text}' is refused: it must read unit.handle, or unit.load+seen")
        return cls(unit, prefixes)

    @property
    def name(self) -> str:
        """Its name without that of the instance."""
        position = self.position or ("",)
        return "+".join(self.prefixes) or str(position[0])

    def __str__(self) -> str:
        return f"{self.unit}.{self.name}"


@dataclass(frozen=True)
class CoupledJoint:
    """A joint between mechanisms of two FMUs, which the master closes by a wrench on both handles.

    Attributes
    ----------
    kind
        `spherical` holds the points together, `revolute` the axes too; `prismatic` lets the second handle slide along
        the axis without turning, `fixed` holds it.
    first, second
        The handles; also `unit.handle` as text.
    axis
        Of a revolute or prismatic joint: its direction in the frame of the first body, of any length.
    name
        Its name in results and messages; that of the first handle by default.
    tolerance
        What the joint may be open by at communication points, in m and rad; velocities may differ by it over the step.

    Raises
    ------
    InputError
        When the kind is unknown, the axis is missing or has no direction, or is given to a kind without one.
    """

    kind: JointKind
    first: JointHandle
    second: JointHandle
    axis: tuple[float, float, float] | None = None
    name: str = ""
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        for end in ("first", "second"):
            handle = getattr(self, end)
            if isinstance(handle, str):
                object.__setattr__(self, end, JointHandle.parse(handle))
        object.__setattr__(self, "name", self.name or self.first.name.partition("+")[0])
        if self.kind not in JOINT_KINDS:
            raise InputError(f"the joint {self} is of kind '{self.kind}'; it must be {', '.join(JOINT_KINDS)}")
        if self.kind not in _AXIAL and self.axis is not None:
            raise InputError(f"the joint {self} is {self.kind}, which has no axis; {' and '.join(_AXIAL)} have one")
        if self.kind in _AXIAL:
            if self.axis is None:
                raise InputError(f"the joint {self} is {self.kind} and needs an axis, as (0, 0, 1)")
            if len(self.axis) != 3 or not 0.0 < math.hypot(*self.axis) < math.inf:
                raise InputError(f"the joint {self} has the axis {self.axis}; it must be three numbers, not all zero")
        if not 0.0 < self.tolerance < math.inf:
            raise InputError(f"the joint {self} has the tolerance {self.tolerance:g}; it must be greater than 0")
        if self.first == self.second:
            raise InputError(f"the joint {self} joins a handle with itself; it must join two")

    @classmethod
    def parse(cls, text: str) -> CoupledJoint:
        """Read `spherical:a.pin=b.pin`, or `revolute:a.pin=b.pin:0,0,1` with an axis.

        Raises
        ------
        InputError
            When it does not read so, or is no joint.
        """
        kind, colon, rest = text.partition(":")
        ends, _, axis = rest.partition(":")
        first, equals, second = ends.partition("=")
        if not colon or not equals:
            raise InputError(f"the joint '{text}' is refused: {_FORM}")
        try:
            direction = tuple(float(each) for each in axis.split(",")) if axis else None
        except ValueError:
            raise InputError(f"the joint '{text}' is refused: the axis '{axis}' is no three numbers") from None
        return cls(kind.strip(), JointHandle.parse(first), JointHandle.parse(second), direction)  # pyright: ignore[reportArgumentType]

    def __str__(self) -> str:
        return f"{self.first}={self.second}"
