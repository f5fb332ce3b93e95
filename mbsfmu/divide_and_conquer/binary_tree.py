"""Binary tree of the divide-and-conquer assembly: the plan of its levels.

A subassembly has one handle for each of its bodies with a joint to the outside. All joints of a body share one handle,
so that bodies with more than two joints need no special treatment. On each level, neighbours are assembled in pairs,
from the leaves inwards; a chain of n bodies takes ⌈log₂ n⌉ levels. A loop-closing joint is eliminated as soon as both
its bodies are in one subassembly. Joints to the ground come last. If all constraints are soft, so that none is
singular, they come first, which leaves fewer handles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

GROUND = -1

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Link:
    """A joint, or another constraint, in the assembly.

    Attributes
    ----------
    ends
        Indices of the bodies that it acts on, -1 for the ground; for a joint, parent and child.
    rows
        Indices of its constraint equations.
    excess
        Whether it takes an excess inertia from its only body, after all joints of that.
    """

    ends: tuple[int, ...]
    rows: tuple[int, ...]
    excess: bool = False


@dataclass(frozen=True)
class Elimination:
    """The constraint equations of one link, for all members of a group.

    Attributes
    ----------
    ends
        Handles of the assembled pair on which the link acts, in the order of its ends; None for the ground.
    rows
        Indices of the equations, shape (members, equations).
    closes_loop
        Whether the equations may depend on those eliminated earlier.
    excess
        As of the link.
    """

    ends: tuple[int | None, ...]
    rows: Indices
    closes_loop: bool
    excess: bool = False


@dataclass(frozen=True)
class SubassemblyBatch:
    """Subassemblies of equal structure, processed in one batch.

    Attributes
    ----------
    parts
        For one or two parts: number of handles, and positions of the members' parts among all with that number.
    eliminations
        The joints between the parts, and the loop-closing joints within them.
    kept
        The remaining handles, with joints to the outside.
    """

    parts: tuple[tuple[int, Indices], ...]
    eliminations: tuple[Elimination, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True)
class TreeLevel:
    """One level of the tree.

    Attributes
    ----------
    groups
        Groups of subassemblies to assemble.
    carried
        Subassemblies passed to the next level unchanged: positions by the number of handles.
    """

    groups: tuple[SubassemblyBatch, ...]
    carried: dict[int, Indices]


_Shape = tuple[tuple[int | None, ...], bool, bool]
"""Handles of an elimination, whether it closes a loop, and whether it takes an excess inertia."""


@dataclass(frozen=True)
class _Subassembly:
    """A subassembly: its bodies and remaining handles."""

    bodies: frozenset[int]
    handles: tuple[int, ...]
    depth: int
    position: int


class BinaryTree:
    """The plan of an assembly.

    Parameters
    ----------
    bodies
        Number of bodies.
    links
        All joints, those of the spanning tree first and outwards, then other constraints, then excess inertias.
    ground_first
        Whether the joints to the ground come before all others instead of after them.

    Attributes
    ----------
    levels
        From the leaves to the root; the last one, or the first, has the joints to the ground, if any.
    joined
        Number of levels on which subassemblies are assembled.
    """

    def __init__(self, bodies: int, links: Sequence[Link], *, ground_first: bool = False) -> None:
        self._links = links
        depths = _depths(bodies, links)
        self._waiting = {number for number, link in enumerate(links) if not link.excess}
        self._waiting_at: dict[int, set[int]] = {body: set() for body in range(GROUND, bodies)}
        for number in self._waiting:
            for body in links[number].ends:
                self._waiting_at[body].add(number)
        self._excess = {link.ends[0]: number for number, link in enumerate(links) if link.excess}
        live = [_Subassembly(frozenset({body}), (body,), depths[body], body) for body in range(bodies)]
        self.levels: list[TreeLevel] = []
        if ground_first and self._waiting_at[GROUND]:
            grounded = {body for number in self._waiting_at[GROUND] for body in links[number].ends}
            live = self._add_level(live, [(each, None) for each in live if not grounded.isdisjoint(each.bodies)])
        before = len(self.levels)
        while pairs := self._pairs(live):
            live = self._add_level(live, pairs)
        self.joined = len(self.levels) - before
        if self._waiting:
            self._add_level(live, [(each, None) for each in live if each.handles])

    def _add_level(
        self, live: list[_Subassembly], pairs: list[tuple[_Subassembly, _Subassembly | None]]
    ) -> list[_Subassembly]:
        level, after = self._level(live, pairs)
        self.levels.append(level)
        return after

    def _pairs(self, live: list[_Subassembly]) -> list[tuple[_Subassembly, _Subassembly | None]]:
        """Match neighbours in pairs, the outermost first; return no pair when none are left.

        Each is matched with the neighbour that leaves the fewest handles, then the fewest outside joints; of equal
        ones, with the innermost. If one of the two would leave fewer handles with another neighbour, both wait: loops
        are then assembled across their branches, not along them, which would carry many handles to the end.
        """
        left = self._left(live)
        fewest = {index: min(each.values(), default=(0, 0))[0] for index, each in left.items()}
        taken: set[int] = set()
        pairs: list[tuple[_Subassembly, _Subassembly | None]] = []
        for index in sorted(left, key=lambda each: -live[each].depth):
            free = [each for each in left[index] if each not in taken]
            if index in taken or not free:
                continue
            inner = min(free, key=lambda each: (left[index][each], live[each].depth))
            if left[index][inner][0] == fewest[index] == fewest[inner]:
                taken |= {index, inner}
                pairs.append((live[inner], live[index]))
        return pairs

    def _left(self, live: list[_Subassembly]) -> dict[int, dict[int, tuple[int, int]]]:
        """Return, by subassembly and neighbour, the numbers of remaining handles and outside joints of the pair."""
        owner = {body: index for index, each in enumerate(live) for body in each.bodies}
        between: dict[tuple[int, int], list[int]] = {}
        for number in sorted(self._waiting):
            if GROUND not in self._links[number].ends:
                owners = {owner[body]: None for body in self._links[number].ends}
                for pair in permutations(owners, 2):
                    between.setdefault(pair, []).append(number)
        leading = [sum(len(self._waiting_at[body]) for body in each.handles) for each in live]
        left: dict[int, dict[int, tuple[int, int]]] = {index: {} for index in range(len(live))}
        for (one, other), numbers in between.items():
            bodies = [
                body
                for number in numbers
                for body in set(self._links[number].ends)
                if {owner[end] for end in self._links[number].ends} == {one, other}
            ]
            done = sum(len(self._waiting_at[body]) == count for body, count in Counter(bodies).items())
            handles = len(live[one].handles) + len(live[other].handles) - done
            left[one][other] = handles, leading[one] + leading[other] - len(bodies)
        return left

    def _level(
        self, live: list[_Subassembly], pairs: list[tuple[_Subassembly, _Subassembly | None]]
    ) -> tuple[TreeLevel, list[_Subassembly]]:
        """Assemble pairs, group by group; return the level and the remaining subassemblies."""
        batches: dict[object, list[tuple[tuple[_Subassembly, ...], list[int]]]] = {}
        shapes: dict[object, tuple[list[_Shape], tuple[int, ...]]] = {}
        joined: set[int] = set()
        for one, other in pairs:
            parts = (one,) if other is None else (one, other)
            joined |= {id(part) for part in parts}
            numbers, shape, kept = self._join(parts, to_ground=other is None)
            signature = (
                tuple(len(part.handles) for part in parts),
                tuple((*each, len(self._links[number].rows)) for each, number in zip(shape, numbers, strict=True)),
                kept,
            )
            batches.setdefault(signature, []).append((parts, numbers))
            shapes[signature] = shape, kept
        after: list[_Subassembly] = []
        counts: dict[int, int] = {}

        def place(bodies: frozenset[int], handles: tuple[int, ...], depth: int) -> None:
            position = counts.get(len(handles), 0)
            counts[len(handles)] = position + 1
            after.append(_Subassembly(bodies, handles, depth, position))

        groups = []
        for signature, members in batches.items():
            shape, kept = shapes[signature]
            groups.append(self._group(members, shape, kept))
            for parts, _ in members:
                handles = [body for part in parts for body in part.handles]
                everything = frozenset().union(*(part.bodies for part in parts))
                place(everything, tuple(handles[slot] for slot in kept), min(part.depth for part in parts))
        carried: dict[int, list[int]] = {}
        for each in live:
            if id(each) not in joined:
                carried.setdefault(len(each.handles), []).append(each.position)
                place(each.bodies, each.handles, each.depth)
        return TreeLevel(tuple(groups), {count: _indices(positions) for count, positions in carried.items()}), after

    def _join(
        self, parts: tuple[_Subassembly, ...], *, to_ground: bool
    ) -> tuple[list[int], list[_Shape], tuple[int, ...]]:
        """Eliminate the joints inside the assembled parts; return them, their handles, and the remaining handles."""
        bodies = frozenset().union(*(part.bodies for part in parts)) | ({GROUND} if to_ground else set())
        handles = [body for part in parts for body in part.handles]
        near = set().union(*(self._waiting_at[body] for body in handles))
        numbers = [number for number in sorted(near) if bodies.issuperset(self._links[number].ends)]
        self._waiting -= set(numbers)
        for number in numbers:
            for body in self._links[number].ends:
                self._waiting_at[body].discard(number)
        kept = tuple(slot for slot, body in enumerate(handles) if self._waiting_at[body])
        left = (body for body in handles if not self._waiting_at[body])
        numbers += [self._excess.pop(body) for body in left if body in self._excess]
        shape: list[_Shape] = []
        for order, number in enumerate(numbers):
            link = self._links[number]
            slots = tuple(None if body == GROUND else handles.index(body) for body in link.ends)
            shape.append((slots, order > 0 and not link.excess, link.excess))
        return numbers, shape, kept

    def _group(
        self,
        members: list[tuple[tuple[_Subassembly, ...], list[int]]],
        shape: list[_Shape],
        kept: tuple[int, ...],
    ) -> SubassemblyBatch:
        first = members[0][0]
        parts = tuple(
            (len(first[side].handles), _indices([parts[side].position for parts, _ in members]))
            for side in range(len(first))
        )
        eliminations = tuple(
            Elimination(slots, np.array([self._links[numbers[order]].rows for _, numbers in members]), closes, excess)
            for order, (slots, closes, excess) in enumerate(shape)
        )
        return SubassemblyBatch(parts, eliminations, kept)


def _depths(bodies: int, links: Sequence[Link]) -> list[int]:
    """Return the distance of each body from the ground, in links."""
    depths = [0] * bodies
    reached: set[int] = set()
    for link in links:
        inner, outer = link.ends[0], link.ends[-1]
        if outer not in reached and outer not in (GROUND, inner):
            reached.add(outer)
            depths[outer] = 1 + (depths[inner] if inner != GROUND else 0)
    return depths


def _indices(positions: list[int]) -> Indices:
    return np.array(positions, dtype=np.intp)
