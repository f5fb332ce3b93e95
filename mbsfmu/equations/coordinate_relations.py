"""Linear relations between joint coordinates as constraint equations, Φ = Σ a q − s = 0."""

from __future__ import annotations

import numpy as np

from mbsfmu.data import DataError, Quantity
from mbsfmu.equations.placed_part import PlacedPart, coordinate_of, joint_words
from mbsfmu.equations.properties import Properties
from mbsfmu.equations.rotation import Array
from mbsfmu.model.constraint import Constraint
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.names import Reference, reference_fields
from mbsfmu.model.numbers import Numbers


class CoordinateRelation(PlacedPart):
    """A constraint between joint coordinates in its place.

    Parameters
    ----------
    constraint, mechanism
        The constraint, and the mechanism whose joints it relates.
    properties
        Gets its parameters.

    Attributes
    ----------
    name, unit
        For messages, and the unit of Φ.
    coordinates
        Indices of the coordinates.
    loads
        What it exerts along each of them: name, unit, description.
    """

    def __init__(self, constraint: Constraint, mechanism: Mechanism, properties: Properties) -> None:
        named = reference_fields(constraint, Reference.JOINT)
        super().__init__(constraint, mechanism, named, properties, first_state=0, first_input=0)
        self._constraint = constraint
        self.name = f"{constraint.name} ({constraint.type})"
        # What it measures has the unit of the coordinate whose factor comes first.
        self._joints = tuple(constraint.factors(self._given(properties.starts())))
        if sorted(self._joints) != sorted(constraint.coupled):
            told, wanted = (", ".join(sorted(each)) or "nothing" for each in (self._joints, constraint.coupled))
            raise DataError(f"{self.owner}: factors gives {told}; it must give {wanted}")
        self.unit = joint_words(mechanism, self._joints[0]).coordinate
        self.coordinates = tuple(coordinate_of(mechanism, joint) for joint in self._joints)
        self.loads = tuple(_load(constraint, mechanism, joint) for joint in self._joints)

    def _given(self, parameters: Array) -> Numbers:
        return Numbers(self.owner, self.numbers(parameters))

    def factors(self, parameters: Array) -> list[Array]:
        """Return a, in the order of `coordinates`."""
        return [np.asarray(0.0) + each for each in self._constraint.factors(self._given(parameters)).values()]

    def along(self, parameters: Array, count: int) -> Array:
        """Return a by coordinate, zero where it does not count, shape (count,)."""
        factors = dict(zip(self.coordinates, self.factors(parameters), strict=True))
        return np.stack([factors.get(index, np.asarray(0.0)) for index in range(count)])

    def evaluate(self, coordinates: Array, parameters: Array) -> Array:
        """Return Φ, a scalar."""
        return self.rate(coordinates, parameters) - self._constraint.value(self._given(parameters))

    def rate(self, velocities: Array, parameters: Array) -> Array:
        """Return Σ a q̇, a scalar."""
        total: Array = np.asarray(0.0)
        for index, factor in zip(self.coordinates, self.factors(parameters), strict=True):
            total = total + factor * velocities[index]
        return total


def _load(constraint: Constraint, mechanism: Mechanism, joint: str) -> Quantity:
    words = joint_words(mechanism, joint)
    described = f"{words.effort} that the {constraint.type} exerts in joint {joint}, on the outer body"
    return Quantity(f"{constraint.name}.{joint}.{words.effort}", words.load, description=described)
