"""Elimination of a group's constraint equations, and solution for its handles: kernels of divide and conquer.

Block operations of an elimination: the six rows of a handle, and the equations of a link.

The first axis of all arrays is the members of a group.

Elimination of a group's constraint equations, and solution for its handles: kernels of divide and conquer.

All operations are by blocks: the six rows of a handle, and the equations of a link. A group with few handles is one
kernel of unrolled blocks. In a group with many handles each block operation is a call of a small kernel, so that a wide
group has more calls, but not more code. The first axis of all arrays is the group's members.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numpy as np

from mbsfmu.divide_and_conquer.binary_tree import Indices
from mbsfmu.modelling.data import Array
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


WIDE = 8
"""Number of handles beyond which block operations are kernels."""

Found = tuple[list[Array], list[Array], Array, list[Array], list[Array]]
"""Wrenches, responses, weights, and effects of earlier links and of the link itself; see `Eliminated`."""


_Step = TypeVar("_Step", bound=Callable[..., Any])


def _at_once_where_narrow(handles: Callable[..., int]) -> Callable[[_Step], _Step]:
    """Decorate a function of a group: one kernel for few handles, which are counted from its arguments."""

    def decorated(function: _Step) -> _Step:
        at_once = kernel_of_members(function)

        @wraps(function)
        def chosen(*arguments: Any, **alike: Any) -> Any:
            wide = handles(*arguments, **alike) > WIDE
            return (function if wide else at_once)(*arguments, **alike)

        return cast("_Step", chosen)

    return decorated


def _of_parts(parts: list[Array], *_: Any, **__: Any) -> int:
    return sum(part.shape[1] for part in parts) // 6


def times(matrices: Array, vectors: Array) -> Array:
    """Return the product of each matrix with its vector, shapes (members, m, n) and (members, n)."""
    return (matrices @ vectors[:, :, np.newaxis])[:, :, 0]


@_at_once_where_narrow(_of_parts)
def eliminate(
    parts: list[Array],
    wrenches: list[list[Array]],
    active: list[Array | None],
    softness: list[Array | None],
    *,
    ends: tuple[tuple[int | None, ...], ...],
    closes_loop: tuple[bool, ...],
    kept: tuple[int, ...],
) -> tuple[Array, list[Found]]:
    """Eliminate equations from ξ; return ξ of the remaining handles, and the factors of the elimination.

    Dᵀ ξ D is factorized with a row of blocks for each link, and ξ D of the remaining handles as further rows below it.
    ξ itself is not needed in between.

    Parameters
    ----------
    parts
        ξ of one or two parts of each member, each of shape (members, 6 h, 6 h).
    wrenches
        For each link the wrenches of unit multipliers at its ends, each of shape (members, equations, 6).
    active
        For each link ones for active equations, zeros for others, shape (members, equations); None if all are active.
    softness
        For each link 1/α in 1/kg, or −1 of an excess inertia, of each member; None for a rigid one.
    ends
        For each link its handles; None for the ground.
    closes_loop
        For each link whether its equations may depend on earlier ones.
    kept
        The remaining handles.
    """
    blocks = blocks_of(parts)
    acting = [
        {slot: each for slot, each in zip(slots, own, strict=True) if slot is not None}
        for slots, own in zip(ends, wrenches, strict=True)
    ]
    links = len(acting)
    fed_through: list[list[Array]] = [[] for _ in range(links + len(kept))]  # by row, of each link before
    effects: list[list[Array]] = [[] for _ in fed_through]  # and this times 1/e
    weights: list[Array] = []
    within: list[list[Array]] = []
    for number, own in enumerate(acting):
        wrenches_turned = [turned(each) for each in own.values()]
        on_free = {
            slot: plus(None, [blocks[slot, end] for end in own], wrenches_turned)
            for slot in sorted(set(kept).union(*acting[number:]))
        }
        column = [plus(None, list(each.values()), [on_free[slot] for slot in each]) for each in acting[number:]]
        column += [on_free[slot] for slot in kept]
        before = [turned(each) for each in effects[number]]
        left = [minus(each, row, before) for each, row in zip(column, fed_through[number:], strict=True)]
        weight, among = pivots(left[0], column[0] if closes_loop[number] else None, active[number], softness[number])
        for row, value in enumerate(left[1:], number + 1):
            one, other = apart(value, among, weight)
            fed_through[row].append(one)
            effects[row].append(other)
        weights.append(weight)
        within.append(among)
    found = [
        (list(own.values()), [row[number] for row in effects[links:]], weights[number], effects[number], within[number])
        for number, own in enumerate(acting)
    ]
    return without(blocks, kept, effects[links:], fed_through[links:]), found


@_at_once_where_narrow(_of_parts)
def gather(
    parts: list[Array],
    eliminated: list[Found],
    biases: list[Array],
    *,
    ends: tuple[tuple[int | None, ...], ...],
    kept: tuple[int, ...],
) -> tuple[Array, list[Array]]:
    """Return ξ_0 of the remaining handles, and dᵀ ξ_0 + γ of the eliminated equations, of a group's members.

    Parameters
    ----------
    parts
        ξ_0 of one or two parts of each member, each of shape (members, 6 h).
    eliminated, ends, kept
        Result and arguments of `eliminate`.
    biases
        For each link γ, shape (members, equations).
    """
    vectors = [each for part in parts for each in by_handle(part)]
    rests: list[Array] = []
    for (wrenches, _, weight, effects, within), bias, slots in zip(eliminated, biases, ends, strict=True):
        on_ends = [vectors[slot] for slot in slots if slot is not None]
        value = plus(bias[:, np.newaxis], on_ends, [turned(each) for each in wrenches])
        value = minus(value, rests, [turned(each) for each in effects])
        rests.append(apart(value, within, weight)[0])
    left = [
        minus(vectors[slot], rests, [turned(each[1][order]) for each in eliminated]) for order, slot in enumerate(kept)
    ]
    return side_by_side(left, len(parts[0])), [rest[:, 0] for rest in rests]


@_at_once_where_narrow(lambda *_, handles, **__: handles)
def spread(
    outer: Array,
    eliminated: list[Found],
    rests: list[Array],
    *,
    ends: tuple[tuple[int | None, ...], ...],
    kept: tuple[int, ...],
    handles: int,
) -> tuple[Array, list[Array]]:
    """Return the wrenches on all handles of a group's members, shape (members, 6 h), and the multipliers.

    Parameters
    ----------
    outer
        Wrenches on the remaining handles, shape (members, 6 k).
    eliminated, ends, kept
        Result and arguments of `eliminate`.
    rests
        Result of `gather`.
    handles
        Number of handles.
    """
    on_kept = by_handle(outer)
    found: list[Array] = []  # from the last to the first
    for number, ((_, responses, weight, _, within), rest) in reversed(
        list(enumerate(zip(eliminated, rests, strict=True)))
    ):
        later = [effects[number] for _, _, _, effects, _ in reversed(eliminated[number + 1 :])]
        value = minus(opposing(weight, rest), [*on_kept, *found], [*responses, *later])
        found.append(back(value, within))
    found.reverse()
    acting = [np.zeros((len(outer), 1, 6))] * handles
    for slot, each in zip(kept, on_kept, strict=True):
        acting[slot] = each
    for (wrenches, *_), multipliers, slots in zip(eliminated, found, ends, strict=True):
        there = [slot for slot in slots if slot is not None]
        for slot, wrench in zip(there, wrenches, strict=True):
            acting[slot] = plus(acting[slot], [multipliers], [wrench])
    return side_by_side(acting, len(outer)), [each[:, 0] for each in found]
