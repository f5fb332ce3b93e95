"""Linear equations between changes of recorded values, solved by sparse elimination.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mbsfmu.tracing.tape.dependence import Call, MemoryIndices, needed
from mbsfmu.tracing.tape.elimination_order import EliminationPath, Node, best_order
from mbsfmu.tracing.tape.recording import ZERO, RecordedArray, Recorder


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
