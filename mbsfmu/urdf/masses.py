"""Mass properties of links that are combined to bodies."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mbsfmu.urdf.xml_element import Floats

NO_SIZE = 1e-6
"""Radius of gyration in m below which a link is a point mass: tools that export them write round-off for zero."""


@dataclass
class Mass:
    """Mass properties of a body's links: masses, centres and inertia tensors in the body frame."""

    masses: list[float] = field(default_factory=list)
    centres: list[Floats] = field(default_factory=list)
    tensors: list[Floats] = field(default_factory=list)

    def add(self, mass: float, centre: Floats, tensor: Floats) -> None:
        """Add the mass properties of a link."""
        self.masses.append(mass)
        self.centres.append(centre)
        self.tensors.append(tensor)

    def whole(self) -> tuple[float, Floats, Floats]:
        """Return mass, centre of mass and inertia tensor about it (parallel axis theorem)."""
        mass = sum(self.masses)
        if not mass > 0.0:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        masses, centres = np.array(self.masses), np.array(self.centres)
        centre = masses @ centres / mass
        arms = centres - centre
        moments = np.sum(masses * np.sum(arms**2, axis=1)) * np.eye(3) - (masses * arms.T) @ arms
        return mass, centre, without_round_off(mass, sum(self.tensors, start=moments))


def without_round_off(mass: float, tensor: Floats) -> Floats:
    """Return an inertia tensor in kg m², shape (3, 3), zero for a point mass."""
    return np.zeros((3, 3)) if np.all(np.abs(tensor) <= mass * NO_SIZE**2) else tensor


def as_tuple(vector: Floats) -> tuple[float, float, float]:
    """Return three components of an array as a tuple."""
    x, y, z = map(float, vector)
    return x, y, z
