"""What errors are compared with: ranges of variables, and sizes of vectors where their components hardly vary."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SMALL_RANGE = 1e-3
"""Fraction of the largest range in the same unit below which a variable's own range is not used."""
VARIES = 2.0
"""Ranges of the exact solution below this many errors leave open whether the variable varies at all, as either end is
known to within an error: if the range is less than `SMALL_RANGE` of the magnitude of what the variable is a component
of, the error is compared with that magnitude."""
POSITIONS = ("m", "rad")
"""Units of positions, whose zero is arbitrary: their magnitude does not measure an error."""
LEFT_OUT = ("drift",)
"""Name endings of outputs that are errors themselves."""
_RATE_WORDS = {"cardan_acceleration": "cardan_rate", "acceleration": "velocity"}
"""How accelerations are called, and the rates that they are derivatives of."""
_COMPONENT = re.compile(r"\.[xyzw](?=\.|$)|(?<=angle|ocity|ation|ement)_[12]$")
"""Of vectors, quaternions and the coordinates of one joint: angles, velocities, accelerations, displacements."""


def percent(fraction: float, digits: int = 2) -> str:
    """Return a fraction in percent, without the exponents of large numbers."""
    number = 100.0 * fraction
    if not number < 1e4:
        return "more than 10000 %"
    text = f"{number:.{digits}g}"
    return f"{number:.0f} %" if "e+" in text else f"{text} %"


def compared_ranges(errors: Floats, ranges: Floats, sizes: Floats) -> Floats:
    """Return what errors are compared with: ranges, or sizes of vectors where it is open whether anything varies.

    Parameters
    ----------
    errors, ranges, sizes
        Of variables, and of the vectors that they are components of, shape (v,).
    """
    return np.where((ranges < VARIES * errors) & (ranges < SMALL_RANGE * sizes), sizes, ranges)


def vectors_of(names: Sequence[str], units: Sequence[str]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the number of the vector of each variable, and of the angular velocity squared for it, or −1.

    A vector is named without x, y, z; forces and energies belong to what they are of, and outputs that are errors
    themselves to nothing else.
    """
    keys: list[tuple[str, str]] = []
    for name, unit in zip(names, units, strict=True):
        whole = _COMPONENT.sub("", name)
        owner, _, what = whole.rpartition(".")
        keys.append((owner if unit in ("N", "J") and what not in LEFT_OUT else whole, unit))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    squares = []
    for name, unit in keys:
        word = next((word for word in _RATE_WORDS if unit == "rad/s2" and word in name), "")
        rate = name.replace(word, _RATE_WORDS[word]) if word else ""
        squares.append(numbers.get((rate, "rad/s"), -1))
    return np.array([numbers[key] for key in keys], dtype=int), np.array(squares, dtype=int)


def vector_sizes(vectors: NDArray[np.intp], squares: NDArray[np.intp], magnitudes: Floats) -> Floats:
    """Return the size of what each variable is a component of, or ω² where it is an angular acceleration, shape (v,).

    Parameters
    ----------
    vectors, squares
        As of `vectors_of`.
    magnitudes
        Of the variables, of positions their ranges, shape (v,).
    """
    sizes = np.zeros(int(vectors.max(initial=-1)) + 1)
    np.maximum.at(sizes, vectors, magnitudes)
    with np.errstate(over="ignore"):  # of a run that fails
        squared = np.where(squares >= 0, sizes[squares] ** 2, 0.0)
    return np.maximum(sizes[vectors], squared)
