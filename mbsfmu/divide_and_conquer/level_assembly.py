"""Divide-and-conquer assembly and disassembly by levels, each level in batches.

A subassembly with handles h satisfies V_h = Σ ξ_hk T_k + ξ_h0 [Chadaj2017, eqs. 15 and 16], where T_k is the wrench of
the outside joints on handle k. All handles of a body coincide in its centre of mass, so that every ξ of a single body
is its inverse inertia. V are accelerations [Featherstone1999] or velocities [Chadaj2017].

Constraint equations of a joint are eliminated one by one. With the wrench d of a unit multiplier on the handles and e =
dᵀ ξ d, the multiplier is λ = −(dᵀ ξ T + dᵀ ξ_0 + γ) / e, and the subassembly becomes ξ − ξ d dᵀ ξ / e. The coupling of
an equation to each earlier one in the same subassembly is stored as one number, so that ξ and ξ_0 need no update from
one equation to the next. This is C = −[Dᵀ (ξ_11 + ξ_22) D]⁻¹ of [Chadaj2017, eq. 27] factorized as L D Lᵀ. With a
softness 1/α added to every e it is C = (1/α I + Φ_q M⁻¹ Φ_qᵀ)⁻¹ of [Malczyk2012, eq. 20], which exists for any rank.

Matrices are factorized first (`factorize`), then vectors are solved (`LevelFactors.solve`), once for each right-hand
side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mbsfmu.divide_and_conquer.binary_tree import BinaryTree, Elimination, Indices, SubassemblyBatch, TreeLevel
from mbsfmu.divide_and_conquer.corrections import in_a_row, rebuilt
from mbsfmu.divide_and_conquer.elimination import Found, eliminate, gather, spread, times
from mbsfmu.modelling.fields import Array

TAKEN_AWAY = -1.0
"""Softness of equations that take an excess inertia d dᵀ away from a body: with dᵀ V − λ = 0 the wrench d λ is what it
takes to accelerate that."""


@dataclass(frozen=True)
class LevelEquations:
    """Constraint equations Σ dᵀ V + γ = 0, summed over the bodies of each, without γ.

    Attributes
    ----------
    wrenches
        d: wrenches of unit multipliers about the centres of mass of the bodies, in the order of the links' ends; zero
        on the ground, and for missing ends; shape (ends, rows, 6).
    active
        Ones for active equations, zeros for redundant ones; shape (rows,), None if all are active.
    """

    wrenches: Array
    active: Array | None = None


@dataclass(frozen=True)
class Eliminated:
    """Factors of the eliminated equations of one link, for all members of a group.

    Attributes
    ----------
    ends
        The handles that they act on; None for the ground.
    rows
        Their indices, shape (members, equations).
    numbers
        d of each end that is not the ground, shape (members, equations, 6); ξ d / e of each handle that is left, shape
        (members, 6, equations), with ξ as the equations before leave it; 1/e, shape (members, equations); of each link
        that the group has eliminated before, dᵀ ξ d / e with its ξ d / e, shape (members, equations, its equations);
        and the same among these equations, of each but the first, shape (members, equations before it).
    """

    ends: tuple[int | None, ...]
    rows: Indices
    numbers: Found


History = list[list[list[Eliminated]]]
"""Factors of the eliminated equations, by level, group and order."""


class DivideAndConquer:
    """Assembly of matrices by levels.

    Parameters
    ----------
    tree
        The plan.
    """

    def __init__(self, tree: BinaryTree) -> None:
        self._tree = tree

    def factorize(self, inverse: Array, equations: LevelEquations, softness: Array | None = None) -> LevelFactors:
        """Eliminate all equations and return the factors.

        Parameters
        ----------
        inverse
            Inverse inertia of each body about its centre of mass, shape (bodies, 6, 6).
        equations
            The constraints.
        softness
            1/α in 1/kg; without it, constraints are rigid and dependent equations are omitted.
        """
        pools = {1: inverse}
        history = []
        for level in self._tree.levels:
            pools, eliminated = _assemble(level, pools, equations, softness)
            history.append(eliminated)
        return LevelFactors(self._tree, inverse, history)


class LevelFactors:
    """Factors that solve for all multipliers and all bodies.

    Parameters
    ----------
    tree, inverse, history
        The plan, the inverse inertias, and the factors of eliminated equations.
    """

    def __init__(self, tree: BinaryTree, inverse: Array, history: History) -> None:
        self._tree = tree
        self._inverse = inverse
        self._history = history

    def solve(self, free: Array, bias: Array) -> tuple[Array, Array]:
        """Return V of each body, shape (bodies, 6), and the multipliers, shape (rows,).

        Parameters
        ----------
        free
            V of each body without constraints, shape (bodies, 6).
        bias
            γ of each equation, shape (rows,).
        """
        pools = {1: free}
        rests = []
        for level, eliminated in zip(self._tree.levels, self._history, strict=True):
            pools, rest = _gather(level, eliminated, pools, bias)
            rests.append(rest)
        multipliers: list[tuple[Array, Array]] = []
        forces = {count: np.zeros(pool.shape) for count, pool in pools.items()}
        steps = list(zip(self._tree.levels, self._history, rests, strict=True))
        for level, eliminated, rest in reversed(steps):
            forces = _disassemble(level, eliminated, rest, forces, multipliers)
        moved = free + times(self._inverse, forces[1])
        return moved, _in_order(multipliers, len(bias))

    def numbers(self) -> Array:
        """Return all numbers of the factors as one vector, shape (numbers,)."""
        return np.concatenate(list(in_a_row([self._inverse, self._matrices])))

    def with_numbers(self, numbers: Array) -> LevelFactors:
        """Return factors with other numbers, in the order of `numbers`."""
        inverse, matrices = rebuilt([self._inverse, self._matrices], numbers)
        history = [
            [
                [replace(one, numbers=found) for one, found in zip(group, own, strict=True)]
                for group, own in zip(level, of_level, strict=True)
            ]
            for level, of_level in zip(self._history, matrices, strict=True)
        ]
        return LevelFactors(self._tree, inverse, history)

    @property
    def _matrices(self) -> list[list[list[Found]]]:
        return [[_numbers(group) for group in level] for level in self._history]


def _assemble(
    level: TreeLevel, pools: dict[int, Array], equations: LevelEquations, softness: Array | None
) -> tuple[dict[int, Array], list[list[Eliminated]]]:
    """Return the ξ of the next level by their numbers of handles, each of shape (members, 6 h, 6 h)."""
    made: dict[int, list[Array]] = {}
    history = []
    for group in level.groups:
        links = [each for each in group.eliminations if each.rows.shape[1]]
        left, found = eliminate(
            [pools[count][positions] for count, positions in group.parts],
            [[equations.wrenches[end][each.rows] for end in range(len(each.ends))] for each in links],
            [None if equations.active is None else equations.active[each.rows] for each in links],
            [_softness(each, softness) for each in links],
            ends=tuple(each.ends for each in links),
            closes_loop=tuple(each.closes_loop for each in links),
            kept=group.kept,
        )
        history.append([Eliminated(each.ends, each.rows, own) for each, own in zip(links, found, strict=True)])
        made.setdefault(len(group.kept), []).append(left)
    return _joined(level, made, pools), history


def _softness(link: Elimination, softness: Array | None) -> Array | None:
    if link.excess:
        return TAKEN_AWAY * np.ones(len(link.rows))
    return None if softness is None else np.stack([softness] * len(link.rows))


def _gather(
    level: TreeLevel, history: list[list[Eliminated]], pools: dict[int, Array], bias: Array
) -> tuple[dict[int, Array], list[list[Array]]]:
    """Return the ξ_h0 of the next level, each of shape (members, 6 h), and dᵀ ξ_0 + γ of what is eliminated."""
    made: dict[int, list[Array]] = {}
    rests = []
    for group, eliminated in zip(level.groups, history, strict=True):
        parts = [pools[count][positions] for count, positions in group.parts]
        biases = [bias[one.rows] for one in eliminated]
        vector, left = gather(parts, _numbers(eliminated), biases, ends=_ends(eliminated), kept=group.kept)
        rests.append(left)
        made.setdefault(len(group.kept), []).append(vector)
    return _joined(level, made, pools), rests


def _numbers(eliminated: list[Eliminated]) -> list[Found]:
    return [one.numbers for one in eliminated]


def _ends(eliminated: list[Eliminated]) -> tuple[tuple[int | None, ...], ...]:
    return tuple(one.ends for one in eliminated)


def _joined(level: TreeLevel, made: dict[int, list[Array]], pools: dict[int, Array]) -> dict[int, Array]:
    """Return the assembled and the unchanged subassemblies of a level, by the number of handles."""
    for count, positions in level.carried.items():
        made.setdefault(count, []).append(pools[count][positions])
    return {count: np.concatenate(pieces) for count, pieces in made.items()}


def _handles(group: SubassemblyBatch) -> int:
    return sum(count for count, _ in group.parts)


def _disassemble(
    level: TreeLevel,
    history: list[list[Eliminated]],
    rests: list[list[Array]],
    forces: dict[int, Array],
    multipliers: list[tuple[Array, Array]],
) -> dict[int, Array]:
    """Return the wrenches on the handles of the previous level; add the level's multipliers to the list."""
    given = dict.fromkeys(forces, 0)
    placed: dict[int, list[tuple[Array, Array]]] = {}
    for group, eliminated, left in zip(level.groups, history, rests, strict=True):
        members, kept = len(group.parts[0][1]), len(group.kept)
        first = given.get(kept, 0)
        given[kept] = first + members
        acting, found = spread(
            forces[kept][first : first + members] if kept else np.zeros((members, 0)),
            _numbers(eliminated),
            left,
            ends=_ends(eliminated),
            kept=group.kept,
            handles=_handles(group),
        )
        multipliers += [(one.rows.ravel(), each.ravel()) for one, each in zip(eliminated, found, strict=True)]
        begin = 0
        for count, positions in group.parts:
            placed.setdefault(count, []).append((positions, acting[:, begin : begin + 6 * count]))
            begin += 6 * count
    for count, positions in level.carried.items():
        first = given[count]
        placed.setdefault(count, []).append((positions, forces[count][first : first + len(positions)]))
    return {count: _in_order(pieces, sum(len(each) for each, _ in pieces)) for count, pieces in placed.items()}


def _in_order(pieces: list[tuple[Array, Array]], count: int) -> Array:
    """Concatenate pieces with given positions into one array."""
    if not pieces:
        return np.zeros(count)
    order = np.empty(count, dtype=np.intp)
    order[np.concatenate([positions for positions, _ in pieces])] = np.arange(count)
    return np.concatenate([values for _, values in pieces])[order]
