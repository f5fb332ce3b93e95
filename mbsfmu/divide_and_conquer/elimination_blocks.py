"""Block operations of an elimination: the six rows of a handle, and the equations of a link.

The first axis of all arrays is the members of a group.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from mbsfmu.divide_and_conquer.binary_tree import Indices
from mbsfmu.modelling.fields import Array
from mbsfmu.tracing.kernels import kernel_of_members

SINGULAR = 1e-10
"""Fraction of e on free bodies below which an equation depends on earlier ones."""

AT_ONCE = 2
"""Number of links whose products are subtracted from a block in one call."""


def reciprocal(value: Array) -> Array:
    """Return 1/x as a quotient that tracing keeps: otherwise it would turn products with 1/x into divisions by x."""
    return value / (value * value)


def blocks_of(parts: list[Array]) -> dict[tuple[int, int], Array]:
    """Return ξ of each pair of handles, zero between two parts, each of shape (members, 6, 6)."""
    owner = [(part, slot) for part in parts for slot in range(part.shape[1] // 6)]
    nothing = np.zeros((len(parts[0]), 6, 6))
    return {
        (row, column): part[:, 6 * one : 6 * one + 6, 6 * two : 6 * two + 6] if part is other else nothing
        for row, (part, one) in enumerate(owner)
        for column, (other, two) in enumerate(owner)
    }


def by_handle(vectors: Array) -> list[Array]:
    """Return the rows of each handle as a row of blocks, each of shape (members, 1, 6)."""
    return [vectors[:, np.newaxis, first : first + 6] for first in range(0, vectors.shape[1], 6)]


def side_by_side(blocks: list[Array], members: int) -> Array:
    """Concatenate blocks of shape (members, 1, 6) to shape (members, 6 h)."""
    return np.concatenate([np.zeros((members, 1, 0)), *blocks], axis=2)[:, 0]


def turned(block: Array) -> Array:
    """Return the transposed block of each member."""
    return np.swapaxes(block, 1, 2)


def plus(value: Array | None, ones: list[Array], others: list[Array]) -> Array:
    """Return a block, if there is one, plus products of blocks."""
    for first in range(0, len(ones), AT_ONCE):
        value = _with_products(value, ones[first : first + AT_ONCE], others[first : first + AT_ONCE])
    assert value is not None
    return value


def minus(value: Array, ones: list[Array], others: list[Array]) -> Array:
    """Return a block minus products of blocks."""
    for first in range(0, len(ones), AT_ONCE):
        value = _without_products(value, ones[first : first + AT_ONCE], others[first : first + AT_ONCE])
    return value


def without(
    blocks: dict[tuple[int, int], Array],
    kept: tuple[int, ...],
    effects: list[list[Array]],
    fed_through: list[list[Array]],
) -> Array:
    """Return the remaining ξ, shape (members, 6 k, 6 k), from blocks of its lower triangle."""
    members = len(blocks[0, 0])
    left: dict[tuple[int, int], Array] = {}
    for row, slot in enumerate(kept):
        for column, other in enumerate(kept[: row + 1]):
            value = blocks[slot, other]
            for first in range(0, len(effects[row]), AT_ONCE):
                chosen = slice(first, first + AT_ONCE)
                value = _lowered(value, effects[row][chosen], fed_through[column][chosen], symmetric=row == column)
            left[row, column] = value
            left[column, row] = turned(value)
    beside = [np.concatenate([left[row, column] for column in range(len(kept))], axis=2) for row in range(len(kept))]
    return np.concatenate([np.zeros((members, 0, 6 * len(kept))), *beside], axis=1)


@kernel_of_members
def _with_products(value: Array | None, ones: list[Array], others: list[Array]) -> Array:
    for one, other in zip(ones, others, strict=True):
        product = one @ other
        value = product if value is None else value + product
    assert value is not None
    return value


@kernel_of_members
def _without_products(value: Array, ones: list[Array], others: list[Array]) -> Array:
    for one, other in zip(ones, others, strict=True):
        value = value - one @ other
    return value


@kernel_of_members
def _lowered(value: Array, effects: list[Array], fed_through: list[Array], *, symmetric: bool) -> Array:
    """Return ξ − ξ d dᵀ ξ / e of a block; where it is symmetric, of its lower triangle."""
    if not symmetric:
        return _without_products(value, effects, [turned(each) for each in fed_through])
    one, other, mirrored = triangle(value.shape[1])
    lower = value[:, one, other]
    for effect, each in zip(effects, fed_through, strict=True):
        lower = lower - (effect[:, one] * each[:, other]).sum(axis=2)
    return lower[:, mirrored]


@cache
def triangle(size: int) -> tuple[Indices, Indices, Indices]:
    """Return rows and columns of a lower triangle, and the position of each element of the symmetric matrix in it."""
    one, other = np.tril_indices(size)
    mirrored = np.empty((size, size), dtype=np.intp)
    mirrored[one, other] = mirrored[other, one] = np.arange(len(one))
    return one, other, mirrored


@kernel_of_members
def pivots(
    left: Array, on_free: Array | None, counting: Array | None, softness: Array | None
) -> tuple[Array, list[Array]]:
    """Return 1/e of each equation of a link, and the coupling of each but the first to earlier ones.

    Parameters
    ----------
    left
        Dᵀ ξ D of the link after earlier links, shape (members, equations, equations).
    on_free
        The same on free parts if equations may be dependent, otherwise None.
    counting, softness
        As for `eliminate`.
    """
    weights: list[Array] = []
    within: list[Array] = []
    for row in range(left.shape[1]):
        fed_through: list[Array] = []
        own: list[Array] = []
        for column, weight in enumerate(weights):
            value = left[:, row, column]
            for before in range(column):
                value = value - fed_through[before] * within[column - 1][:, before]
            fed_through.append(value)
            own.append(value * weight)
        pivot = left[:, row, row]
        for one, other in zip(fed_through, own, strict=True):
            pivot = pivot - one * other
        if softness is not None:
            weight = reciprocal(pivot + softness)
        elif on_free is not None:
            # A generalized inverse without a branch: 1/e, and nearly zero if e is round-off.
            small = SINGULAR * on_free[:, row, row]
            weight = pivot / (pivot * pivot + small * small)
        else:
            weight = reciprocal(pivot)
        weights.append(weight if counting is None else weight * counting[:, row])
        if own:
            within.append(np.stack(own, axis=1))
    return np.stack(weights, axis=1), within


@kernel_of_members
def apart(value: Array, within: list[Array], weight: Array) -> tuple[Array, Array]:
    """Return the coupling of a row to each equation of a link, decoupled from earlier ones, and this times 1/e.

    Parameters
    ----------
    value
        Coupling to all of them, shape (members, rows, equations).
    within, weight
        Result of `pivots`.
    """
    columns = [value[:, :, 0]]
    for equation, own in enumerate(within, 1):
        column = value[:, :, equation]
        for before, each in enumerate(columns):
            column = column - each * own[:, before, np.newaxis]
        columns.append(column)
    fed_through = np.stack(columns, axis=2)
    return fed_through, fed_through * weight[:, np.newaxis]


@kernel_of_members
def opposing(weight: Array, rest: Array) -> Array:
    """Return −rest / e of a link's equations, shape (members, 1, equations)."""
    return (-weight * rest)[:, np.newaxis]


@kernel_of_members
def back(value: Array, within: list[Array]) -> Array:
    """Return the multipliers of a link by back substitution."""
    found = [value[:, 0, -1]]
    for equation in reversed(range(len(within))):
        multiplier = value[:, 0, equation]
        for own, later in zip(reversed(within), found, strict=False):
            multiplier = multiplier - own[:, equation] * later
        found.append(multiplier)
    return np.stack(found[::-1], axis=1)[:, np.newaxis]
