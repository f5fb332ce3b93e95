"""Expressions whose saturations leak: where a limit leaves no slope, a share of what it cuts off goes through."""

from __future__ import annotations

import casadi as ca

_CUT = (ca.OP_FMAX, ca.OP_FMIN)


def leaking(value: ca.SX, share: ca.SX) -> ca.SX | None:
    """Return a vector with max(a, b) and min(a, b) leaning to their mean, or None where it has neither.

    A share ε of the difference goes through: (a + b ± (1 − ε) |a − b|) / 2. With ε = 0 it is the same as before, with
    ε = 1 linear in a and b; between them limits, dead zones, overlaps, valves and stops have a slope everywhere, of
    ε / 2 at least where they had none, whatever the units are.

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
