"""Linear equations between changes of recorded values, solved by sparse elimination in a chosen order.

Elimination order of changes: along a tree from its tips to its base, with least cost at each node.

[Markowitz1957] H. M. Markowitz, The elimination form of the inverse and its application to linear programming,
Management Science 3 (1957).

Linear equations between changes of recorded values, solved by sparse elimination.

Each recorded call relates changes of results and arguments by its Jacobian: δ results = J δ arguments. Together with
the equations of the unknowns these are sparse linear equations with the structure of the tree. They are eliminated
block by block from the tips to the base, as in the articulated-body algorithm, and at each node in the order of least
cost [Markowitz1957]. The cost is linear, and eliminations, which are recorded as kernel calls themselves, have the same
form for equal bodies and loops.

Results of calls have the pivot one. The pivot of an unknown is the remaining coefficient of its own equation, without
row exchange. Multipliers have a zero pivot at first, which fills in from their coordinates; enough of these are
eliminated earlier. If their matrix is definite, as a mass matrix is, so is that of the multipliers for independent
constraints [Benzi2005]. The caller checks the residual.

[Markowitz1957] H. M. Markowitz, The elimination form of the inverse and its application to linear programming,
Management Science 3 (1957).
[Benzi2005] M. Benzi, G. H. Golub, J. Liesen, Numerical solution of saddle point problems, Acta Numerica 14 (2005).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from mbsfmu.tracing.tape.recording import ZERO, RecordedArray, Recorder
from mbsfmu.tracing.tape.schedule import Call, MemoryIndices, needed

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


@dataclass(frozen=True)
class Following:
    """A value whose change follows from that of an unknown.

    Attributes
    ----------
    unknown
        Index of the unknown.
    factor, bias
        Places of numbers a and b: its change is a times that of the unknown, and b.
    """

    unknown: int
    factor: int
    bias: int


@dataclass(frozen=True)
class TapeEquation:
    """A linear equation in changes of values.

    Attributes
    ----------
    terms
        Places of values with those of numbers that their changes are multiplied with.
    bias
        Place of the number that is added.
    """

    terms: Sequence[tuple[int, int]]
    bias: int = ZERO


@dataclass(frozen=True)
class _Eliminated:
    """Changes as they follow from those that are eliminated later."""

    node: int
    row: Mapping[int, MemoryIndices]
    bias: MemoryIndices


def changes_of(
    recorder: Recorder,
    wanted: MemoryIndices,
    unknowns: Sequence[int],
    following: Mapping[int, Following],
    equations: Sequence[TapeEquation],
    ways: Sequence[EliminationPath],
) -> tuple[MemoryIndices, MemoryIndices]:
    """Record the solution of linear equations.

    Parameters
    ----------
    recorder
        What has recorded the values.
    wanted
        Places of the values whose changes are wanted.
    unknowns
        Places of the values whose changes are unknown.
    following
        By place the values whose changes follow from these at once.
    equations
        One for each unknown, in whose elimination it is used: it must depend on it then.
    ways
        In which order to eliminate; another one than the first is taken where it spares many products.

    Returns
    -------
    tuple
        Places of the changes that are wanted, and of numbers that are not all finite where a pivot vanishes.
    """
    elimination = _Elimination(recorder, wanted, unknowns, following, equations)
    changes = elimination.solved(wanted, ways)
    return changes, np.concatenate(elimination.inverse_pivots)


class _Elimination:
    """The equations and their elimination so far.

    Attributes
    ----------
    inverse_pivots
        Places of −1 by each pivot of an unknown until now.
    """

    def __init__(
        self,
        recorder: Recorder,
        wanted: MemoryIndices,
        unknowns: Sequence[int],
        following: Mapping[int, Following],
        equations: Sequence[TapeEquation],
    ) -> None:
        self._recorder = recorder
        self.inverse_pivots: list[MemoryIndices] = []
        self._nodes: list[Node] = [Node(1, {}, _one_place(each.bias)) for each in equations]
        self._unknowns = len(unknowns)
        self._where: dict[int, tuple[int, int]] = {place: (index, 0) for index, place in enumerate(unknowns)}
        for place, each in following.items():
            self._add([place], {each.unknown: _one_place(each.factor)[:, None]}, _one_place(each.bias))
        for call in self._calls(wanted, equations):
            self._add_call(call)
        for index, equation in enumerate(equations):
            self._nodes[index].row = self._row_of(equation)
        for index, node in enumerate(self._nodes):
            for other in node.row:
                self._nodes[other].users.add(index)

    def _calls(self, wanted: MemoryIndices, equations: Sequence[TapeEquation]) -> list[Call]:
        """Return the calls on which equations and wanted values depend, up to the unknowns."""
        recorder = self._recorder
        terms = np.array([place for each in equations for place, _ in each.terms], dtype=np.int64)
        return needed(
            recorder.calls, [wanted.ravel(), terms], recorder.places, np.array(list(self._where), dtype=np.int64)
        )

    def _add(self, places: Sequence[int], row: dict[int, MemoryIndices], bias: MemoryIndices) -> None:
        self._where |= {place: (len(self._nodes), index) for index, place in enumerate(places)}
        self._nodes.append(Node(len(places), row, bias))

    def _add_call(self, call: Call) -> None:
        """Add the results of a call that depend on unknowns."""
        taken = call.taken.tolist()
        if call.made[0] in self._where:
            return
        columns = [index for index, place in enumerate(taken) if place in self._where]
        if not columns:
            return
        slopes = self._recorder.jacobian(call, columns).places
        moving = np.flatnonzero(np.any(slopes != ZERO, axis=1))
        row: dict[int, MemoryIndices] = {}
        for column, index in enumerate(columns):
            node, place = self._where[taken[index]]
            block = row.setdefault(node, np.full((len(moving), self._nodes[node].size), ZERO, dtype=np.int64))
            block[:, place] = slopes[moving, column]
        row = {node: block for node, block in row.items() if np.any(block != ZERO)}
        if len(moving):
            self._add(call.made[moving].tolist(), row, np.full(len(moving), ZERO, dtype=np.int64))

    def _row_of(self, equation: TapeEquation) -> dict[int, MemoryIndices]:
        row: dict[int, MemoryIndices] = {}
        for place, factor in equation.terms:
            if place in self._where:
                node, index = self._where[place]
                block = row.setdefault(node, np.full((1, self._nodes[node].size), ZERO, dtype=np.int64))
                assert block[0, index] == ZERO
                block[0, index] = factor
        return row

    def solved(self, wanted: MemoryIndices, ways: Sequence[EliminationPath]) -> MemoryIndices:
        """Return the changes of wanted memory indices."""
        order = best_order(self._nodes, self._unknowns, ways)
        eliminated = [self._eliminated(index) for index in order]
        needed = {self._where[place][0] for place in wanted.ravel().tolist() if place in self._where}
        for each in eliminated:
            if each.node in needed:
                needed.update(each.row)
        changes: dict[int, MemoryIndices] = {}
        for each in reversed(eliminated):
            if each.node in needed:
                others = [changes[node] for node in each.row]
                changes[each.node] = self._called(_combined, list(each.row.values()), others, each.bias)
        found = [self._change(place, changes) for place in wanted.ravel().tolist()]
        return np.array(found, dtype=np.int64).reshape(wanted.shape)

    def _change(self, place: int, changes: Mapping[int, MemoryIndices]) -> int:
        if place not in self._where:
            return ZERO
        node, index = self._where[place]
        return int(changes[node][index])

    def _eliminated(self, index: int) -> _Eliminated:
        """Eliminate a node."""
        node = self._nodes[index]
        own = node.row.pop(index, None)
        node.users.discard(index)
        row, bias = node.row, node.bias
        if own is not None:
            factor, blocks = self._called(_divided, own, list(row.values()))
            row, bias = dict(zip(row, blocks, strict=True)), self._called(np.multiply, factor, bias)
            self.inverse_pivots.append(factor)
        for each in row:
            self._nodes[each].users.discard(index)
        for each in sorted(node.users):
            self._substitute(index, row, bias, each)
        return _Eliminated(index, row, bias)

    def _substitute(self, index: int, row: dict[int, MemoryIndices], bias: MemoryIndices, user: int) -> None:
        """Substitute an eliminated node in one that depends on it.

        Biases have separate calls, because they may be known after the blocks.
        """
        node = self._nodes[user]
        factor = node.row.pop(index)
        before = [node.row.get(each) for each in row]
        blocks = self._called(_substituted, factor, list(row.values()), before)
        if np.any(bias != ZERO):
            node.bias = self._called(_added, factor, bias, node.bias)
        for each, block in zip(row, blocks, strict=True):
            if np.any(block != ZERO):
                node.row[each] = block
                self._nodes[each].users.add(user)
            elif each in node.row:  # what acts within a loop cancels beyond it
                del node.row[each]
                self._nodes[each].users.discard(user)

    def _called(self, function: Any, *arguments: Any) -> Any:
        """Record a call on memory indices, and return those of its results."""
        answer = self._recorder.call(function, _recorded(self._recorder, arguments), {})
        return _places(answer)


def _one_place(place: int) -> MemoryIndices:
    return np.array([place], dtype=np.int64)


def _recorded(recorder: Recorder, tree: Any) -> Any:
    if isinstance(tree, (list, tuple)):
        return type(tree)(_recorded(recorder, each) for each in tree)
    return None if tree is None else RecordedArray(recorder, tree)


def _places(tree: Any) -> Any:
    return type(tree)(_places(each) for each in tree) if isinstance(tree, (list, tuple)) else tree.places


def _divided(own: Any, blocks: list[Any]) -> tuple[Any, list[Any]]:
    """Return −1/own, and blocks times this: what an unknown is where own·u + Σ block·δ is zero."""
    factor = -1.0 / own[0]
    return factor, [factor[0] * block for block in blocks]


def _substituted(factor: Any, blocks: list[Any], before: list[Any]) -> list[Any]:
    """Return a row with substituted blocks."""
    products = [factor @ block for block in blocks]
    return [one if old is None else old + one for one, old in zip(products, before, strict=True)]


def _added(factor: Any, bias: Any, before: Any) -> Any:
    return before + factor @ bias


def _combined(blocks: list[Any], changes: list[Any], bias: Any) -> Any:
    """Return Σ block·δ + bias."""
    for block, change in zip(blocks, changes, strict=True):
        bias = bias + block @ change
    return bias
