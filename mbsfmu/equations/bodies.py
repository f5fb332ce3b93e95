"""Mass properties and points of bodies, as functions of the numbers of a mechanism.

Numbers of a mechanism as parameters, and their slots in the equations.

A zero in the model is structural: it remains the constant zero, is removed from the traced equations, and is not a
parameter. A planar mechanism therefore remains planar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.model.body import ROUND_OFF, Beam, Body, Cuboid, Point, RigidBody
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.reference_types import GROUND, split_reference
from mbsfmu.modelling import Quantity
from mbsfmu.modelling.data import Array
from mbsfmu.modelling.variables import Causality, Variability, Variable
from mbsfmu.tracing.kernels import kernel


@dataclass(frozen=True)
class Slot:
    """Source of a number: the parameter vector, or the model itself if structural."""

    constant: float
    index: int | None

    def of(self, parameters: Array) -> Array:
        """Return the number, a scalar array."""
        return np.asarray(self.constant) if self.index is None else parameters[self.index]


@dataclass(frozen=True)
class VectorSlot:
    """A vector of slots."""

    slots: tuple[Slot, ...]

    def of(self, parameters: Array) -> Array:
        """Return the vector, shape (number of slots,)."""
        return np.stack([slot.of(parameters) for slot in self.slots])


class Properties:
    """Registry of a mechanism's parameters, in the order of their first use in the equations."""

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self._slot_by_name: dict[str, Slot] = {}

    def scalar(
        self,
        name: str,
        value: float,
        unit: str,
        description: str,
        minimum: float | None = None,
        structural_zero: bool = True,
        maximum: float | None = None,
        tunable: bool = False,
    ) -> Slot:
        """Register one number; a repeated name returns the same slot."""
        if name in self._slot_by_name:
            return self._slot_by_name[name]
        if value == 0.0 and structural_zero:
            slot = Slot(0.0, None)
        else:
            slot = Slot(value, len(self.variables))
            least = (
                value if minimum is not None and value < minimum else minimum
            )  # values of the model are always allowed
            self.variables.append(
                Variable(
                    name,
                    Causality.PARAMETER,
                    Variability.TUNABLE if tunable else Variability.FIXED,
                    unit,
                    start=value,
                    minimum=least,
                    maximum=maximum,
                    description=description,
                )
            )
        self._slot_by_name[name] = slot
        return slot

    def starts(self) -> Array:
        """Return the parameter values of the model, shape (number of parameters so far,)."""
        return np.array([variable.start or 0.0 for variable in self.variables])

    def quantity(self, quantity: Quantity) -> Slot:
        """Register a number of a part; a tunable one is a parameter even if zero."""
        return self.scalar(
            quantity.name,
            quantity.start or 0.0,
            quantity.unit,
            quantity.description,
            quantity.minimum,
            structural_zero=not quantity.tunable,
            maximum=quantity.maximum,
            tunable=quantity.tunable,
        )

    def vector(
        self, name: str, values: Sequence[float], unit: str, description: str, suffixes: str = "x y z"
    ) -> VectorSlot:
        """Register the components of a vector as `name.x`, `name.y`, `name.z`."""
        return VectorSlot(
            tuple(
                self.scalar(f"{name}.{suffix}", value, unit, f"{description}, {suffix}")
                for suffix, value in zip(suffixes.split(), values, strict=True)
            )
        )


# Lower bounds of mass, length and inertia for parameters that are set at run time.
SMALLEST = 1e-9
SLENDER = 1e-6
"""Regularisation of a zero moment of inertia of a rod for its inverse, relative to those across it."""
LIGHT = 1e-4
"""Regularisation of a missing mass for its inverse, relative to the smallest mass of the mechanism, and of the moments
of inertia of a point. Assemblies, which take it away again, lose digits where it is small: 4e-9 of the accelerations of
a human of 67 bodies at 1e-6, 4e-11 at 1e-4."""
LEAST_SIZE = 0.1
"""Size for this, relative to that of the largest body, of a body whose joints are closer to its centre of mass."""


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
    hollow
        Directions in body axes about which the model has no moment of inertia, orthonormal, shape (0, 1 or 3, 3): one
        of a thin rod, all of a point mass and of a body without mass.
    """

    def __init__(self, body: Body, properties: Properties, points: Points) -> None:
        self.body = body
        if not isinstance(body, (RigidBody, Beam, Cuboid)):
            raise TypeError(f"the inertia of a {type(body).__name__} is not known")
        self.mass = properties.scalar(f"{body.name}.mass", body.mass, "kg", "mass", SMALLEST)
        self.centre = points.slot(body.name, "centre", body.centre_of_mass)
        self._length = points.length(body.name)
        self._moments: list[Slot] = []  # given ones: all three of a rigid body, the axial one of a beam
        self.hollow = np.zeros((0, 3))
        if isinstance(body, RigidBody):
            self.hollow = hollow_directions(body.inertia_tensor, body.mass * points.size_of(body) ** 2)
            products = body.products_of_inertia
            if len(self.hollow) == 1 and any(products):
                # A rod across its frame stays one: no element of its tensor can change alone.
                self._moments = [Slot(value, None) for value in body.inertia]
                self._products = [Slot(value, None) for value in products]
            else:
                self._moments = [
                    properties.scalar(f"{body.name}.inertia_{axes}", value, "kg.m2", f"inertia J{axes}", SMALLEST)
                    for axes, value in zip(("xx", "yy", "zz"), body.inertia, strict=True)
                ]
                self._products = [
                    properties.scalar(f"{body.name}.inertia_{axes}", value, "kg.m2", f"inertia tensor, {axes}")
                    for axes, value in zip(("xy", "xz", "yz"), products, strict=True)
                ]
        elif isinstance(body, Beam):
            self._moments = [
                properties.scalar(
                    f"{body.name}.axial_inertia", body.axial_inertia, "kg.m2", "inertia about the axis", SMALLEST
                )
            ]

            if not body.axial_inertia:
                self.hollow = np.eye(3)[:1]
        self._size = points.size_of(body)
        self._least_mass = points.least_mass

    @property
    def massless(self) -> bool:
        """Whether the model has no mass."""
        return self.mass.constant == 0.0

    @property
    def rod(self) -> bool:
        """Whether the model has a zero moment of inertia."""
        return bool(len(self.hollow))

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

    def excess_mass(self) -> float:
        """Return the mass in kg that a body without mass gets for the inverse."""
        return LIGHT * self._least_mass if self.massless else 0.0

    def excess_moment(self, parameters: Array) -> Array:
        """Return the moment in kg m² about hollow directions for the inverse: a part of the others, or of m r²."""
        if len(self.hollow) == 1:
            return SLENDER * 0.5 * np.trace(self.inertia(parameters))
        return (LIGHT * self.mass.of(parameters) + self.excess_mass()) * self._size**2

    def regular_mass(self, parameters: Array) -> Array:
        """Return the mass in kg, a small one instead of zero."""
        return self.mass.of(parameters) + self.excess_mass()

    def regular_inertia(self, parameters: Array) -> Array:
        """Return the inertia tensor with small moments instead of zeros, shape (3, 3).

        A slender beam has no moment about its axis, and no inverse without. This is exact for bodies that cannot rotate
        about the axis, such as those of planar mechanisms; of others the excess is to be taken away again.
        """
        inertia = self.inertia(parameters)
        return _regular(inertia, self.excess_moment(parameters), self.hollow) if self.rod else inertia


def hollow_directions(tensor: Array, whole: float) -> Array:
    """Return orthonormal directions without a moment of inertia, axes of the frame if these are, shape (k, 3).

    Parameters
    ----------
    tensor
        The inertia tensor in kg m², shape (3, 3).
    whole
        m r² of the body in kg m², of which moments below the square of round-off are none.
    """
    moments, axes = np.linalg.eigh(tensor)
    hollow = axes[:, moments <= max(ROUND_OFF * moments[-1], ROUND_OFF**2 * whole)].T
    return np.eye(3)[np.any(np.abs(hollow) > 1.0 - ROUND_OFF, axis=0)] if _along_axes(hollow) else hollow


def _along_axes(directions: Array) -> bool:
    return bool(np.all(np.any(np.abs(directions) > 1.0 - ROUND_OFF, axis=1)))


@kernel
def _of_length(mass: Array, length: Array, *, share: float) -> Array:
    return mass * length**2 / share


@kernel
def _diagonal(moments: list[Array]) -> Array:
    return np.stack([moment * row for moment, row in zip(moments, np.eye(3), strict=True)])


def _regular(inertia: Array, excess: Array, hollow: Array) -> Array:
    return inertia + excess * (hollow.T @ hollow)


class Points:
    """The points of a mechanism's bodies and of the ground."""

    def __init__(self, mechanism: Mechanism, properties: Properties) -> None:
        self._mechanism = mechanism
        self._properties = properties
        self._built_in = {body.name: body.built_in_points for body in mechanism.bodies}
        self._length_by_body = {body.name: getattr(body, "length", None) for body in mechanism.bodies}

        self.least_mass = min((body.mass for body in mechanism.bodies if body.mass), default=1.0)
        self._largest = max(map(_size, mechanism.bodies), default=0.0) or 1.0

    def size_of(self, body: Body) -> float:
        """Return the largest distance of a point of the body from its centre of mass in m, or `LEAST_SIZE` of all."""
        return max(_size(body), LEAST_SIZE * self._largest)

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


def _size(body: Body) -> float:
    length = getattr(body, "length", None) or 0.0
    points = [np.add(each.position, (each.along * length, 0.0, 0.0)) for each in body.all_points.values()]
    centre = np.add(body.centre_of_mass.position, (body.centre_of_mass.along * length, 0.0, 0.0))
    return max(float(np.linalg.norm(point - centre)) for point in points)


def body_and_point(mechanism: Mechanism, points: Points, reference: str) -> tuple[int, PointSlot]:
    """Return the index of the body in the topology, -1 for the ground, and the slot of its point."""
    body = split_reference(reference)[0]
    return (-1 if body == GROUND else mechanism.topology.index(body)), points.find(reference)
