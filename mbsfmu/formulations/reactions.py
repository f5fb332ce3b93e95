"""Least-norm forces and moments in joints with redundant constraints."""

from __future__ import annotations

import numpy as np

from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats


def least_reactions(functions: SystemFunctions) -> Floats:
    """Return the reactions of all joints at the present motion and multipliers.

    Internal forces of redundant joints, N μ with Φ_zᵀ N = 0, do not affect the motion and do not follow from it. Of all
    reactions r + A N μ, those with the least sum of squares over all joints, in N and N m, are returned. They are
    independent of the frame, of the formulation, and of the choice of cut joints.

    Returns
    -------
    NDArray
        Shape (number of reactions,).
    """
    reactions = functions.reactions()[0]
    if not functions.reactions_open:
        return reactions
    idle = np.linalg.svd(functions.all_closure_jacobian()[0])[0][:, functions.rank :]
    held = np.empty((len(reactions), idle.shape[1]))
    for index, multipliers in enumerate(idle.T):
        functions.shared_multipliers[:] = multipliers
        held[:, index] = functions.shared_reactions()[0]
    return np.asarray(reactions - held @ np.linalg.lstsq(held, reactions)[0])
