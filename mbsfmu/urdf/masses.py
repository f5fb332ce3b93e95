"""Frames and mass properties of links that are combined to bodies."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass
class Frame:
    """Frame of a link relative to its body."""

    body: str | None
    position: Floats
    rotation: Floats


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
        pairs = list(zip(self.masses, self.centres, strict=True))
        centre = sum((each * at for each, at in pairs), start=np.zeros(3)) / mass
        tensor = sum(self.tensors, start=np.zeros((3, 3)))
        for each, at in pairs:
            arm = at - centre
            tensor = tensor + each * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        return mass, centre, tensor


def as_tuple(vector: Floats) -> tuple[float, float, float]:
    """Return three components of an array as a tuple."""
    x, y, z = map(float, vector)
    return x, y, z
