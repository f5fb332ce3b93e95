"""Elimination of the joints of a tree one after the other, from the tips to the ground.

What is joined so has one handle, the body that the next joint inwards leads to, where a subassembly amid a chain has
two: an elimination takes a third of the operations, and leaves a third of the numbers. That is an articulated-body
algorithm [Featherstone1983], with the equations of `divide_and_conquer.py`. Each elimination waits for the one before
along the branch, though: where threads share them, the balanced assembly has log₂ n levels instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.rotation import Array
from mbsfmu.formulations.binary_tree import GROUND
from mbsfmu.formulations.divide_and_conquer import Equations
from mbsfmu.formulations.elimination import Found, eliminate, gather, spread, times


@dataclass(frozen=True)
class Hung:
    """A body by the joint that it hangs on.

    Attributes
    ----------
    parent
        The body that this leads to, which comes before it; −1 for the ground.
    rows
        Indices of the joint's constraint equations.
    """

    parent: int
    rows: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The handles that are left behind the joint."""
        return () if self.parent == GROUND else (0,)


class SequentialAssembly:
    """Assembles matrices as `DivideAndConquer` does.

    Parameters
    ----------
    bodies
        All bodies, parents first.
    """

    def __init__(self, bodies: Sequence[Hung]) -> None:
        self._bodies = bodies

    def factorize(self, inverse: Array, equations: Equations) -> SequentialFactors:
        """Eliminate all equations; arguments as for `DivideAndConquer`."""
        left = [inverse[body : body + 1] for body in range(len(self._bodies))]
        history: list[list[Found]] = [[] for _ in self._bodies]
        for body, hung in reversed(list(enumerate(self._bodies))):
            count, grounded = len(hung.rows), hung.parent == GROUND
            parts = [left[body]] if grounded else [left[hung.parent], left[body]]
            acting = [[equations.wrenches[end][[row]] for end in range(2)] for row in hung.rows]
            ends: tuple[int | None, int] = (None, 0) if grounded else (0, 1)
            joined, history[body] = eliminate(
                parts,
                acting,
                [None] * count,
                None,
                ends=(ends,) * count,
                closes_loop=(False,) * count,
                kept=hung.kept,
            )
            if not grounded:
                left[hung.parent] = joined
        return SequentialFactors(self._bodies, inverse, history)


class SequentialFactors:
    """Solves for all multipliers and all bodies at once, as `Factors` does.

    Parameters
    ----------
    bodies, inverse, history
        The bodies, their inverse inertias, and what was eliminated at the joint of each.
    """

    def __init__(self, bodies: Sequence[Hung], inverse: Array, history: list[list[Found]]) -> None:
        self._bodies = bodies
        self._inverse = inverse
        self._history = history

    def solve(self, free: Array, bias: Array) -> tuple[Array, Array]:
        """Return V of each body, shape (bodies, 6), and the multipliers, shape (rows,); arguments as for `Factors`."""
        pools = [free[body : body + 1] for body in range(len(self._bodies))]
        rests: list[list[Array]] = [[] for _ in self._bodies]
        for body, hung in reversed(list(enumerate(self._bodies))):
            parts = [pools[body]] if hung.parent == GROUND else [pools[hung.parent], pools[body]]
            biases = [bias[[row]] for row in hung.rows]
            joined, rests[body] = gather(parts, self._history[body], biases, kept=hung.kept)
            if hung.parent != GROUND:
                pools[hung.parent] = joined
        forces: list[Array] = [np.zeros((1, 0))] * len(self._bodies)
        multipliers: list[Array] = []
        for body, hung in enumerate(self._bodies):
            grounded = hung.parent == GROUND
            outer = np.zeros((1, 0)) if grounded else forces[hung.parent]
            handles = 1 if grounded else 2
            acting, found = spread(outer, self._history[body], rests[body], kept=hung.kept, handles=handles)
            forces[body] = acting[:, -6:]
            if not grounded:
                forces[hung.parent] = acting[:, :6]
            multipliers += reversed(found)
        moved = free + times(self._inverse, np.concatenate(forces))
        return moved, np.concatenate([np.zeros(0), *multipliers])
