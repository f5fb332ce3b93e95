"""Forces and moments in joints where redundant constraints leave them open: those of least norm."""

from __future__ import annotations

import numpy as np

from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats


def least_reactions(functions: SystemFunctions) -> Floats:
    """Return the reactions of all joints at the motion and the multipliers that the functions hold.

    Forces that redundant joints hold against each other, N μ with Φ_zᵀ N = 0, move nothing and do not follow from
    the motion. Of all reactions that go with it, r + A N μ, those with the least sum of squares over all joints, in N
    and N m, are taken: they are the same in every frame, in every formulation, and whichever joints are cut.

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
