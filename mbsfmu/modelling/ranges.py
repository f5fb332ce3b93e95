"""What errors are compared with: ranges of variables, and sizes of vectors where their components hardly vary."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SMALL_RANGE = 1e-3
"""Fraction of the largest range in the same unit below which a variable's own range is not used."""
VARIES = 2.0
"""Ranges of the exact solution below this many errors leave open whether the variable varies at all, as either end is
known to within an error: if the range is less than `SMALL_RANGE` of the magnitude of what the variable is a component
of, the error is compared with that magnitude."""
_COMPONENT = re.compile(r"\.[xyzw](?=\.|$)|(?<=angle|ocity|ation|ement)_[12]$")
"""Of vectors, quaternions and the coordinates of one joint: angles, velocities, accelerations, displacements."""


def compared_ranges(errors: Floats, ranges: Floats, sizes: Floats) -> Floats:
    """Return what errors are compared with: ranges, or sizes of vectors where it is open whether anything varies.

    Parameters
    ----------
    errors, ranges, sizes
        Of variables, and of the vectors that they are components of, shape (v,).
    """
    return np.where((ranges < VARIES * errors) & (ranges < SMALL_RANGE * sizes), sizes, ranges)


def vector_of(name: str, unit: str) -> tuple[str, str]:
    """Return what names a vector: the name without x, y, z, and the unit; of forces and energies, whose they are."""
    whole = _COMPONENT.sub("", name)
    return (whole.rpartition(".")[0] if unit in ("N", "J") else whole), unit
