"""Strokes of icons, and the colours of what they show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

BODY, JOINT, FORCE, FLUID = (52, 73, 94), (44, 62, 80), (192, 57, 43), (41, 128, 185)
"""Colours: red, green, blue, 0 to 255."""


@dataclass(frozen=True)
class Stroke:
    """A straight line with round ends; a dot where both ends are the same.

    Attributes
    ----------
    begin, end
        In the plane of the picture, y upwards, in any unit.
    width
        In pixels of 96 across the picture.
    colour
        Red, green, blue, 0 to 255.
    """

    begin: tuple[float, float]
    end: tuple[float, float]
    width: float = 5.0
    colour: tuple[int, int, int] = BODY


def box() -> Iterator[Stroke]:
    """Draw a box with a line that goes in and one that comes out."""
    corners = [(-1.0, -0.7), (1.0, -0.7), (1.0, 0.7), (-1.0, 0.7), (-1.0, -0.7)]
    for begin, end in pairwise(corners):
        yield Stroke(begin, end)
    for side in (-1.0, 1.0):
        yield Stroke((side, 0.0), (2.0 * side, 0.0), colour=FORCE)
