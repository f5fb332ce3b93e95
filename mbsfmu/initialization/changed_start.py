"""Start values that are given and had to change: told, joint by joint, where the change is visible."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from mbsfmu.modelling.variables import Variable
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)

MOVED = 1e-3
"""Coordinates that move by more than this in rad, or by this share of a lever arm, are told: not what digits leave."""
CHANGED = 1e-6
"""Velocities that change by more than this share of the largest are told."""
ROUND_OFF = 1e-12
"""In rad/s or m/s: nobody gives a velocity as small as this, as it is left where a machine was brought to rest."""


def bounds(coordinates: Sequence[Variable], arm: float) -> Floats:
    """Return by how much each coordinate may move without being told, shape (n,); `arm` is a length in m."""
    return np.array([MOVED * arm if each.unit == "m" else MOVED for each in coordinates])


def warn_of_changed_start(functions: SystemFunctions, coordinates: Floats, velocities: Floats, arm: float) -> None:
    """Say in the log where a start differs from what was given; what was given as zero counts as not given.

    Parameters
    ----------
    functions
        Functions of the system, with its parameters set.
    coordinates, velocities
        On the constraints, each of shape (n,).
    arm
        A length in m that distances are measured by.
    """
    system = functions.system
    given, given_velocities, _ = functions.start()
    _warn(
        system.name, system.coordinates, given, coordinates, bounds(system.coordinates, arm),
        "the start values do not close the loops",
    )  # fmt: skip
    least = max(CHANGED * np.max(np.abs(given_velocities), initial=0.0), ROUND_OFF)
    _warn(
        system.name, system.velocities, given_velocities, velocities, np.full(len(velocities), least),
        "the start velocities contradict the loops",
    )  # fmt: skip


def _warn(name: str, variables: Sequence[Variable], given: Floats, found: Floats, least: Floats, why: str) -> None:
    changes = np.where(given == 0.0, 0.0, np.abs(found - given))
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
