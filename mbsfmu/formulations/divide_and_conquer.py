"""Divide-and-conquer assembly and disassembly, level by level, each level in batches.

A subassembly with handles h is V_h = Σ ξ_hk T_k + ξ_h0 [Chadaj2017, eqs. 15 and 16], T_k being what the joints
outside exert on handle k. All handles of a body coincide in its centre of mass, so that of a single body every ξ is
its inverse inertia. V are accelerations [Featherstone1999] or velocities [Chadaj2017] alike.

A joint's constraint equations are eliminated one by one: with d the wrench of a unit multiplier on the handles and
e = dᵀ ξ d, the multiplier is λ = −(dᵀ ξ T + dᵀ ξ_0 + γ) / e, and ξ − ξ d dᵀ ξ / e is what the subassembly is then.
That is C = −[Dᵀ (ξ_11 + ξ_22) D]⁻¹ of [Chadaj2017, eq. 27] factored into L and D as it is built up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from mbsfmu.equations.rotation import Array
from mbsfmu.formulations.binary_tree import BinaryTree, Elimination, Group, Indices, Level

SINGULAR = 1e-10
"""Where e is below this share of what it is on free bodies, the equation depends on those before it."""


@dataclass(frozen=True)
class Equations:
    """All constraint equations d_parentᵀ V_parent + d_childᵀ V_child + γ = 0.

    Attributes
    ----------
    parent, child
        Wrenches of unit multipliers about the bodies' centres of mass, zero on the ground; shape (rows, 6).
    bias
        γ, shape (rows,).
    """

    parent: Array
    child: Array
    bias: Array


@dataclass(frozen=True)
class _Pool:
    """Subassemblies of the same number of handles: ξ_hk, shape (members, 6 h, 6 h), and ξ_h0, shape (members, 6 h)."""

    matrix: Array
    vector: Array


@dataclass(frozen=True)
class _Eliminated:
    """One eliminated equation of a group: what gives its multiplier when T is known."""

    rows: Array
    wrench: Array
    response: Array
    weight: Array
    rest: Array


class DivideAndConquer:
    """Solves for all multipliers and all bodies at once.

    Parameters
    ----------
    tree
        The plan.
    """

    def __init__(self, tree: BinaryTree) -> None:
        self._tree = tree

    def solve(self, inverse: Array, free: Array, equations: Equations) -> tuple[Array, Array]:
        """Return V of each body, shape (bodies, 6), and the multipliers, shape (rows,).

        Parameters
        ----------
        inverse
            Inverse inertia of each body about its centre of mass, shape (bodies, 6, 6).
        free
            V of each body without constraints, shape (bodies, 6).
        equations
            The constraints.
        """
        pools = {1: _Pool(inverse, free)}
        history = []
        for level in self._tree.levels:
            pools, eliminated = _assemble(level, pools, equations)
            history.append(eliminated)
        multipliers: list[tuple[Array, Array]] = []
        forces = {count: np.zeros(pool.vector.shape) for count, pool in pools.items()}
        for level, eliminated in zip(reversed(self._tree.levels), reversed(history), strict=True):
            forces = _disassemble(level, eliminated, forces, multipliers)
        moved = free + _times(inverse, forces[1])
        return moved, _in_order(multipliers, len(equations.bias))


def _assemble(
    level: Level, pools: dict[int, _Pool], equations: Equations
) -> tuple[dict[int, _Pool], list[list[_Eliminated]]]:
    made: dict[int, list[_Pool]] = {}
    history = []
    for group in level.groups:
        pool = _stacked(group, pools)
        free = pool.matrix
        eliminated = []
        for elimination in group.eliminations:
            for column in range(elimination.rows.shape[1]):
                pool, one = _eliminate(pool, free, elimination, column, equations)
                eliminated.append(one)
        history.append(eliminated)
        slots = [6 * slot + axis for slot in group.kept for axis in range(6)]
        made.setdefault(len(group.kept), []).append(_Pool(pool.matrix[:, slots][:, :, slots], pool.vector[:, slots]))
    for count, positions in level.carried.items():
        made.setdefault(count, []).append(_Pool(pools[count].matrix[positions], pools[count].vector[positions]))
    joined = {
        count: _Pool(np.concatenate([each.matrix for each in group]), np.concatenate([each.vector for each in group]))
        for count, group in made.items()
    }
    return joined, history


def _stacked(group: Group, pools: dict[int, _Pool]) -> _Pool:
    """Put the parts of a group's members side by side."""
    parts = [_Pool(pools[count].matrix[positions], pools[count].vector[positions]) for count, positions in group.parts]
    if len(parts) == 1:
        return parts[0]
    one, other = parts
    corner = np.zeros((one.vector.shape[0], one.vector.shape[1], other.vector.shape[1]))
    upper = np.concatenate([one.matrix, corner], axis=2)
    lower = np.concatenate([np.swapaxes(corner, 1, 2), other.matrix], axis=2)
    return _Pool(np.concatenate([upper, lower], axis=1), np.concatenate([one.vector, other.vector], axis=1))


def _eliminate(
    pool: _Pool, free: Array, elimination: Elimination, column: int, equations: Equations
) -> tuple[_Pool, _Eliminated]:
    rows = elimination.rows[:, column]
    size = pool.vector.shape[1]
    wrench = np.zeros((len(rows), size))
    for slot, given in ((elimination.parent, equations.parent), (elimination.child, equations.child)):
        if slot is not None:
            before, after = np.zeros((len(rows), 6 * slot)), np.zeros((len(rows), size - 6 * slot - 6))
            wrench = wrench + np.concatenate([before, given[rows], after], axis=1)
    response = _times(pool.matrix, wrench)
    pivot = (wrench * response).sum(axis=1)
    if elimination.closes_loop:
        # A generalized inverse without a branch: 1/e, and next to nothing where e is round-off.
        small = SINGULAR * (wrench * _times(free, wrench)).sum(axis=1)
        weight = pivot / (pivot * pivot + small * small)
    else:
        weight = 1.0 / pivot
    rest = (wrench * pool.vector).sum(axis=1) + equations.bias[rows]
    scaled = response * weight[:, np.newaxis]
    one, other, mirrored = _triangle(size)
    matrix = (pool.matrix[:, one, other] - scaled[:, one] * response[:, other])[:, mirrored]
    vector = pool.vector - scaled * rest[:, np.newaxis]
    return _Pool(matrix, vector), _Eliminated(rows, wrench, response, weight, rest)


@cache
def _triangle(size: int) -> tuple[Indices, Indices, Indices]:
    """Return rows and columns of a lower triangle, and where in it each element of a symmetric matrix stands."""
    one, other = np.tril_indices(size)
    mirrored = np.empty((size, size), dtype=np.intp)
    mirrored[one, other] = mirrored[other, one] = np.arange(len(one))
    return one, other, mirrored


def _disassemble(
    level: Level, history: list[list[_Eliminated]], forces: dict[int, Array], multipliers: list[tuple[Array, Array]]
) -> dict[int, Array]:
    """Return what acts on the handles of the level before; add the level's multipliers to the list."""
    given = dict.fromkeys(forces, 0)
    placed: dict[int, list[tuple[Array, Array]]] = {}
    for group, eliminated in zip(level.groups, history, strict=True):
        members, kept = len(group.parts[0][1]), len(group.kept)
        first = given.get(kept, 0)
        given[kept] = first + members
        acting = _spread(group, forces[kept][first : first + members])
        for one in reversed(eliminated):
            multiplier = -one.weight * ((one.response * acting).sum(axis=1) + one.rest)
            acting = acting + one.wrench * multiplier[:, np.newaxis]
            multipliers.append((one.rows, multiplier))
        begin = 0
        for count, positions in group.parts:
            placed.setdefault(count, []).append((positions, acting[:, begin : begin + 6 * count]))
            begin += 6 * count
    for count, positions in level.carried.items():
        first = given[count]
        placed.setdefault(count, []).append((positions, forces[count][first : first + len(positions)]))
    return {count: _in_order(pieces, sum(len(each) for each, _ in pieces)) for count, pieces in placed.items()}


def _spread(group: Group, kept: Array) -> Array:
    """Put forces on the kept handles among those on all, which are zero elsewhere."""
    members = len(group.parts[0][1])
    handles = sum(count for count, _ in group.parts)
    columns = [np.zeros((members, 6))] * handles
    for index, slot in enumerate(group.kept):
        columns[slot] = kept[:, 6 * index : 6 * index + 6]
    return np.concatenate(columns, axis=1)


def _in_order(pieces: list[tuple[Array, Array]], count: int) -> Array:
    """Put pieces with given positions into one array."""
    if not pieces:
        return np.zeros(count)
    order = np.empty(count, dtype=np.intp)
    order[np.concatenate([positions for positions, _ in pieces])] = np.arange(count)
    return np.concatenate([values for _, values in pieces])[order]


def _times(matrices: Array, vectors: Array) -> Array:
    return (matrices @ vectors[:, :, np.newaxis])[:, :, 0]
