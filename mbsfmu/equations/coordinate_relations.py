"""Linear relations between joint coordinates as constraint equations, Φ = Σ a q − s = 0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from mbsfmu.equations.forces import Given
from mbsfmu.equations.placed_part import PlacedPart, coordinate_of
from mbsfmu.equations.properties import Properties
from mbsfmu.model.constraint import Constraint
from mbsfmu.model.mechanism import Mechanism, joint_words
from mbsfmu.model.numbers import Numbers
from mbsfmu.model.reference_types import ReferenceKind, reference_fields
from mbsfmu.modelling import DataError, Quantity
from mbsfmu.modelling.fields import Array


class CoordinateRelation(PlacedPart):
    """A constraint between joint coordinates in its mechanism.

    Parameters
    ----------
    constraint, mechanism
        The constraint, and the mechanism whose joints it relates.
    properties
        Receives its parameters.
    first_input
        Index of its first input among those of the mechanism.

    Attributes
    ----------
    name, unit
        For messages, and the unit of Φ.
    coordinates
        Indices of the coordinates.
    loads
        Load along each coordinate: name, unit, description.
    """

    def __init__(
        self, constraint: Constraint, mechanism: Mechanism, properties: Properties, *, first_input: int
    ) -> None:
        named = reference_fields(constraint, ReferenceKind.JOINT)
        super().__init__(constraint, mechanism, named, properties, first_state=0, first_input=first_input)
        self._constraint = constraint
        self.name = f"{constraint.name} ({constraint.type})"
        # Φ has the unit of the coordinate with the first factor.
        self._joints = tuple(constraint.factors(self._given(properties.starts())))
        if sorted(self._joints) != sorted(constraint.coupled):
            told, wanted = (", ".join(sorted(each)) or "nothing" for each in (self._joints, constraint.coupled))
            raise DataError(f"{self.owner}: factors gives {told}; it must give {wanted}")
        self.unit = joint_words(mechanism, self._joints[0]).coordinate
        self.coordinates = tuple(coordinate_of(mechanism, joint) for joint in self._joints)
        self.inputs = tuple(_starting(self.inputs, mechanism, self._joints[0]))
        self.loads = tuple(_load(constraint, mechanism, joint) for joint in self._joints)

    def _given(self, parameters: Array) -> Numbers:
        return Numbers(self.owner, self.numbers(parameters))

    def factors(self, parameters: Array) -> list[Array]:
        """Return a, in the order of `coordinates`."""
        return [np.asarray(0.0) + each for each in self._constraint.factors(self._given(parameters)).values()]

    def along(self, parameters: Array, count: int) -> Array:
        """Return the coefficients a of all coordinates, zero for unrelated ones, shape (count,)."""
        factors = dict(zip(self.coordinates, self.factors(parameters), strict=True))
        return np.stack([factors.get(index, np.asarray(0.0)) for index in range(count)])

    def _following(self, given: Given) -> Numbers:
        return Numbers(self.owner, {**self.numbers(given.parameters), **self.live(given.states, given.inputs)})

    def sum(self, coordinates: Array, parameters: Array) -> Array:
        """Return Σ a q of coordinates, rates or accelerations, a scalar."""
        total: Array = np.asarray(0.0)
        for index, factor in zip(self.coordinates, self.factors(parameters), strict=True):
            total = total + factor * coordinates[index]
        return total

    def evaluate(self, coordinates: Array, given: Given) -> Array:
        """Return Φ, a scalar."""
        return self.sum(coordinates, given.parameters) - self._constraint.value(self._following(given))

    def drift(self, given: Given) -> Array:
        """Return Φ_t = −ṡ, a scalar."""
        return np.asarray(0.0) - self._constraint.rate(self._following(given))

    def drift_rate(self, given: Given) -> Array:
        """Return Φ_tt = −s̈, a scalar."""
        return np.asarray(0.0) - self._constraint.acceleration(self._following(given))


def _starting(inputs: Iterable[Quantity], mechanism: Mechanism, joint: str) -> Iterator[Quantity]:
    """Yield the inputs; those without a start value start at the joint's coordinate and rate."""
    (element,) = next(each for each in mechanism.joints if each.name == joint).elements
    starts = iter((element.start, element.start_rate))
    for each in inputs:
        yield replace(each, start=next(starts, 0.0)) if each.start is None else each


def _load(constraint: Constraint, mechanism: Mechanism, joint: str) -> Quantity:
    words = joint_words(mechanism, joint)
    described = f"{words.effort} that the {constraint.type} exerts in joint {joint}, on the outer body"
    owner = constraint.name if len(constraint.coupled) == 1 else f"{constraint.name}.{joint}"
    return Quantity(f"{owner}.{words.effort}", words.load, description=described)
