"""Regularised saturations: limits get a small slope."""

from __future__ import annotations

import casadi as ca

_CUT = (ca.OP_FMAX, ca.OP_FMIN)


def leaking(value: ca.SX, share: ca.SX) -> ca.SX | None:
    """Return a vector with regularised max(a, b) and min(a, b), or None if it has neither.

    A fraction ε of the difference passes: (a + b ± (1 − ε) |a − b|) / 2. With ε = 0 it is unchanged, with ε = 1 linear
    in a and b; in between limits, dead zones, overlaps, valves and stops have a slope of at least ε / 2, independent of
    units.

    Parameters
    ----------
    value
        The vector.
    share
        ε, between 0 and 1.
    """
    symbols = ca.symvar(value)
    dense = ca.densify(value)
    function = ca.Function("whole", symbols, [dense])
    work: dict[int, ca.SX] = {}
    result: list[ca.SX] = [ca.SX(0.0)] * dense.numel()
    leaks = False
    for place in range(function.n_instructions()):
        operation = function.instruction_id(place)
        given, into = function.instruction_input(place), function.instruction_output(place)
        if operation == ca.OP_INPUT:
            work[into[0]] = symbols[given[0]]
        elif operation == ca.OP_CONST:
            work[into[0]] = ca.SX(function.instruction_constant(place))
        elif operation == ca.OP_OUTPUT:
            result[into[1]] = work[given[0]]
        elif operation in _CUT:
            one, other = (work[each] for each in given)
            rest = (1.0 - share) * ca.fabs(one - other)
            work[into[0]] = 0.5 * (one + other + (rest if operation == ca.OP_FMAX else -rest))
            leaks = True
        elif len(given) == 1:
            work[into[0]] = ca.SX.unary(operation, work[given[0]])
        else:
            work[into[0]] = ca.SX.binary(operation, work[given[0]], work[given[1]])
    return ca.vertcat(*result) if leaks else None
