"""Sequential elimination of the constraint equations of a tree's joints, from the tips to the ground.

Each subassembly then has one handle, the parent body of its next joint inwards, whereas one in the middle of a chain
has two: an elimination takes a third of the operations, and stores a third of the numbers. The equations are those of
`level_assembly.py`, which constraints with a softness need. Rigid joints take less as `articulated_bodies.py`, but that
goes from the tips to the ground alone: for parallel threads the tree is cut into sections, whose joints are eliminated
at the same time, of the section on the ground outwards, of those with tips inwards. The remaining subassemblies are
assembled in pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from mbsfmu.divide_and_conquer.binary_tree import GROUND, Indices
from mbsfmu.divide_and_conquer.corrections import in_a_row, rebuilt
from mbsfmu.divide_and_conquer.elimination import Found, eliminate, gather, spread, times
from mbsfmu.divide_and_conquer.level_assembly import TAKEN_AWAY, LevelEquations
from mbsfmu.equations.sections import JOINED, Piece
from mbsfmu.modelling.fields import Array
from mbsfmu.tracing.kernels import in_section


@dataclass(frozen=True)
class Hung:
    """A body with its joint to the parent.

    Attributes
    ----------
    parent
        The parent body, with a lower index; −1 for the ground.
    rows
        Indices of the joint's constraint equations.
    excess
        Indices of the equations that take an excess inertia from the body; after those of all joints.
    """

    parent: int
    rows: tuple[int, ...]
    excess: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Step:
    """Elimination of the joint of a body to its parent, and of excess inertias of bodies whose last joint it is.

    Attributes
    ----------
    body
        The body.
    section
        Its section.
    parts
        Indices of the assembled parts: bodies, then after all bodies the results of steps in their order.
    widths
        Numbers of their handles.
    ends
        The handles of the joint, None for the ground, unless it has no equations; then that of each excess inertia.
    rows
        Indices of the equations of each, shape (1, equations).
    excess
        For each, whether it is an excess inertia.
    kept
        The remaining handles.
    """

    body: int
    section: int
    parts: tuple[int, ...]
    widths: tuple[int, ...]
    ends: tuple[tuple[int | None, ...], ...]
    rows: tuple[Indices, ...]
    excess: tuple[bool, ...]
    kept: tuple[int, ...]


class _Joining:
    """Subassemblies during the assembly.

    Parameters
    ----------
    bodies
        As for `SequentialAssembly`.

    Attributes
    ----------
    steps
        Eliminations so far.
    """

    def __init__(self, bodies: Sequence[Hung]) -> None:
        self._bodies = bodies
        self.steps: list[_Step] = []
        self._of = list(range(len(bodies)))  # by body the next larger subassembly, or itself
        self._handles: list[tuple[int, ...]] = [(body,) for body in range(len(bodies))]
        self._waiting = [1] * len(bodies)  # joints
        for each in bodies:
            if each.parent != GROUND:
                self._waiting[each.parent] += 1

    def subassembly(self, body: int) -> int:
        """Return the subassembly of a body."""
        found = body
        while self._of[found] != found:
            self._of[found] = found = self._of[self._of[found]]
        return found

    def parts(self, body: int) -> tuple[int, ...]:
        """Return the subassemblies that the joint of a body connects."""
        parent = self._bodies[body].parent
        return tuple(self.subassembly(each) for each in (parent, body) if each != GROUND)

    def left(self, body: int) -> int:
        """Return the number of remaining handles after a body is assembled with its parent."""
        handles = [each for part in self.parts(body) for each in self._handles[part]]
        ends = body, self._bodies[body].parent
        return sum(self._waiting[each] > (each in ends) for each in handles)

    def join(self, body: int, section: int) -> None:
        """Assemble a body with its parent."""
        parent, parts = self._bodies[body].parent, self.parts(body)
        handles = [each for part in parts for each in self._handles[part]]
        ends = None if parent == GROUND else handles.index(parent), handles.index(body)
        for each in (body, parent):
            if each != GROUND:
                self._waiting[each] -= 1
        kept = tuple(slot for slot, each in enumerate(handles) if self._waiting[each])
        widths = tuple(len(self._handles[part]) for part in parts)
        links: list[tuple[tuple[int | None, ...], tuple[int, ...], bool]] = []
        if rows := self._bodies[body].rows:
            links.append((ends, rows, False))
        for slot, each in enumerate(handles):
            if slot not in kept and (own := self._bodies[each].excess):
                links.append(((slot,), own, True))
        slots, of_links, excess = zip(*links, strict=True) if links else ((), (), ())
        indices = tuple(np.array([own]) for own in of_links)
        self.steps.append(_Step(body, section, parts, widths, slots, indices, excess, kept))
        for part in parts:
            self._of[part] = len(self._of)
        self._of.append(len(self._of))
        self._handles.append(tuple(handles[slot] for slot in kept))


def _steps(bodies: Sequence[Hung], pieces: Sequence[Piece]) -> list[_Step]:
    """Return the eliminations in their order."""
    joining = _Joining(bodies)
    for piece in pieces:
        for body in _inside(bodies, piece):
            joining.join(body, piece.section)
    between = [piece.bodies[0] for piece in reversed(pieces) if piece.parent != GROUND]
    label = JOINED
    while between:
        taken: set[int] = set()
        later = []
        most = max(2, min(joining.left(body) for body in between))
        for body in between:
            parts = joining.parts(body)
            if taken.isdisjoint(parts) and joining.left(body) <= most:
                label -= 1
                joining.join(body, label)
                taken.update((*parts, joining.subassembly(body)))
            else:
                later.append(body)
        between = later
    return joining.steps


def _inside(bodies: Sequence[Hung], piece: Piece) -> Iterator[int]:
    """Return the joints in a piece, by their outer bodies: branches first, then the main path."""
    path: list[int] = []
    if piece.end is not None:
        path.append(piece.end)
        while path[-1] != piece.bodies[0]:
            path.append(bodies[path[-1]].parent)
    along = set(path)
    yield from (body for body in reversed(piece.bodies) if body not in along and bodies[body].parent != piece.parent)
    if piece.parent != GROUND:
        yield from path[:-1]
        return
    yield from path[::-1] or (body for body in reversed(piece.bodies) if bodies[body].parent == GROUND)


class SequentialAssembly:
    """Sequential assembly of matrices, with the interface of `DivideAndConquer`.

    Parameters
    ----------
    bodies
        All bodies, parents first.
    pieces
        The sections of the tree.
    """

    def __init__(self, bodies: Sequence[Hung], pieces: Sequence[Piece]) -> None:
        self._bodies = bodies
        self._steps = _steps(bodies, pieces)

    def factorize(self, inverse: Array, equations: LevelEquations, softness: Array | None = None) -> SequentialFactors:
        """Eliminate all equations; arguments as for `DivideAndConquer`."""
        soft = None if softness is None else np.stack([softness])
        left = [inverse[body : body + 1] for body in range(len(self._bodies))]
        history: list[list[Found]] = []
        for step in self._steps:
            with in_section(inverse, step.section):
                joined, found = eliminate(
                    [left[part] for part in step.parts],
                    [
                        [equations.wrenches[end][rows] for end in range(len(ends))]
                        for ends, rows in zip(step.ends, step.rows, strict=True)
                    ],
                    [None] * len(step.rows),
                    [TAKEN_AWAY * np.ones(1) if excess else soft for excess in step.excess],
                    ends=step.ends,
                    closes_loop=(False,) * len(step.rows),
                    kept=step.kept,
                )
            left.append(joined)
            history.append(found)
        return SequentialFactors(self._bodies, self._steps, inverse, history)


class SequentialFactors:
    """Factors that solve for all multipliers and all bodies, as `LevelFactors`.

    Parameters
    ----------
    bodies, steps, inverse, history
        The bodies, the steps of the assembly, inverse inertias, and the factors of each step.
    """

    def __init__(
        self, bodies: Sequence[Hung], steps: Sequence[_Step], inverse: Array, history: list[list[Found]]
    ) -> None:
        self._bodies = bodies
        self._steps = steps
        self._inverse = inverse
        self._history = history

    def numbers(self) -> Array:
        """Return all numbers of the factors as one vector, shape (numbers,)."""
        return np.concatenate(list(in_a_row([self._inverse, self._history])))

    def with_numbers(self, numbers: Array) -> SequentialFactors:
        """Return factors with other numbers, in the order of `numbers`."""
        return SequentialFactors(self._bodies, self._steps, *rebuilt([self._inverse, self._history], numbers))

    def solve(self, free: Array, bias: Array) -> tuple[Array, Array]:
        """Return V of each body, shape (bodies, 6), and the multipliers, shape (rows,); as `LevelFactors.solve`."""
        pools = [free[body : body + 1] for body in range(len(self._bodies))]
        rests: list[list[Array]] = []
        for step, found in zip(self._steps, self._history, strict=True):
            parts, biases = [pools[part] for part in step.parts], [bias[rows] for rows in step.rows]
            with in_section(free, step.section):
                joined, left = gather(parts, found, biases, ends=step.ends, kept=step.kept)
            pools.append(joined)
            rests.append(left)
        forces: list[Array] = [np.zeros((1, 0))] * len(pools)
        multipliers: list[tuple[int, Array]] = []
        for number, step in reversed(list(enumerate(self._steps))):
            outer = forces[len(self._bodies) + number]
            with in_section(free, step.section):
                acting, found = spread(
                    outer,
                    self._history[number],
                    rests[number],
                    ends=step.ends,
                    kept=step.kept,
                    handles=sum(step.widths),
                )
            begin = 0
            for part, width in zip(step.parts, step.widths, strict=True):
                forces[part] = acting[:, begin : begin + 6 * width]
                begin += 6 * width
            pairs = zip(step.rows, found, strict=True)
            multipliers += [(int(rows[0, 0]), each[0]) for rows, each in pairs]
        moved = free + times(self._inverse, np.concatenate(forces[: len(self._bodies)]))
        return moved, np.concatenate([np.zeros(0), *(each for _, each in sorted(multipliers, key=itemgetter(0)))])
