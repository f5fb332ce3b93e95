"""Warnings of changed start values, joint by joint."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from mbsfmu.initialization.closing_loops import OwnStarts, given_ranks
from mbsfmu.modelling.variables import Variable
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)

MOVED = 1e-3
"""Change of a coordinate in rad, or relative to a lever arm, above which a warning is given."""
CHANGED = 1e-6
"""Change of a velocity relative to the largest above which a warning is given."""
ROUND_OFF = 1e-12
"""Velocity in rad/s or m/s below which it counts as zero."""


def bounds(coordinates: Sequence[Variable], arm: float) -> Floats:
    """Return the change of each coordinate without a warning, shape (n,); `arm` is a length in m."""
    return np.array([MOVED * arm if each.unit == "m" else MOVED for each in coordinates])


def warn_of_changed_start(
    functions: SystemFunctions, coordinates: Floats, velocities: Floats, arm: float, own: tuple[OwnStarts, OwnStarts]
) -> None:
    """Warn in the log of differences from start values that were set; where none was, from those that the model has.

    Parameters
    ----------
    functions
        Functions of the system, with its parameters set.
    coordinates, velocities
        On the constraints, each of shape (n,).
    arm
        A length in m that distances are measured by.
    own
        Start values of coordinates and velocities of the model as it was made.
    """
    system = functions.system
    given, given_velocities, _ = functions.start()
    _warn(
        system.name, system.coordinates, given, own[0], coordinates, bounds(system.coordinates, arm),
        "the start values do not close the loops",
    )  # fmt: skip
    least = max(CHANGED * np.max(np.abs(given_velocities), initial=0.0), ROUND_OFF)
    _warn(
        system.name, system.velocities, given_velocities, own[1], velocities, np.full(len(velocities), least),
        "the start velocities contradict the loops",
    )  # fmt: skip


def _warn(
    name: str, variables: Sequence[Variable], given: Floats, own: OwnStarts, found: Floats, least: Floats, why: str
) -> None:
    ranks = given_ranks(given, own)
    changes = np.where(ranks < max(1, np.max(ranks, initial=0)), 0.0, np.abs(found - given))
    told = np.flatnonzero(changes > least)
    if len(told):
        worst = int(told[np.argmax(changes[told] / least[told])])
        variable = variables[worst]
        logger.warning(
            "%s: %s starts at %.6g instead of %.6g %s: %s",
            name,
            variable.name,
            found[worst],
            given[worst],
            variable.unit,
            why,
        )
