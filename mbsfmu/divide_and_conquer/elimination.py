"""Elimination of a group's constraint equations, and solution for its handles: kernels of divide and conquer.

All operations are by blocks: the six rows of a handle, and the equations of a link. A group with few handles is one
kernel of unrolled blocks. In a group with many handles each block operation is a call of a small kernel, so that a wide
group has more calls, but not more code. The first axis of all arrays is the group's members.
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
