"""Cut joints: closure equations Φ(z) = 0 between two bodies, and their constraint wrenches."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from mbsfmu.equations.bodies import Points, PointSlot, body_and_point
from mbsfmu.equations.closure_equations import misalignments
from mbsfmu.equations.frames import Frames, body_velocity, point_of_body
from mbsfmu.model.closure import ClosureEquation
from mbsfmu.model.force_context import BodyPoint
from mbsfmu.model.joint import Joint
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling.fields import Array
from mbsfmu.tracing.kernels import kernel


class CutJoint:
    """The closure equations of one cut joint, in m and rad.

    Parameters
    ----------
    joint, mechanism, points
        The joint, its mechanism, and the points of the bodies.
    equations
        The equations by their kinds; those of the joint by default.

    Attributes
    ----------
    names, units
        One name an equation, for messages, and the unit of its violation.
    parent, child
        Indices of the bodies, -1 for the ground.
    """

    def __init__(
        self,
        joint: Joint,
        mechanism: Mechanism,
        points: Points,
        equations: Mapping[str, ClosureEquation] | None = None,
    ) -> None:
        self.parent, self._parent_point = body_and_point(mechanism, points, joint.parent)
        self.child, self._child_point = body_and_point(mechanism, points, joint.child)
        equations = joint.equations() if equations is None else equations
        self._equations = _Equations.of(tuple(equations.values()))
        self.names = tuple(f"{joint.name} ({kind})" for kind in equations)
        self.units = tuple(equation.unit for equation in equations.values())

    @property
    def ends(self) -> tuple[int, int]:
        """Parent and child."""
        return self.parent, self.child

    def evaluate(self, frames: Frames, parameters: Array) -> Array:
        """Return the violation of the equations, shape (number of equations,)."""
        return np.stack(_values(*self._sides(frames, [], parameters), equations=self._equations))

    def wrenches(self, frames: Frames, parameters: Array) -> list[tuple[Array, Array]]:
        """Return the wrench of a unit multiplier of each equation on the parent and on the child."""
        return _wrenches(*self._sides(frames, [], parameters), equations=self._equations)

    def wrench_rates(self, frames: Frames, velocities: list[Array], parameters: Array) -> list[tuple[Array, Array]]:
        """Return the rates of `wrenches` at the body velocities Z."""
        return _wrench_rates(*self._sides(frames, velocities, parameters), equations=self._equations)

    def child_place(self, frames: Frames, parameters: Array) -> Array:
        """Return the joint's point on the child in the inertial frame in m, shape (3,)."""
        return frames.point(self.child, self._child_point.of(parameters))

    def points(self, parameters: Array) -> Iterator[tuple[int, Array]]:
        """Yield the bodies of its ends, except the ground, each with the joint's point in the body frame in m."""
        for body, point in ((self.parent, self._parent_point), (self.child, self._child_point)):
            if body >= 0:
                yield body, point.of(parameters)

    def _sides(self, frames: Frames, velocities: list[Array], parameters: Array) -> tuple[_Side, _Side]:
        def side(body: int, point: PointSlot) -> _Side:
            velocity = body_velocity(velocities, body) if velocities else np.zeros(6)
            return tuple(point_of_body(frames, velocity, body, point.of(parameters)))

        return side(self.parent, self._parent_point), side(self.child, self._child_point)


def aligning(joints: Iterable[Joint], mechanism: Mechanism, points: Points) -> list[CutJoint]:
    """Return the joints that their equations let turn over by half a turn, with their misalignments as equations."""
    measured = ((joint, misalignments(joint)) for joint in joints)
    return [CutJoint(joint, mechanism, points, equations) for joint, equations in measured if equations]


_Side = tuple[Array, ...]
"""The fields of a `BodyPoint`."""


@dataclass(frozen=True)
class _Equations:
    """Equations of a joint; equal for joints of the same kind and data.

    Attributes
    ----------
    members
        The equations.
    key
        Their classes and numbers.
    """

    members: tuple[ClosureEquation, ...] = field(compare=False)
    key: Hashable

    @classmethod
    def of(cls, members: tuple[ClosureEquation, ...]) -> _Equations:
        """Return equations with their comparison key."""
        return cls(members, _hashable(members))


def _hashable(value: Any) -> Hashable:
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, (tuple, list)):
        return tuple(map(_hashable, value))
    if is_dataclass(value):
        return type(value), tuple(_hashable(getattr(value, each.name)) for each in fields(value))
    return value if isinstance(value, Hashable) else id(value)


@kernel
def _values(parent: _Side, child: _Side, *, equations: _Equations) -> list[Array]:
    ends = BodyPoint(*parent), BodyPoint(*child)
    return [equation.value(*ends) for equation in equations.members]


@kernel
def _wrenches(parent: _Side, child: _Side, *, equations: _Equations) -> list[tuple[Array, Array]]:
    ends = BodyPoint(*parent), BodyPoint(*child)
    return [equation.wrenches(*ends) for equation in equations.members]


@kernel
def _wrench_rates(parent: _Side, child: _Side, *, equations: _Equations) -> list[tuple[Array, Array]]:
    ends = BodyPoint(*parent), BodyPoint(*child)
    return [equation.wrench_rates(*ends) for equation in equations.members]
