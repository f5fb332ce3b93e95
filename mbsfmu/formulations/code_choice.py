"""Choice between unrolled code and kernel loops by the operation counts of a right-hand side."""

from __future__ import annotations

from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import LARGE, Code, LoopEquations, System, can_be_in_loops
from mbsfmu.tracing.kept_traces import Traces

FEW = 4
"""Number of coordinates up to which code is unrolled without counting: few calls gain nothing from loops."""
_SHARE = 0.5
"""Cost of an operation in loops relative to one in unrolled code. Unrolled instructions are read from memory in
sequence, those of kernels stay in the first cache, and loads and stores of kernel arguments count as operations.
"""
_BEGINNING = 700
"""Fixed cost of loops in operations of unrolled code: their first calls miss the caches."""
_SHORT, _LONG = 100_000, 400_000
"""Operations of an unrolled right-hand side times coordinates up to which implicit steps are unrolled, and beyond which
they are in loops, independent of speed. Tracing and compiling derivatives takes time in proportion to this product;
kernels take longer for small ones. Of trees, whose right-hand sides are short for what their derivatives are, the first
one decides: at 110 000, a chain of 16 links in space, compilers take 30 s, and 6 s in loops.
"""


def unrolled_is_faster(straight: int, loops: int) -> bool:
    """Return whether unrolled code is faster, from the operation counts of both forms.

    Both numbers are as `benchmarks/divide_and_conquer/choice.py` measured them; its table is in
    docs/studies/large-mechanisms.md.
    """
    return straight <= _SHARE * loops + _BEGINNING


def faster_form(
    system: System,
    loops: LoopEquations | None,
    traces: Traces,
    *,
    explicit: bool,
    sequential: bool,
) -> Code | None:
    """Return the faster form of code for accelerations by divide and conquer; None if the size decides.

    Unrolled code of implicit steps grows as the square of the size, so that its length counts as well.

    Parameters
    ----------
    system
        The system.
    loops, sequential
        As for `SystemFunctions`.
    traces
        Keeps what was found.
    explicit
        Whether steps are, and call nothing but these accelerations.
    """
    if not FEW < len(system.coordinates) <= LARGE or not can_be_in_loops(system):
        return None

    def counted(code: Code) -> int:
        functions = SystemFunctions(system, loops, None, code, sequential=sequential)
        return functions.defined("weighed", lambda given: list(given.forward_dynamics(0.0))).operations

    def operations(code: Code) -> int:
        return int(traces.fact(f"operations, {code}", lambda: counted(code)))

    straight = operations(Code.STRAIGHT)
    length = straight * len(system.coordinates)
    if explicit or (system.constraints and _SHORT < length <= _LONG):
        is_straight = unrolled_is_faster(straight, operations(Code.LOOPS))
    else:
        is_straight = length <= _SHORT
    return Code.STRAIGHT if is_straight else Code.LOOPS
