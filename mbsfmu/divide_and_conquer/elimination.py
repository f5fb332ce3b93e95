"""Elimination of a group's constraint equations, and what acts on its handles then: the kernels of divide and conquer.

All of it goes by blocks: the six rows of a handle, and of a link as many as it has equations. Where a group has few
handles it is one kernel, in which the blocks are unrolled code; where it has many, each step of a block is a call of a
small kernel, so that a wide group has more calls, and no longer code. First axes of all arrays are the group's members.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

from mbsfmu.divide_and_conquer.elimination_blocks import (
    apart,
    back,
    blocks_of,
    by_handle,
    minus,
    opposing,
    pivots,
    plus,
    side_by_side,
    turned,
    without,
)
from mbsfmu.modelling.fields import Array
from mbsfmu.tracing.kernels import kernel_of_members

WIDE = 8
"""Handles beyond which the steps of blocks are kernels."""

Found = tuple[list[Array], list[Array], Array, list[Array], list[Array]]
"""Wrenches, responses, weights, and effects of earlier links and of the link itself; see `Eliminated`."""


_Step = TypeVar("_Step", bound=Callable[..., Any])


def _at_once_where_narrow(handles: Callable[..., int]) -> Callable[[_Step], _Step]:
    """Make a function of a group one kernel where it has few handles, which are counted by its arguments."""

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
        weight, among = pivots(left[0], column[0] if closes_loop[number] else None, active[number], softness)
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
