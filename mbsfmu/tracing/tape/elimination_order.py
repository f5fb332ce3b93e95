"""Elimination order of changes: along a tree from its tips to its base, with least cost at each node.

[Markowitz1957] H. M. Markowitz, The elimination form of the inverse and its application to linear programming,
Management Science 3 (1957).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from mbsfmu.tracing.tape.dependence import MemoryIndices

_WORTHWHILE = 0.75
"""Relative number of products at which an alternative order is preferred."""


class EliminationPath(NamedTuple):
    """Elimination order from the outside to the inside.

    Attributes
    ----------
    outwards
        How far out each of the first unknowns is, from the base of a tree to its tips.
    behind
        By index of other unknowns those of these that are eliminated before.
    """

    outwards: Sequence[int]
    behind: Mapping[int, Iterable[int]]


@dataclass
class Node:
    """Changes eliminated together: the results of a call, or one unknown.

    Attributes
    ----------
    size
        How many.
    row
        By node that they depend on the block of their derivatives, places of shape (size, size there).
    bias
        Places of what is added.
    users
        Nodes that depend on them.
    """

    size: int
    row: dict[int, MemoryIndices]
    bias: MemoryIndices
    users: set[int] = field(default_factory=set)


def best_order(nodes: Sequence[Node], unknowns: int, ways: Sequence[EliminationPath]) -> Iterator[int]:
    """Return the nodes in the best of several orders; the caller eliminates each before the next.

    Parameters
    ----------
    nodes
        Unknowns, and behind them values in the order in which they follow from each other.
    unknowns
        How many unknowns there are.
    ways
        Another one than the first is taken where it spares many products.
    """
    first, *others = ways
    best = _Order(nodes, unknowns, first)
    if others:
        least = _WORTHWHILE * best.products()
        for each in others:
            other = _Order(nodes, unknowns, each)
            if (products := other.products()) < least:
                best, least = other, products
    return best.sequence()


class _Order:
    """An elimination order, determined during elimination.

    Parameters are those of `best_order`, with one way.
    """

    def __init__(self, nodes: Sequence[Node], unknowns: int, way: EliminationPath) -> None:
        self._nodes = nodes
        self._unknowns = unknowns
        self._waiting: dict[int, set[int]] = {}
        self._waited_for: dict[int, list[int]] = {}
        self._stages: list[float] = []
        self._arrange(way)

    def products(self) -> float:
        """Return the number of products of the elimination, including cancelling elements; nothing is changed."""
        nodes, waiting = self._nodes, self._waiting
        self._nodes = [replace(each, row=dict(each.row), users=set(each.users)) for each in nodes]
        self._waiting = {index: set(others) for index, others in waiting.items()}
        total = 0.0
        for index in self.sequence():
            total += self._cost(index)
            self._take_out(index)
        self._nodes, self._waiting = nodes, waiting
        return total

    def _take_out(self, index: int) -> None:
        """Replace a node by its dependencies in all its users."""
        node = self._nodes[index]
        node.row.pop(index, None)
        node.users.discard(index)
        for each in node.row:
            self._nodes[each].users |= node.users
            self._nodes[each].users.discard(index)
        for each in node.users:
            row = self._nodes[each].row
            row |= node.row
            del row[index]

    def _arrange(self, way: EliminationPath) -> None:
        """Determine the elimination order from the tips to the base.

        The dependencies of a value are no further out than some unknown, and its users no further out than some other;
        it belongs to the inner of both. A value of a loop closure depends on the bodies of the loop and is used with
        its multipliers, possibly far inwards. It belongs to the outermost body, so that nothing waits for it, and only
        its few equations are carried inwards.
        """
        coordinates: dict[int, float] = dict(enumerate(map(float, way.outwards)))
        places = dict(coordinates)
        for index, others in way.behind.items():
            self._waiting[index] = set(others)
            for each in self._waiting[index]:
                self._waited_for.setdefault(each, []).append(index)
            places[index] = min(coordinates[each] for each in self._waiting[index]) - 0.5
        count = range(self._unknowns)
        from_inside, used = self._farthest(places)
        for index in count:
            if index not in places:
                places[index] = max(used[index], *(from_inside[each] for each in self._nodes[index].row), -1.0)
        from_inside, used = self._farthest(places)
        used_by_bodies = self._farthest(coordinates)[1]
        self._stages = [places[index] for index in count]
        for index in range(self._unknowns, len(self._nodes)):
            inner = from_inside[index] if used_by_bodies[index] == -np.inf else min(from_inside[index], used[index])
            self._stages.append(inner if used[index] > -np.inf else np.inf)

    def _farthest(self, places: Mapping[int, float]) -> tuple[list[float], list[float]]:
        """Return for each node the outward positions of its unknowns, and of the equations that use it."""
        size = len(self._nodes)
        after = [places.get(index, -np.inf) for index in range(size)]
        used = [-np.inf] * size
        for index in range(self._unknowns, size):
            after[index] = max((after[each] for each in self._nodes[index].row), default=-np.inf)
        for index in reversed(range(size)):
            for user in self._nodes[index].users:
                found = places.get(user, -np.inf) if user < self._unknowns else used[user]
                used[index] = max(used[index], found)
        return after, used

    def _cost(self, index: int) -> float:
        """Return the number of products of the elimination of a node; infinite if it cannot be eliminated yet.

        Values have numbers that increase from dependencies to users, and this order is preserved, so that no value
        depends on itself: an unknown waits for the values in between.
        """
        node = self._nodes[index]
        if index < self._unknowns:
            latest = max(node.row, default=0)
            first = min((each for each in node.users if each >= self._unknowns), default=latest + 1)
            if index not in node.row or self._waiting.get(index) or (latest >= self._unknowns and latest >= first):
                return np.inf
        before = sum(self._nodes[each].size for each in node.row if each != index)
        return node.size * before * sum(self._nodes[each].size for each in node.users if each != index)

    def sequence(self) -> Iterator[int]:
        """Yield nodes; the caller eliminates each before the next."""
        costs = {index: self._cost(index) for index in range(len(self._nodes))}
        heap = [(-self._stages[index], cost, -index) for index, cost in costs.items() if cost < np.inf]
        heapify(heap)
        while costs:
            _, cost, negative = heappop(heap)
            if costs.get(-negative) != cost:
                continue
            node = self._nodes[-negative]
            around = {*node.row, *node.users} - {-negative}
            yield -negative
            del costs[-negative]
            for each in self._waited_for.get(-negative, ()):
                self._waiting[each].discard(-negative)
                around.add(each)
            for each in around:
                if costs[each] != (now := self._cost(each)):
                    costs[each] = now
                    if now < np.inf:
                        heappush(heap, (-self._stages[each], now, -each))
