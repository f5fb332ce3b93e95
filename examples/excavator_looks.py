"""What the excavator of `excavator.py` looks like. No result depends on that."""

from itertools import pairwise
from math import atan2, hypot, pi

from mbsfmu import BoxShape, CylinderShape, PlateShape, RodShape

YELLOW, DARK, GLASS, STEEL = "#e0a526", "#3c444c", "#7fa3b8", "#6d7780"
SIDES = (-1.0, 1.0)

# Outlines in the plane of the arm, in the frames of the bodies, in m.
FOOT = ((-0.5, 1.2), (0.8, 1.2), (0.75, 1.4), (0.25, 2.05), (-0.05, 2.05))
BOOM = (
    *((-0.22, -0.12), (1.9, 0.42), (2.7, 0.48), (5.6, -0.20), (5.88, 0.0), (5.72, 0.20)),
    *((3.25, 1.12), (2.85, 1.12), (2.1, 0.95), (-0.15, 0.24)),
)
STICK = (
    *((-0.15, -0.24), (0.5, -0.26), (2.85, -0.16), (3.06, 0.0), (2.9, 0.15), (0.6, 0.56), (0.3, 0.60)),
    *((-0.7, 0.60), (-0.9, 0.45), (-0.75, 0.28)),
)
BUCKET = ((-0.16, -0.10), (-0.28, 0.40), (-0.05, 0.62), (0.45, 0.80), (0.90, 0.72), (1.20, 0.45), (1.45, 0.0))


def sheets(outline: tuple[tuple[float, float], ...], width: float) -> tuple[BoxShape, ...]:
    """Return sheets of metal along an outline, from its first corner to its last."""
    return tuple(
        BoxShape(
            size=(hypot(u - x, v - y), 0.05, width),
            position=((x + u) / 2, (y + v) / 2, 0.0),
            orientation=(0.0, 0.0, atan2(v - y, u - x)),
            colour=STEEL,
        )
        for (x, y), (u, v) in pairwise(outline)
    )


def plates(outline: tuple[tuple[float, float], ...], apart: float, colour: str) -> tuple[PlateShape, ...]:
    """Return a plate on either side of the arm's plane."""
    return tuple(
        PlateShape(outline=outline, thickness=0.05, position=(0.0, 0.0, side * apart), colour=colour) for side in SIDES
    )


def rods(length: float, apart: float) -> tuple[RodShape, ...]:
    """Return a rod along x on either side of the arm's plane."""
    return tuple(
        RodShape(start=(0.0, 0.0, side * apart), end=(length, 0.0, side * apart), radius=0.05, colour=DARK)
        for side in SIDES
    )


LOOKS = {
    "house": (
        BoxShape(size=(3.9, 0.28, 2.6), position=(-0.75, 1.12, 0.0), colour=DARK),
        BoxShape(size=(1.5, 1.0, 2.6), position=(-1.95, 1.76, 0.0), colour=YELLOW),
        BoxShape(size=(1.3, 0.75, 0.85), position=(-0.55, 1.63, 0.85), colour=YELLOW),
        BoxShape(size=(1.5, 0.70, 0.95), position=(0.3, 1.61, -0.82), colour=YELLOW),
        BoxShape(size=(1.3, 0.95, 0.90), position=(0.3, 2.43, -0.82), colour=GLASS),
        BoxShape(size=(1.4, 0.08, 0.98), position=(0.3, 2.94, -0.82), colour=YELLOW),
        *plates(FOOT, 0.28, YELLOW),
    ),
    "boom": (PlateShape(outline=BOOM, thickness=0.38, colour=YELLOW),),
    "stick": (PlateShape(outline=STICK, thickness=0.30, colour=YELLOW),),
    "bucket": (
        *sheets(BUCKET, 1.10),
        *plates(BUCKET, 0.55, STEEL),
        *(
            BoxShape(size=(0.22, 0.06, 0.09), position=(1.50, -0.04, 0.24 * number), colour=DARK)
            for number in (-2, -1, 0, 1, 2)
        ),
    ),
    "rocker": rods(0.60, 0.22),
    "link": rods(0.62, 0.30),
}
"""Shapes of the bodies by their names."""

SCENERY = (
    *(BoxShape(size=(3.3, 0.80, 0.60), position=(0.0, 0.42, side * 1.10), colour=DARK) for side in SIDES),
    *(
        CylinderShape(radius=0.40, length=0.60, position=(end * 1.65, 0.42, side * 1.10), colour=DARK)
        for side in SIDES
        for end in SIDES
    ),
    BoxShape(size=(1.9, 0.35, 1.8), position=(0.0, 0.62, 0.0), colour=STEEL),
    CylinderShape(radius=0.65, length=0.22, position=(0.0, 0.89, 0.0), orientation=(pi / 2, 0.0, 0.0), colour=STEEL),
)
"""The undercarriage, on which the house turns."""
