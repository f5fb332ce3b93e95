"""The four-bar of the model `slewing-four-bar` in closed form."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LENGTHS = np.array([1.0, 2.0, 1.5])
"""Of crank, coupler and rocker in m; the ground's pivots are 2 m apart."""


def four_bar_directions(crank: float) -> NDArray[np.float64]:
    """Angles of crank, coupler and rocker above the horizontal, by the law of cosines; without jumps."""
    across = np.array([2.0 - np.cos(crank), -np.sin(crank)])  # from the crank's end to the rocker's pivot
    size, direction = np.hypot(*across), np.arctan2(across[1], across[0])

    def corner(beside: float, opposite: float) -> float:
        return float(np.arccos((beside**2 + size**2 - opposite**2) / (2.0 * beside * size)))

    coupler, rocker = LENGTHS[1:]
    return np.array([crank, direction + corner(coupler, rocker), np.pi + direction - corner(rocker, coupler)])


def closed_angles(crank: float) -> tuple[float, float, float]:
    """Angles of crank, coupler relative to the crank, and rocker, with which the loop is closed."""
    _, coupler, rocker = four_bar_directions(crank)
    return crank, float(coupler - crank), float(rocker)
