"""Sections of a tree of bodies, which threads can take at the same time.

A tree is cut at few bodies into pieces of equal weight, each of which hangs on one body outside, and has at most one
body that others hang on [Gazit1988]: however the rest is joined, a piece has two handles at most. Pieces make up as
many sections as there are threads. Along a chain joints are eliminated from both ends towards the middle, where pieces
have one handle and cost least; pieces in between have two.

[Gazit1988] H. Gazit, G. L. Miller, S.-H. Teng, Optimal tree contraction in the EREW model, Concurrent Computations
(1988).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

GROUND = -1
JOINED = -1
"""Label of what is found one piece after the other, in no section."""
_BETWEEN = 1.6
"""Weight of a body in a piece with two handles; that of others is one."""
_FINER = (1, 2, 4, 8)
"""How many pieces there may be for each section; where a tree branches, few are seldom equal."""
_JOINING = 3.0
"""Weight of joining two pieces."""
_KEPT = 0.125
"""Share of the weight of a piece up to which small branches stay with the body that they hang on."""
_AHEAD = 3.0
"""A piece waits for where the one that it hangs on is, if no more bodies come before than so many times its own: to be
placed relative to that one at first takes more operations."""


@dataclass(frozen=True)
class Piece:
    """Bodies that hang together.

    Attributes
    ----------
    bodies
        Their indices, parents first.
    parent
        The body that the first of them hangs on; −1 for the ground.
    end
        The body that other pieces hang on; None where none do.
    section
        Which section it belongs to.
    apart
        Whether where its bodies are is found relative to `parent` first, at the same time as that of other pieces.
    """

    bodies: tuple[int, ...]
    parent: int
    end: int | None
    section: int
    apart: bool


def sections(parents: Sequence[int], count: int) -> tuple[Piece, ...]:
    """Cut a tree into pieces, those nearer to the ground first.

    Parameters
    ----------
    parents
        By body the one that it hangs on, which comes before it; −1 for the ground.
    count
        How many sections there are.
    """
    return _sections(tuple(parents), count)


@lru_cache(maxsize=64)
def _sections(parents: tuple[int, ...], count: int) -> tuple[Piece, ...]:
    if count == 1:
        return (Piece(tuple(range(len(parents))), GROUND, None, 0, apart=False),)
    sizes = _summed(parents, [1.0] * len(parents))
    weights = _weights(parents, sizes, count)
    below = _summed(parents, weights)
    whole = sum(weights)
    found = [_pieces(parents, _cuts(parents, below, whole / (count * finer)), count) for finer in _FINER]
    return tuple(min(found, key=lambda each: each[1])[0])


def _summed(parents: Sequence[int], values: Sequence[float]) -> list[float]:
    """Return the sum of what each body and all behind it have."""
    total = list(values)
    for body in reversed(range(len(total))):
        if parents[body] != GROUND:
            total[parents[body]] += total[body]
    return total


def _weights(parents: Sequence[int], sizes: Sequence[float], count: int) -> list[float]:
    """Return the weight of each body: at the ends, where a piece has one handle, less than between them."""
    bodies = len(parents)
    whole = list(sizes)
    for body, parent in enumerate(parents):
        if parent != GROUND:
            whole[body] = whole[parent]

    def weights(piece: float) -> list[float]:
        ends = (size <= piece or of - size < piece for size, of in zip(sizes, whole, strict=True))
        return [1.0 if end else _BETWEEN for end in ends]

    least, most = 1.0, float(bodies)
    while most - least > 0.5:
        middle = 0.5 * (least + most)
        if sum(weights(middle)) > count * middle:
            least = middle
        else:
            most = middle
    return weights(most)


def _cuts(parents: Sequence[int], below: Sequence[float], most: float) -> list[int]:
    """Return for each body the one that its piece begins behind, or its piece's of the parent: −2 where it stays."""
    children: list[list[int]] = [[] for _ in parents]
    for body, parent in enumerate(parents):
        if parent != GROUND:
            children[parent].append(body)
    counts = [math.ceil(each / most * (1.0 - 1e-12)) for each in below]
    cut = [_STAYS] * len(parents)
    for body, own in enumerate(children):
        if own and counts[body] > max(counts[each] for each in own):
            kept = 0.0
            for child in sorted(own, key=lambda each: below[each]):
                kept += below[child]
                if kept > _KEPT * most:
                    cut[child] = body
    for body, parent in enumerate(parents):
        if parent == GROUND:
            cut[body] = GROUND
    return cut


_STAYS = -2
"""Instead of a body that a piece begins behind: the body belongs to the piece of its parent."""


def _pieces(parents: Sequence[int], cut: Sequence[int], count: int) -> tuple[list[Piece], float]:
    """Return pieces shared by sections, and how much the heaviest section and joining the pieces weigh."""
    bodies: list[list[int]] = []
    own: list[int] = []
    for body, behind in enumerate(cut):
        if behind == _STAYS:
            own.append(own[parents[body]])
            bodies[own[body]].append(body)
        else:
            own.append(len(bodies))
            bodies.append([body])
    hung = [parents[each[0]] for each in bodies]
    ends: list[int | None] = [None] * len(bodies)
    for parent in hung:
        if parent != GROUND:
            ends[own[parent]] = parent
    weights = [
        len(each) * (1.0 if parent == GROUND or end is None else _BETWEEN)
        for each, parent, end in zip(bodies, hung, ends, strict=True)
    ]
    loads = [0.0] * count
    section = [0] * len(bodies)
    for piece in sorted(range(len(bodies)), key=lambda each: -weights[each]):
        section[piece] = min(range(count), key=loads.__getitem__)
        loads[section[piece]] += weights[piece]
    before = [0.0] * len(bodies)  # bodies between a piece and the ground, one after the other
    pieces = []
    for piece, (each, parent) in enumerate(zip(bodies, hung, strict=True)):
        apart = False
        if parent != GROUND:
            inner = own[parent]
            before[piece] = before[inner] + (0 if pieces[inner].apart else len(bodies[inner]))
            apart = before[piece] > _AHEAD * len(each)
        pieces.append(Piece(tuple(each), parent, ends[piece], section[piece], apart=apart))
    joined = _JOINING * math.log2(1 + sum(parent != GROUND for parent in hung))
    return pieces, max(loads) + joined
