"""Acceleration feed-through: solved exactly if linear, otherwise refused."""

from __future__ import annotations

import numpy as np

from mbsfmu.equations.linear import RANK_TOLERANCE, null_space
from mbsfmu.modelling import DataError
from mbsfmu.systems.expressions import SystemExpressions
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import System
from mbsfmu.tracing.kept_traces import Traces
from mbsfmu.tracing.linearity import is_linear
from mbsfmu.tracing.workspace import Floats

LEAST = 1e-12
"""Fraction of the determinant of M without feed-through below which a motion has no inertia."""


def check_feedback(system: System, traces: Traces) -> None:
    """Check that forces are linear in the accelerations that connections transmit.

    Then M z̈ − Q is linear in z̈ with a modified M.

    Parameters
    ----------
    system
        The system.
    traces
        Has what was found out before.

    Raises
    ------
    DataError
        When the equations of motion are not linear in the accelerations.
    """
    if not system.fed_through:
        return

    def linear() -> bool:
        given = SystemExpressions(system)
        return is_linear(given.residual, given.symbol_by_part["accelerations"])

    if not traces.fact("linear in accelerations", linear):
        raise DataError(
            f"{system.name}: {_named(system)} depends on accelerations, and forces depend on it at once in a "
            "way that is not linear; let it follow from a state, as of a lag of first "
            "order, or from a sampled block"
        )


def check_inertia(functions: SystemFunctions, jacobian: Floats) -> None:
    """Check that acceleration feed-through leaves positive inertia.

    The determinant of M in the free directions is positive without these forces. It vanishes where one motion has no
    inertia left; beyond, the motion would respond in the opposite direction of a force.

    Parameters
    ----------
    functions
        Functions of the system; they hold the start.
    jacobian
        Φ_z there, shape (number of constraints, n).

    Raises
    ------
    DataError
        When they do not.
    """
    system = functions.system
    if not system.fed_through:
        return
    free = null_space(jacobian, RANK_TOLERANCE)
    mass, bare = (free.T @ each @ free for each in functions.masses())
    if not np.linalg.det(np.linalg.solve(bare, mass)) > LEAST:
        raise DataError(
            f"{system.name}: {_named(system)} depends on accelerations, and the forces that depend on it leave no "
            "inertia where the system starts; let it follow from a state, as of a lag of first order"
        )


def _named(system: System) -> str:
    names = "', '".join(system.fed_through)
    return f"what drives '{names}'"
