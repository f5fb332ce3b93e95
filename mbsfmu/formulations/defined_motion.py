"""Motion defined by linear equations, and its derivatives.

Divide and conquer solves M z̈ − Q + Φ_zᵀ λ = 0 and the loop equations. The derivatives follow from these equations:
with K their Jacobian with respect to z̈ and λ, K ∂(z̈, λ)/∂y is minus that with respect to y. This takes a tenth to a
half of the operations of derivatives traced through the assembly, and is equal to them to round-off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca

from mbsfmu.systems.expressions import SystemExpressions
from mbsfmu.tracing.solved_equations import solved


@dataclass(frozen=True)
class Defined:
    """An implicitly defined part of the evaluation context.

    Attributes
    ----------
    value
        Its elements, shape (k,).
    change
        Their derivative by the parts that they are functions of, side by side.
    """

    value: ca.SX
    change: ca.SX


Motion = Mapping[str, Defined]
"""Parts by name."""


def change_of(given: SystemExpressions, values: ca.SX, by: Sequence[str], motion: Motion) -> ca.SX:
    """Return the Jacobian of a vector with respect to parts, where other parts are defined implicitly by these.

    Parameters
    ----------
    given
        The expressions of the system.
    values
        Expressions of them.
    by
        Names of the parts.
    motion
        The parts that follow from these.
    """
    return _change(given, values, by, motion, {part: each.value for part, each in motion.items()})


def defined(
    given: SystemExpressions, equations: ca.SX, parts: Sequence[str], by: Sequence[str], motion: Motion
) -> dict[str, Defined]:
    """Return the parts defined by linear equations.

    Parameters
    ----------
    given, by, motion
        As for `change_of`.
    equations
        As many as the parts have elements.
    parts
        Names of the parts.
    """
    sizes = [given.symbol_by_part[part].numel() for part in parts]
    known = {part: each.value for part, each in motion.items()}
    nothing = {part: ca.SX.zeros(size) for part, size in zip(parts, sizes, strict=True)}
    matrix, rest = given.at([given.derivative(equations, *parts), equations], known | nothing)
    places = [sum(sizes[:index]) for index in range(len(sizes) + 1)]
    values = ca.vertsplit(solved(matrix, -rest), places)
    found = dict(zip(parts, map(ca.densify, values), strict=True))
    changes = ca.vertsplit(-solved(matrix, _change(given, equations, by, motion, known | found)), places)
    return {part: Defined(found[part], change) for part, change in zip(parts, changes, strict=True)}


def _change(
    given: SystemExpressions, values: ca.SX, by: Sequence[str], motion: Motion, known: dict[str, ca.SX]
) -> ca.SX:
    """Return the same with other values of the parts."""
    slopes = [given.derivative(values, *by), *(given.derivative(values, part) for part in motion)]
    change, *through = given.at(slopes, known)
    for slope, each in zip(through, motion.values(), strict=True):
        change += ca.mtimes(slope, each.change)
    return change
