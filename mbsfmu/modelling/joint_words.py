"""Words and units of what acts along a joint coordinate, which are those of a slide or of a hinge."""

from __future__ import annotations

from itertools import product
from string import Formatter
from typing import NamedTuple


class JointWords(NamedTuple):
    """Words and units of a joint coordinate: effort, coordinate, rate.

    Attributes
    ----------
    effort, position, rate
        Names of effort, coordinate and rate.
    load, coordinate
        Units of effort and coordinate.
    """

    effort: str
    load: str
    coordinate: str
    position: str
    rate: str


SLIDE = JointWords("force", "N", "m", "displacement", "velocity")
HINGE = JointWords("torque", "N.m", "rad", "angle", "angular_velocity")


def readings(pattern: str) -> tuple[str, ...]:
    """Return the units that a pattern such as `{joint.load}/{joint.coordinate}` may be, for slides and hinges.

    Parameters
    ----------
    pattern
        Unit with words of joints; another one is itself alone.
    """
    joints = sorted({name.partition(".")[0] for _, name, _, _ in Formatter().parse(pattern) if name})
    kinds = product((SLIDE, HINGE), repeat=len(joints))
    return tuple(dict.fromkeys(pattern.format(**dict(zip(joints, each, strict=True))) for each in kinds))
