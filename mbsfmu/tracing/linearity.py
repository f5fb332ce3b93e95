"""Structural linearity of expressions."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca


def is_linear(value: ca.SX, by: ca.SX) -> bool:
    """Return whether values are structurally linear in a vector: sums of products with it, and terms free of it."""
    function = ca.Function("value", [by], [value], {"allow_free": True})
    degrees: dict[int, int] = {}
    for index in range(function.n_instructions()):
        operation, given = function.instruction_id(index), function.instruction_input(index)
        if operation == ca.OP_OUTPUT:
            if degrees[given[0]] > 1:
                return False
            continue
        if operation in (ca.OP_CONST, ca.OP_PARAMETER, ca.OP_INPUT):
            degree = int(operation == ca.OP_INPUT)
        else:
            degree = _degree(operation, [degrees[each] for each in given])
        degrees[function.instruction_output(index)[0]] = degree
    return True


def _degree(operation: int, given: Sequence[int]) -> int:
    """Return the degree of a vector in the result of an operation; 2 for nonlinear operations.

    A step function has zero slopes and is not linear: only sums and products preserve linearity.
    """
    if operation in (ca.OP_ADD, ca.OP_SUB, ca.OP_NEG, ca.OP_TWICE, ca.OP_ASSIGN):
        return max(given)
    if operation == ca.OP_MUL:
        return sum(given)
    if operation == ca.OP_DIV and not given[1]:
        return given[0]
    if operation == ca.OP_IF_ELSE_ZERO and not given[0]:
        return given[1]
    return 2 if any(given) else 0
