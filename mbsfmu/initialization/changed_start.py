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

    The sentence names the coordinate that moves furthest, the loop equation that is violated most, and how many
    others move too.

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
    if not system.constraints:
        return
    functions.coordinates[:] = given
    violation, jacobian, drifts = (each.copy() for each in functions.all_closure())
    functions.coordinates[:] = coordinates
    _warn(
        system.name, system.coordinates, given, own[0], coordinates, bounds(system.coordinates, arm),
        f"the start values do not close the loops, least of all at joint {_most(system.constraints, violation)}",
    )  # fmt: skip
    least = max(CHANGED * np.max(np.abs(given_velocities), initial=0.0), ROUND_OFF)
    _warn(
        system.name, system.velocities, given_velocities, own[1], velocities, np.full(len(velocities), least),
        "the start velocities contradict the loops, most of all at joint "
        f"{_most(system.constraints, jacobian @ given_velocities + drifts)}",
    )  # fmt: skip


def _most(names: Sequence[str], violation: Floats) -> str:
    return names[int(np.argmax(np.abs(violation)))]


def _warn(
    name: str, variables: Sequence[Variable], given: Floats, own: OwnStarts, found: Floats, least: Floats, why: str
) -> None:
    ranks = given_ranks(given, own)
    changes = np.where(ranks < max(1, np.max(ranks, initial=0)), 0.0, np.abs(found - given))
    told = np.flatnonzero(changes > least)
    if len(told):
        worst = int(told[np.argmax(changes[told] / least[told])])
        variable = variables[worst]
        others = f"; {len(told) - 1} more start values are changed too" if len(told) > 1 else ""
        logger.warning(
            "%s: %s starts at %.6g instead of %.6g %s: %s%s",
            name,
            variable.name,
            found[worst],
            given[worst],
            variable.unit,
            why,
            others,
        )
