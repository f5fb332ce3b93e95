"""Mass properties and points of bodies, as functions of the parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.properties import Properties, Slot, VectorSlot
from mbsfmu.model.body import Beam, Body, Cuboid, Point, RigidBody
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.reference_types import GROUND, split_reference
from mbsfmu.modelling.fields import Array
from mbsfmu.tracing.kernels import kernel

# Lower bounds of mass, length and inertia for parameters that are set at run time.
SMALLEST = 1e-9
SLENDER = 1e-6
"""Regularisation of a zero moment of inertia for its inverse, relative to the largest moment."""


@dataclass(frozen=True)
class PointSlot:
    """Point of a body: fixed coordinates plus a fraction of the body's length."""

    position: VectorSlot
    along: Slot
    length: Slot

    def of(self, parameters: Array) -> Array:
        """Return the coordinates in the body frame in m, shape (3,)."""
        return _shifted(self.position.of(parameters), self.along.of(parameters), self.length.of(parameters))


@kernel
def _shifted(position: Array, along: Array, length: Array) -> Array:
    return position + (along * length) * np.array([1.0, 0.0, 0.0])


class MassProperties:
    """Mass, centre of mass and inertia of one body.

    Attributes
    ----------
    body
        The body.
    mass
        Slot of the mass in kg.
    centre
        The centre of mass.
    """

    def __init__(self, body: Body, properties: Properties, points: Points) -> None:
        self.body = body
        if not isinstance(body, (RigidBody, Beam, Cuboid)):
            raise TypeError(f"the inertia of a {type(body).__name__} is not known")
        self.mass = properties.scalar(f"{body.name}.mass", body.mass, "kg", "mass", SMALLEST)
        self.centre = points.slot(body.name, "centre", body.centre_of_mass)
        self._length = points.length(body.name)
        self._moments: list[Slot] = []  # given ones: all three of a rigid body, the axial one of a beam
        if isinstance(body, RigidBody):
            self._moments = [
                properties.scalar(f"{body.name}.inertia_{axes}", value, "kg.m2", f"inertia J{axes}", SMALLEST)
                for axes, value in zip(("xx", "yy", "zz"), body.inertia, strict=True)
            ]
            self._products = [
                properties.scalar(f"{body.name}.inertia_{axes}", value, "kg.m2", f"inertia tensor, {axes}")
                for axes, value in zip(("xy", "xz", "yz"), body.products_of_inertia, strict=True)
            ]
        elif isinstance(body, Beam):
            self._moments = [
                properties.scalar(
                    f"{body.name}.axial_inertia", body.axial_inertia, "kg.m2", "inertia about the axis", SMALLEST
                )
            ]

    @property
    def rod(self) -> bool:
        """Whether the model has a zero moment of inertia."""
        return self.missing is not None

    @property
    def may_be_impossible(self) -> bool:
        """Whether parameters can give the body an impossible inertia tensor."""
        return any(slot.index is not None for slot in self._moments)

    def inertia(self, parameters: Array) -> Array:
        """Return the inertia tensor about the centre of mass in body axes in kg m², shape (3, 3)."""
        mass, length = self.mass.of(parameters), self._length.of(parameters)
        if isinstance(self.body, Beam):
            across = _of_length(mass, length, share=12.0)
            moments = [self._moments[0].of(parameters), across, across]
        elif isinstance(self.body, Cuboid):
            moments = [_of_length(mass, length, share=6.0)] * 3
        else:
            moments = [slot.of(parameters) for slot in self._moments]
            xy, xz, yz = (slot.of(parameters) for slot in self._products)
            return np.stack(
                [
                    np.stack([moments[0], xy, xz]),
                    np.stack([xy, moments[1], yz]),
                    np.stack([xz, yz, moments[2]]),
                ]
            )
        return _diagonal(moments)

    @property
    def missing(self) -> int | None:
        """Index of the axis about which the model has no moment of inertia, if there is one."""
        return next((index for index, slot in enumerate(self._moments) if slot.constant == 0.0), None)

    def excess(self, parameters: Array) -> Array:
        """Return the moment that a zero one gets for the inverse, in kg m²: `SLENDER` times one across the axis."""
        inertia = self.inertia(parameters)
        return SLENDER * (inertia[1, 1] if self.missing == 2 else inertia[2, 2])

    def regular_inertia(self, parameters: Array) -> Array:
        """Return the inertia tensor with a small moment instead of a zero one, shape (3, 3).

        A slender beam has no moment about its axis, and no inverse without. This is exact for bodies that cannot rotate
        about the axis, such as those of planar mechanisms; of others the `excess` is to be taken away again.
        """
        inertia = self.inertia(parameters)
        return inertia if self.missing is None else _regular(inertia, self.excess(parameters), missing=self.missing)


@kernel
def _of_length(mass: Array, length: Array, *, share: float) -> Array:
    return mass * length**2 / share


@kernel
def _diagonal(moments: list[Array]) -> Array:
    return np.stack([moment * row for moment, row in zip(moments, np.eye(3), strict=True)])


@kernel
def _regular(inertia: Array, excess: Array, *, missing: int) -> Array:
    addition = [excess * row if index == missing else row * 0.0 for index, row in enumerate(np.eye(3))]
    return inertia + np.stack(addition)


class Points:
    """The points of a mechanism's bodies and of the ground."""

    def __init__(self, mechanism: Mechanism, properties: Properties) -> None:
        self._mechanism = mechanism
        self._properties = properties
        self._built_in = {body.name: body.built_in_points for body in mechanism.bodies}
        self._length_by_body = {body.name: getattr(body, "length", None) for body in mechanism.bodies}

    def length(self, body: str) -> Slot:
        """Return the slot of a body's length in m; zero for a body without length and for the ground."""
        length = self._length_by_body.get(body) or 0.0
        return self._properties.scalar(f"{body}.length", length, "m", "length", SMALLEST)

    def slot(self, body: str, name: str, point: Point) -> PointSlot:
        """Return the slot of a point of a body; the predefined points of beams are not parameters."""
        if name in self._built_in.get(body, {}):
            along = Slot(point.along, None)
        else:
            along = self._properties.scalar(
                f"{body}.{name}.along", point.along, "1", f"fraction of the length at point {name}"
            )
        position = self._properties.vector(f"{body}.{name}", point.position, "m", f"position of point {name}")
        return PointSlot(position, along, self.length(body))

    def find(self, reference: str) -> PointSlot:
        """Return the slot of the point `body.point`."""
        return self.slot(*split_reference(reference), self._mechanism.point(reference))


def body_and_point(mechanism: Mechanism, points: Points, reference: str) -> tuple[int, PointSlot]:
    """Return the index of the body in the topology, -1 for the ground, and the slot of its point."""
    body = split_reference(reference)[0]
    return (-1 if body == GROUND else mechanism.topology.index(body)), points.find(reference)
