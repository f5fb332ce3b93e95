"""Words of the restricted Python that steps are written in.

It runs as it stands, and `mbsfmu.compiling.transpiler` makes C of it, for one machine and for lanes.

A group of machines runs in lanes. What is annotated with `Real`, `Mask` or `Passing` belongs to a machine, and has a
value in each lane; what is annotated with `int`, `bool`, `float` or `Text` is shared by a group, and is not assigned
under a condition that machines answer differently.

There are functions, `if`, `while`, `for` over `range`, early returns, arithmetic, comparisons, arrays of fixed size and
classes: data classes become structures, and protocols say what C has besides. Names in capitals of a protocol are
constants of a machine's code.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

Real = float
"""A number of a machine."""
Mask = bool
"""A truth of a machine."""
Passing = float
"""A number of a machine that counts only while the machine goes on: the others of a group may have any value."""
Reals = list[float]
"""Numbers of a machine; the annotation of a field says how many, by a constant."""
PassingReals = list[float]
"""The same of numbers that count only while the machine goes on."""
Places = list[int]
"""Places in arrays that Python fills."""
Flags = list[int]
"""Truths of the elements of an array that Python fills."""
Table = Sequence[float]
"""Numbers that all machines of a group share."""
Text = str
"""A name or a piece of a sentence."""


def where(mask: Mask, one: Real, other: Real) -> Real:
    """Return one of two numbers; both are evaluated."""
    return one if mask else other


def anywhere(mask: Mask) -> bool:
    """Return whether it is true of any machine of a group that goes on."""
    return mask


def maximum(a: Real, b: Real) -> Real:
    """Return the larger number, the second where they cannot be compared."""
    return a if a > b else b


def minimum(a: Real, b: Real) -> Real:
    """Return the smaller number, the second where they cannot be compared."""
    return a if a < b else b


def root(a: Real) -> Real:
    """Return the square root, no number of what is negative."""
    return math.sqrt(a) if a >= 0.0 else math.nan


def power(a: Real, exponent: Real) -> Real:
    """Return a number that is not negative to a power, infinite where zero is raised to a negative one."""
    return math.inf if a == 0.0 and exponent < 0.0 else math.pow(a, exponent)


def absolute(a: Real) -> Real:
    """Return the magnitude."""
    return math.fabs(a)


def is_finite(a: Real) -> Mask:
    """Return whether it is neither infinite nor no number at all."""
    return a - a == 0.0


def divided(a: Real, b: Real) -> Real:
    """Return a / b, infinite or no number where b is zero."""
    if b != 0.0:
        return a / b
    return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def zeros(count: int) -> Reals:
    """Return room for so many numbers of a function's own."""
    return [0.0] * count


def tail(numbers: Reals, first: int) -> Reals:
    """Return an array from one of its numbers on: another name for the same numbers."""
    if not isinstance(numbers, ctypes._Pointer):
        return numbers[first:]
    return ctypes.cast(ctypes.addressof(numbers.contents) + first * ctypes.sizeof(ctypes.c_double), type(numbers))


def add_columns(
    columns: int, rows: int, matrix: PassingReals, apart: int, weights: PassingReals, sums: PassingReals
) -> None:
    """Add the columns of a matrix, which begin so far apart, by their weights to sums, one after the other."""
    for i in range(rows):
        total = sums[i]
        for k in range(columns):
            total += weights[k] * matrix[i + apart * k]
        sums[i] = total


def one_machine(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Mark a function that groups do not need, such as a sentence; its calls are left out for them."""
    return function
