"""Elimination of a group's constraint equations, and what acts on its handles then: the kernels of divide and conquer.

First axes of all arrays are the members of the group.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from mbsfmu.equations.rotation import Array
from mbsfmu.formulations.binary_tree import Indices
from mbsfmu.kernels import kernel_of_members

SINGULAR = 1e-10
"""Where e is below this share of what it is on free bodies, the equation depends on those before it."""

Found = tuple[Array, Array, Array, list[Array]]
"""Wrench, response, weight and effects of an eliminated equation; see `Eliminated`."""


def reciprocal(value: Array) -> Array:
    """Return 1/x as a quotient that tracing leaves alone: it turns products with 1/x into as many divisions by x."""
    return value / (value * value)


@kernel_of_members
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

    What an equation does to ξ is seen where the next ones act: in between, ξ itself is not needed.

    Parameters
    ----------
    parts
        ξ of one or two parts of each member, each of shape (members, 6 h, 6 h).
    wrenches
        For each equation what acts at its ends, each of shape (members, 6).
    active
        For each equation ones where it counts and zeros elsewhere, shape (members,); None where it always does.
    softness
        1/α in 1/kg of each member, None where constraints are rigid.
    ends
        For each equation the handles that it acts on; None for the ground.
    closes_loop
        For each equation whether it may depend on those before.
    kept
        The handles that are left.
    """
    free = _side_by_side(parts)
    slots = _slots(kept)
    eliminated: list[Found] = []
    responses: list[Array] = []
    left = free[:, slots][:, :, slots]
    for acting, places, counting, loop in zip(wrenches, ends, active, closes_loop, strict=True):
        wrench = _wrench(acting, places, *free.shape[:2])
        response = of_free = times(free, wrench)
        effects: list[Array] = []
        for one, before in zip(eliminated, responses, strict=True):
            felt = (before * wrench).sum(axis=1)
            effects.append(one[2] * felt)
            response = response - before * effects[-1][:, np.newaxis]
        pivot = (wrench * response).sum(axis=1)
        if softness is not None:
            weight = reciprocal(pivot + softness)
        elif loop:
            # A generalized inverse without a branch: 1/e, and next to nothing where e is round-off.
            small = SINGULAR * (wrench * of_free).sum(axis=1)
            weight = pivot / (pivot * pivot + small * small)
        else:
            weight = reciprocal(pivot)
        if counting is not None:
            weight = weight * counting
        responses.append(response)
        eliminated.append((wrench, response[:, slots], weight, effects))
        left = _without(left, response[:, slots], weight)
    return left, eliminated


def _wrench(acting: list[Array], ends: tuple[int | None, ...], members: int, size: int) -> Array:
    """Return d of one equation of each member on all handles, shape (members, size); nothing acts on the ground."""
    wrench = np.zeros((members, size))
    for slot, each in zip(ends, acting, strict=True):
        if slot is not None:
            ahead, behind = np.zeros((members, 6 * slot)), np.zeros((members, size - 6 * slot - 6))
            wrench = wrench + np.concatenate([ahead, each, behind], axis=1)
    return wrench


def _without(matrix: Array, response: Array, weight: Array) -> Array:
    """Return ξ − ξ d dᵀ ξ / e."""
    scaled = response * weight[:, np.newaxis]
    one, other, mirrored = _triangle(matrix.shape[1])
    return (matrix[:, one, other] - scaled[:, one] * response[:, other])[:, mirrored]


@cache
def _triangle(size: int) -> tuple[Indices, Indices, Indices]:
    """Return rows and columns of a lower triangle, and where in it each element of a symmetric matrix stands."""
    one, other = np.tril_indices(size)
    mirrored = np.empty((size, size), dtype=np.intp)
    mirrored[one, other] = mirrored[other, one] = np.arange(len(one))
    return one, other, mirrored


@kernel_of_members
def gather(
    parts: list[Array], eliminated: list[Found], biases: list[Array], *, kept: tuple[int, ...]
) -> tuple[Array, list[Array]]:
    """Return the ξ_0 of a group's members on the handles that are kept, and dᵀ ξ_0 + γ of what is eliminated."""
    vector = np.concatenate(parts, axis=1)
    rests: list[Array] = []
    for (wrench, _, _, effects), bias in zip(eliminated, biases, strict=True):
        rest = (wrench * vector).sum(axis=1) + bias
        for effect, before in zip(effects, rests, strict=True):
            rest = rest - effect * before
        rests.append(rest)
    vector = vector[:, _slots(kept)]
    for (_, response, weight, _), rest in zip(eliminated, rests, strict=True):
        vector = vector - response * (weight * rest)[:, np.newaxis]
    return vector, rests


@kernel_of_members
def spread(
    outer: Array, eliminated: list[Found], rests: list[Array], *, kept: tuple[int, ...], handles: int
) -> tuple[Array, list[Array]]:
    """Return what acts on all handles of a group's members, and the multipliers, the last eliminated first."""
    found: list[Array] = []  # from the last to the first
    for order, ((_, response, weight, _), rest) in reversed(list(enumerate(zip(eliminated, rests, strict=True)))):
        multiplier = -weight * ((response * outer).sum(axis=1) + rest)
        for (_, _, _, effects), pushing in zip(reversed(eliminated), found, strict=False):
            multiplier = multiplier - effects[order] * pushing
        found.append(multiplier)
    acting = _on_handles(outer, kept, handles)
    for (wrench, _, _, _), multiplier in zip(eliminated, reversed(found), strict=True):
        acting = acting + wrench * multiplier[:, np.newaxis]
    return acting, found


def _on_handles(forces: Array, kept: tuple[int, ...], handles: int) -> Array:
    """Put forces on the kept handles among those on all, which are zero elsewhere."""
    columns = [np.zeros((len(forces), 6))] * handles
    for index, slot in enumerate(kept):
        columns[slot] = forces[:, 6 * index : 6 * index + 6]
    return np.concatenate(columns, axis=1)


def _side_by_side(parts: list[Array]) -> Array:
    """Put the parts of a group's members side by side."""
    if len(parts) == 1:
        return parts[0]
    one, other = parts
    corner = np.zeros((one.shape[0], one.shape[1], other.shape[1]))
    upper = np.concatenate([one, corner], axis=2)
    lower = np.concatenate([np.swapaxes(corner, 1, 2), other], axis=2)
    return np.concatenate([upper, lower], axis=1)


def _slots(kept: tuple[int, ...]) -> list[int]:
    return [6 * slot + axis for slot in kept for axis in range(6)]


def times(matrices: Array, vectors: Array) -> Array:
    """Return the product of each matrix with its vector, shapes (members, m, n) and (members, n)."""
    return (matrices @ vectors[:, :, np.newaxis])[:, :, 0]
