"""Symbols for solutions of algebraic loops in expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca


@dataclass(frozen=True)
class Solved:
    """A symbol that represents the solution of loops.

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
        """The solution, an expression with the iteration and without derivatives."""
        return self.find()


class SolvedLoops:
    """The symbols for solutions in some expressions.

    Expressions are differentiated with the symbols in them: around these they have one more Newton increment, with the
    derivatives of the solution. At another point another symbol represents the solution.
    """

    def __init__(self) -> None:
        self._every: list[Solved] = []

    def add(self, size: int, find: Callable[[], ca.SX]) -> ca.SX:
        """Return a symbol for a solution of a size, computed on demand."""
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
        """Return the representation of a solution with substituted symbols; `move` substitutes in an expression."""
        if not ca.depends_on(solved.solution, changed):
            return solved.symbol
        return self.add(solved.symbol.numel(), lambda: move(solved.solution))

    def inserted(self, values: Sequence[ca.SX]) -> list[ca.SX]:
        """Return expressions with the solutions in place of the symbols."""
        result = list(values)
        while within := self.within(result):
            symbols, solutions = [each.symbol for each in within], [each.solution for each in within]
            result = list(ca.Function("closed", symbols, result, {"allow_free": True}).call(solutions, True, False))
        return result
