"""Sections of a tree of bodies for parallel threads.

A tree is cut at few bodies into pieces of equal weight. Each piece is attached to one outside body, and other pieces
are attached to at most one of its bodies [Gazit1988]; in any order of assembly it has at most two handles. Pieces are
distributed over as many sections as threads. Along a chain joints are eliminated from both ends towards the middle,
where pieces have one handle and cost least; pieces in between have two.

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
"""Label of sequential work outside all sections."""
_BETWEEN = 1.6
"""Weight of a body in a piece with two handles, relative to one."""
_FINER = (1, 2, 4, 8)
"""Largest number of pieces per section; branching trees need more than one for equal weights."""
_JOINING = 3.0
"""Weight of the assembly of two pieces."""
_KEPT = 0.125
"""Fraction of a piece's weight up to which small branches stay with their parent."""
_AHEAD = 3.0
"""Largest ratio of preceding bodies to own bodies for which a piece waits for its parent's pose; relative placement
takes more operations.
"""


@dataclass(frozen=True)
class Piece:
    """A connected set of bodies.

    Attributes
    ----------
    bodies
        Their indices, parents first.
    parent
        Parent of the first body; −1 for the ground.
    end
        The body to which other pieces are attached; None without such pieces.
    section
        Section of the piece.
    apart
        Whether the poses of its bodies are first computed relative to `parent`, in parallel to other pieces.
    """

    bodies: tuple[int, ...]
    parent: int
    end: int | None
    section: int
    apart: bool


def sections(parents: Sequence[int], count: int) -> tuple[Piece, ...]:
    """Return the pieces of a tree, those nearer to the ground first.

    Parameters
    ----------
    parents
        Parent of each body, with a lower index; −1 for the ground.
    count
        Number of sections.
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
    """Return the sum over each body and its descendants."""
    total = list(values)
    for body in reversed(range(len(total))):
        if parents[body] != GROUND:
            total[parents[body]] += total[body]
    return total


def _weights(parents: Sequence[int], sizes: Sequence[float], count: int) -> list[float]:
    """Return the weight of each body: less at the ends, where a piece has one handle."""
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
    """Return for each body the parent of its piece; −2 if the body belongs to its parent's piece."""
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
"""Mark of a body that belongs to its parent's piece."""


def _pieces(parents: Sequence[int], cut: Sequence[int], count: int) -> tuple[list[Piece], float]:
    """Return the pieces with their sections, and the weight of the heaviest section plus assembly."""
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
    before = [0.0] * len(bodies)  # bodies between a piece and the ground, in sequence
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
