"""Curves of plots, thinned with their extremes preserved."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbsfmu.base.errors import InputError

Floats = NDArray[np.float64]
_EQUAL_STEPS = 1e-9  # by so much of a step times may stand off an even grid and count as on it
_LONG = 255  # the byte for a jump over so many times or more: it goes on in the next one


class Kind(StrEnum):
    """Drawing style of a curve."""

    LINE = "line"
    REFERENCE = "reference"
    """Wide and grey, below the others."""
    MARKED = "marked"
    """A line with a mark at each of its points."""
    POINTS = "points"
    """Marks alone."""
    BOUND = "bound"
    """Dashed and grey reference line without values."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve of numbers over numbers.

    Attributes
    ----------
    label
        What its legend says.
    x, y
        Shape (k,), x ascending; where y is no finite number the curve has a gap.
    kind
        How it is drawn.
    whole, stretches
        How many points it had before it was thinned, and into how many stretches it was divided then; 0 if it was not.
    """

    label: str
    x: Floats
    y: Floats
    kind: Kind = Kind.LINE
    whole: int = 0
    stretches: int = 0

    @classmethod
    def of(cls, label: str, x: ArrayLike, y: ArrayLike, kind: Kind = Kind.LINE) -> Curve:
        """Return a curve from arrays or sequences.

        Raises
        ------
        InputError
            When x and y have not as many numbers.
        """
        abscissas, ordinates = np.asarray(x, dtype=float).ravel(), np.asarray(y, dtype=float).ravel()
        if len(abscissas) != len(ordinates):
            raise InputError(f"the curve '{label}' has {len(ordinates)} values at {len(abscissas)} places")
        return cls(label, abscissas, ordinates, kind, len(abscissas))

    @classmethod
    def through(cls, label: str, points: Iterable[tuple[float, float]], kind: Kind) -> Curve:
        """Return a curve through points with ascending x."""
        table = np.array(list(points), dtype=float).reshape(-1, 2)
        return cls.of(label, table[:, 0], table[:, 1], kind)

    def thinned(self, most: int) -> Curve:
        """Return the curve with about `most` points: the least and the greatest of equal intervals."""
        kept = extremes(self.y, most)
        stretches = 0 if len(kept) == len(self.y) else -(-len(self.y) // _width(len(self.y), most))
        return Curve(self.label, self.x[kept], self.y[kept], self.kind, self.whole, stretches or self.stretches)


def extremes(values: Floats, most: int) -> NDArray[np.intp]:
    """Return the indices of values that preserve the covered range at a lower resolution.

    Parameters
    ----------
    values
        Shape (k,).
    most
        How many to keep at most, but for the two ends and the first of each gap; all where there are no more.

    Returns
    -------
    NDArray
        Ascending: both ends, and of each of equal stretches the places of the least and the greatest value. In no
        stretch does a value lie outside of those that are kept there.
    """
    count = len(values)
    if count <= max(most, 4):
        return np.arange(count)
    width = _width(count, most)
    starts = np.arange(0, count, width)
    padded = np.full(len(starts) * width, np.nan)
    padded[:count] = values
    table = padded.reshape(-1, width)
    gaps = ~np.isfinite(table)
    least = np.where(gaps, np.inf, table).argmin(axis=1)
    greatest = np.where(gaps, -np.inf, table).argmax(axis=1)
    inside = np.flatnonzero(~np.isfinite(values))
    first_of_gaps = inside[np.unique(inside // width, return_index=True)[1]]
    return np.unique(np.concatenate([[0, count - 1], starts + least, starts + greatest, first_of_gaps]))


def _width(count: int, most: int) -> int:
    """Return the number of values in an interval with two kept values."""
    return -(-count // max(most // 2, 1))


def packed(values: Floats) -> str:
    """Return numbers in seven digits as text for pages: four bytes each, little-endian, in base 64."""
    with np.errstate(over="ignore"):
        return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")


def packed_indices(x: Floats) -> dict[str, Any]:
    """Return ascending numbers for pages: as indices of a uniform grid if possible, otherwise in eight bytes each."""
    steps = np.diff(x)
    step = float(steps.min()) if len(steps) else 0.0
    jumps = np.rint(steps / step) if step > 0 else steps
    if step > 0 and bool(np.all(np.abs(np.cumsum(jumps) * step - (x[1:] - x[0])) <= _EQUAL_STEPS * step * len(x))):
        return {"start": float(x[0]), "step": float(x[-1] - x[0]) / float(jumps.sum()), "jumps": _bytes(jumps)}
    return {"values": base64.b64encode(x.astype("<f8").tobytes()).decode("ascii")}


def _bytes(jumps: Floats) -> str:
    """Return integers as bytes in base64, one byte each below 255."""
    long, rest = np.divmod(jumps.astype(np.int64), _LONG)
    if not long.any():
        return base64.b64encode(rest.astype(np.uint8).tobytes()).decode("ascii")
    pieces = (bytes([_LONG]) * int(times) + bytes([int(left)]) for times, left in zip(long, rest, strict=True))
    return base64.b64encode(b"".join(pieces)).decode("ascii")
