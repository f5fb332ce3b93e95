"""Which form of code is the better one, by how many operations a right-hand side takes in either."""

from __future__ import annotations

from mbsfmu.systems.code_form import LARGE, Code, can_be_in_loops
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.loop_equations import LoopEquations
from mbsfmu.systems.system import System
from mbsfmu.tracing.kept_traces import Traces

FEW = 4
"""Coordinates up to which code is unrolled: nothing is gained by loops over so few calls, and nothing is counted."""
_SHARE = 0.57
"""What an operation in loops costs, as a share of one in unrolled code. Instructions of the latter are read from memory
one after the other, those of kernels stay in the first cache, and loads and stores of what kernels are given and give
are counted as operations, too."""
_BEGINNING = 1300
"""Operations of unrolled code that it takes to begin with loops: their first calls find nothing in the caches."""
_SHORT, _LONG = 100_000, 400_000
"""Operations of unrolled code for a right-hand side, times coordinates, up to which code for implicit steps is
straight, and beyond which it is in loops, whichever is faster. With derivatives by all coordinates, tracing and
compiling it takes as long as that product; kernels take longer than what is short."""


def unrolled_is_faster(straight: int, loops: int) -> bool:
    """Tell whether unrolled code takes less time by the operations of either form.

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
    sections: int,
    in_blocks: bool,
) -> Code | None:
    """Return the form of code in which divide and conquer finds accelerations sooner; None where the size decides.

    unrolled code for implicit steps grows as the square: how long it is counts, too.

    Parameters
    ----------
    system
        The system.
    loops, sequential, sections, in_blocks
        As for `SystemFunctions`.
    traces
        Keeps what was found.
    explicit
        Whether steps are, and call nothing but these accelerations.
    """
    if not FEW < len(system.coordinates) <= LARGE or not can_be_in_loops(system):
        return None

    def counted(code: Code) -> int:
        functions = SystemFunctions(
            system, loops, None, code, sequential=sequential, sections=sections, in_blocks=in_blocks
        )
        return functions.defined("weighed", lambda given: list(given.forward_dynamics(0.0))).operations

    def operations(code: Code) -> int:
        return int(traces.fact(f"operations, {code}", lambda: counted(code)))

    straight = operations(Code.STRAIGHT)
    length = straight * len(system.coordinates)
    if explicit or _SHORT < length <= _LONG:
        is_straight = unrolled_is_faster(straight, operations(Code.LOOPS))
    else:
        is_straight = length <= _SHORT
    return Code.STRAIGHT if is_straight else Code.LOOPS
