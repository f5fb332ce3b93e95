"""Elimination of a group's constraint equations, and what acts on its handles then: the kernels of divide and conquer.

All of it goes by blocks: the six rows of a handle, and of a link as many as it has equations. Where a group has few
handles it is one kernel, in which the blocks are straight code; where it has many, each step of a block is a call of a
small kernel, so that a wide group has more calls, and no longer code. First axes of all arrays are the group's members.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from mbsfmu.equations.rotation import Array
from mbsfmu.formulations.binary_tree import Indices
from mbsfmu.kernels import kernel_of_members

SINGULAR = 1e-10
"""Where e is below this share of what it is on free bodies, the equation depends on those before it."""

WIDE = 8
"""Handles beyond which the steps of blocks are kernels."""

AT_ONCE = 2
"""Links whose products are taken from a block by one call there."""

Found = tuple[list[Array], list[Array], Array, list[Array], list[Array]]
"""Wrenches, responses, weights, and effects of earlier links and of the link itself; see `Eliminated`."""


def reciprocal(value: Array) -> Array:
    """Return 1/x as a quotient that tracing leaves alone: it turns products with 1/x into as many divisions by x."""
    return value / (value * value)


def eliminate(
    parts: list[Array],
    wrenches: list[list[Array]],
    active: list[Array | None],
    softness: Array | None,
    *,
    ends: tuple[tuple[int | None, ...], ...],
    closes_loop: tuple[bool, ...],
    kept: tuple[int, ...],
) -> tuple[Array, list[Found]]:
    """Eliminate equations from ξ; return the ξ of the handles that are left, and what was eliminated.

    Dᵀ ξ D is factored, with a row of blocks for each link, and ξ D of the handles that are left as further rows below
    it. In between, ξ itself is not needed.

    Parameters
    ----------
    parts
        ξ of one or two parts of each member, each of shape (members, 6 h, 6 h).
    wrenches
        For each link what unit multipliers exert at its ends, each of shape (members, equations, 6).
    active
        For each link ones where equations count and zeros elsewhere, shape (members, equations); None where all do.
    softness
        1/α in 1/kg of each member, None where constraints are rigid.
    ends
        For each link the handles that it acts on; None for the ground.
    closes_loop
        For each link whether its equations may depend on those before.
    kept
        The handles that are left.
    """
    chosen = _eliminate if _is_wide(sum(part.shape[1] for part in parts)) else _eliminate_at_once
    return chosen(parts, wrenches, active, softness, ends=ends, closes_loop=closes_loop, kept=kept)


def gather(
    parts: list[Array],
    eliminated: list[Found],
    biases: list[Array],
    *,
    ends: tuple[tuple[int | None, ...], ...],
    kept: tuple[int, ...],
) -> tuple[Array, list[Array]]:
    """Return the ξ_0 of a group's members on the handles that are kept, and dᵀ ξ_0 + γ of what is eliminated.

    Parameters
    ----------
    parts
        ξ_0 of one or two parts of each member, each of shape (members, 6 h).
    eliminated, ends, kept
        As `eliminate` gave it, and what that was given.
    biases
        For each link γ, shape (members, equations).
    """
    chosen = _gather if _is_wide(sum(part.shape[1] for part in parts)) else _gather_at_once
    return chosen(parts, eliminated, biases, ends=ends, kept=kept)


def spread(
    outer: Array,
    eliminated: list[Found],
    rests: list[Array],
    *,
    ends: tuple[tuple[int | None, ...], ...],
    kept: tuple[int, ...],
    handles: int,
) -> tuple[Array, list[Array]]:
    """Return what acts on all handles of a group's members, shape (members, 6 h), and the multipliers of each link.

    Parameters
    ----------
    outer
        What acts on the handles that are kept, shape (members, 6 k).
    eliminated, ends, kept
        As `eliminate` gave it, and what that was given.
    rests
        As `gather` gave it.
    handles
        How many handles there are.
    """
    chosen = _spread if _is_wide(6 * handles) else _spread_at_once
    return chosen(outer, eliminated, rests, ends=ends, kept=kept, handles=handles)


def _is_wide(rows: int) -> bool:
    return rows > 6 * WIDE


def times(matrices: Array, vectors: Array) -> Array:
    """Return the product of each matrix with its vector, shapes (members, m, n) and (members, n)."""
    return (matrices @ vectors[:, :, np.newaxis])[:, :, 0]


# -- whole groups -----------------------------------------------------------------------------------------------------


def _eliminate(
    parts: list[Array],
    wrenches: list[list[Array]],
    active: list[Array | None],
    softness: Array | None,
    *,
    ends: tuple[tuple[int | None, ...], ...],
    closes_loop: tuple[bool, ...],
    kept: tuple[int, ...],
) -> tuple[Array, list[Found]]:
    blocks = _blocks(parts)
    acting = [
        {slot: each for slot, each in zip(slots, own, strict=True) if slot is not None}
        for slots, own in zip(ends, wrenches, strict=True)
    ]
    links = len(acting)
    felt: list[list[Array]] = [[] for _ in range(links + len(kept))]  # by row, of each link before
    effects: list[list[Array]] = [[] for _ in felt]  # and this times 1/e
    weights: list[Array] = []
    within: list[list[Array]] = []
    for number, own in enumerate(acting):
        turned = [_turned(each) for each in own.values()]
        on_free = {
            slot: _plus(None, [blocks[slot, end] for end in own], turned)
            for slot in sorted(set(kept).union(*acting[number:]))
        }
        column = [_plus(None, list(each.values()), [on_free[slot] for slot in each]) for each in acting[number:]]
        column += [on_free[slot] for slot in kept]
        before = [_turned(each) for each in effects[number]]
        left = [_minus(each, row, before) for each, row in zip(column, felt[number:], strict=True)]
        weight, among = _pivots(left[0], column[0] if closes_loop[number] else None, active[number], softness)
        for row, value in enumerate(left[1:], number + 1):
            one, other = _apart(value, among, weight)
            felt[row].append(one)
            effects[row].append(other)
        weights.append(weight)
        within.append(among)
    found = [
        (list(own.values()), [row[number] for row in effects[links:]], weights[number], effects[number], within[number])
        for number, own in enumerate(acting)
    ]
    return _without(blocks, kept, effects[links:], felt[links:]), found


def _gather(
    parts: list[Array],
    eliminated: list[Found],
    biases: list[Array],
    *,
    ends: tuple[tuple[int | None, ...], ...],
    kept: tuple[int, ...],
) -> tuple[Array, list[Array]]:
    vectors = [each for part in parts for each in _by_handle(part)]
    rests: list[Array] = []
    for (wrenches, _, weight, effects, within), bias, slots in zip(eliminated, biases, ends, strict=True):
        on_ends = [vectors[slot] for slot in slots if slot is not None]
        value = _plus(bias[:, np.newaxis], on_ends, [_turned(each) for each in wrenches])
        value = _minus(value, rests, [_turned(each) for each in effects])
        rests.append(_apart(value, within, weight)[0])
    left = [
        _minus(vectors[slot], rests, [_turned(each[1][order]) for each in eliminated])
        for order, slot in enumerate(kept)
    ]
    return _in_a_row(left, len(parts[0])), [rest[:, 0] for rest in rests]


def _spread(
    outer: Array,
    eliminated: list[Found],
    rests: list[Array],
    *,
    ends: tuple[tuple[int | None, ...], ...],
    kept: tuple[int, ...],
    handles: int,
) -> tuple[Array, list[Array]]:
    on_kept = _by_handle(outer)
    found: list[Array] = []  # from the last to the first
    for number, ((_, responses, weight, _, within), rest) in reversed(
        list(enumerate(zip(eliminated, rests, strict=True)))
    ):
        later = [effects[number] for _, _, _, effects, _ in reversed(eliminated[number + 1 :])]
        value = _minus(_opposing(weight, rest), [*on_kept, *found], [*responses, *later])
        found.append(_back(value, within))
    found.reverse()
    acting = [np.zeros((len(outer), 1, 6))] * handles
    for slot, each in zip(kept, on_kept, strict=True):
        acting[slot] = each
    for (wrenches, *_), multipliers, slots in zip(eliminated, found, ends, strict=True):
        there = [slot for slot in slots if slot is not None]
        for slot, wrench in zip(there, wrenches, strict=True):
            acting[slot] = _plus(acting[slot], [multipliers], [wrench])
    return _in_a_row(acting, len(outer)), [each[:, 0] for each in found]


_eliminate_at_once = kernel_of_members(_eliminate)
_gather_at_once = kernel_of_members(_gather)
_spread_at_once = kernel_of_members(_spread)


# -- blocks -----------------------------------------------------------------------------------------------------------


def _blocks(parts: list[Array]) -> dict[tuple[int, int], Array]:
    """Return ξ of each pair of handles, zero between two parts, each of shape (members, 6, 6)."""
    owner = [(part, slot) for part in parts for slot in range(part.shape[1] // 6)]
    nothing = np.zeros((len(parts[0]), 6, 6))
    return {
        (row, column): part[:, 6 * one : 6 * one + 6, 6 * two : 6 * two + 6] if part is other else nothing
        for row, (part, one) in enumerate(owner)
        for column, (other, two) in enumerate(owner)
    }


def _by_handle(vectors: Array) -> list[Array]:
    """Return the rows of each handle as a row of blocks, each of shape (members, 1, 6)."""
    return [vectors[:, np.newaxis, first : first + 6] for first in range(0, vectors.shape[1], 6)]


def _in_a_row(blocks: list[Array], members: int) -> Array:
    """Return blocks of shape (members, 1, 6) beside each other, shape (members, 6 h)."""
    return np.concatenate([np.zeros((members, 1, 0)), *blocks], axis=2)[:, 0]


def _turned(block: Array) -> Array:
    return np.swapaxes(block, 1, 2)


def _plus(value: Array | None, ones: list[Array], others: list[Array]) -> Array:
    """Return a block, where there is one, and products of blocks."""
    for first in range(0, len(ones), AT_ONCE):
        value = _with_products(value, ones[first : first + AT_ONCE], others[first : first + AT_ONCE])
    assert value is not None
    return value


def _minus(value: Array, ones: list[Array], others: list[Array]) -> Array:
    """Return a block without products of blocks."""
    for first in range(0, len(ones), AT_ONCE):
        value = _without_products(value, ones[first : first + AT_ONCE], others[first : first + AT_ONCE])
    return value


def _without(
    blocks: dict[tuple[int, int], Array], kept: tuple[int, ...], effects: list[list[Array]], felt: list[list[Array]]
) -> Array:
    """Return what is left of ξ, shape (members, 6 k, 6 k), from blocks of its lower triangle."""
    members = len(blocks[0, 0])
    left: dict[tuple[int, int], Array] = {}
    for row, slot in enumerate(kept):
        for column, other in enumerate(kept[: row + 1]):
            value = blocks[slot, other]
            for first in range(0, len(effects[row]), AT_ONCE):
                chosen = slice(first, first + AT_ONCE)
                value = _lowered(value, effects[row][chosen], felt[column][chosen], symmetric=row == column)
            left[row, column] = value
            left[column, row] = _turned(value)
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
def _lowered(value: Array, effects: list[Array], felt: list[Array], *, symmetric: bool) -> Array:
    """Return ξ − ξ d dᵀ ξ / e of a block; where it is symmetric, of its lower triangle."""
    if not symmetric:
        return _without_products(value, effects, [_turned(each) for each in felt])
    one, other, mirrored = _triangle(value.shape[1])
    lower = value[:, one, other]
    for effect, each in zip(effects, felt, strict=True):
        lower = lower - (effect[:, one] * each[:, other]).sum(axis=2)
    return lower[:, mirrored]


@cache
def _triangle(size: int) -> tuple[Indices, Indices, Indices]:
    """Return rows and columns of a lower triangle, and where in it each element of a symmetric matrix stands."""
    one, other = np.tril_indices(size)
    mirrored = np.empty((size, size), dtype=np.intp)
    mirrored[one, other] = mirrored[other, one] = np.arange(len(one))
    return one, other, mirrored


@kernel_of_members
def _pivots(
    left: Array, on_free: Array | None, counting: Array | None, softness: Array | None
) -> tuple[Array, list[Array]]:
    """Return 1/e of each equation of a link, and how each but the first feels those before it.

    Parameters
    ----------
    left
        Dᵀ ξ D of the link as earlier links leave it, shape (members, equations, equations).
    on_free
        The same on free parts where equations may depend on others, else None.
    counting, softness
        As for `eliminate`.
    """
    weights: list[Array] = []
    within: list[Array] = []
    for row in range(left.shape[1]):
        felt: list[Array] = []
        own: list[Array] = []
        for column, weight in enumerate(weights):
            value = left[:, row, column]
            for before in range(column):
                value = value - felt[before] * within[column - 1][:, before]
            felt.append(value)
            own.append(value * weight)
        pivot = left[:, row, row]
        for one, other in zip(felt, own, strict=True):
            pivot = pivot - one * other
        if softness is not None:
            weight = reciprocal(pivot + softness)
        elif on_free is not None:
            # A generalized inverse without a branch: 1/e, and next to nothing where e is round-off.
            small = SINGULAR * on_free[:, row, row]
            weight = pivot / (pivot * pivot + small * small)
        else:
            weight = reciprocal(pivot)
        weights.append(weight if counting is None else weight * counting[:, row])
        if own:
            within.append(np.stack(own, axis=1))
    return np.stack(weights, axis=1), within


@kernel_of_members
def _apart(value: Array, within: list[Array], weight: Array) -> tuple[Array, Array]:
    """Return what a row feels of each equation of a link apart from those before it there, and this times 1/e.

    Parameters
    ----------
    value
        What it feels of all of them, shape (members, rows, equations).
    within, weight
        As `_pivots` gives them.
    """
    columns = [value[:, :, 0]]
    for equation, own in enumerate(within, 1):
        column = value[:, :, equation]
        for before, each in enumerate(columns):
            column = column - each * own[:, before, np.newaxis]
        columns.append(column)
    felt = np.stack(columns, axis=2)
    return felt, felt * weight[:, np.newaxis]


@kernel_of_members
def _opposing(weight: Array, rest: Array) -> Array:
    """Return −rest / e of a link's equations, shape (members, 1, equations)."""
    return (-weight * rest)[:, np.newaxis]


@kernel_of_members
def _back(value: Array, within: list[Array]) -> Array:
    """Return the multipliers of a link, given them without what those behind each add to it."""
    found = [value[:, 0, -1]]
    for equation in reversed(range(len(within))):
        multiplier = value[:, 0, equation]
        for own, later in zip(reversed(within), found, strict=False):
            multiplier = multiplier - own[:, equation] * later
        found.append(multiplier)
    return np.stack(found[::-1], axis=1)[:, np.newaxis]
