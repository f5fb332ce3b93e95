"""Symbols that stand for solutions of algebraic loops in expressions, and the solutions that functions have there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca


@dataclass(frozen=True)
class Solved:
    """A symbol that stands for the solution of loops.

    Attributes
    ----------
    symbol
        Vector of symbols.
    find
        Returns the solution.
    """

    symbol: ca.SX
    find: Callable[[], ca.SX]

    @cached_property
    def solution(self) -> ca.SX:
        """The solution, an expression with the iteration in it, which has no derivatives."""
        return self.find()


class SolvedLoops:
    """The symbols in some expressions that stand for solutions.

    Expressions are differentiated with the symbols in them: around these they have one more of Newton's increments,
    whose derivatives are those of the solution. At another point another symbol stands for the solution there.
    """

    def __init__(self) -> None:
        self._every: list[Solved] = []

    def add(self, size: int, find: Callable[[], ca.SX]) -> ca.SX:
        """Return a symbol that stands for a solution of this size, which is found when it is needed."""
        symbol = ca.SX.sym("solved", size)
        self._every.append(Solved(symbol, find))
        return symbol

    def within(self, values: Sequence[ca.SX]) -> list[Solved]:
        """Return those that occur in expressions."""
        if not self._every:
            return []
        every = ca.veccat(*values)
        return [each for each in self._every if ca.depends_on(every, each.symbol)]

    def moved(self, solved: Solved, changed: ca.SX, move: Callable[[ca.SX], ca.SX]) -> ca.SX:
        """Return what stands for a solution where some symbols are changed, which `move` does in an expression."""
        if not ca.depends_on(solved.solution, changed):
            return solved.symbol
        return self.add(solved.symbol.numel(), lambda: move(solved.solution))

    def inserted(self, values: Sequence[ca.SX]) -> list[ca.SX]:
        """Return expressions with the solutions in the places of the symbols."""
        result = list(values)
        while within := self.within(result):
            symbols, solutions = [each.symbol for each in within], [each.solution for each in within]
            result = list(ca.Function("closed", symbols, result, {"allow_free": True}).call(solutions, True, False))
        return result
