"""Which form of code is the better one, by how many operations a right-hand side takes in either."""

from __future__ import annotations

from mbsfmu.formulations.code_form import LARGE, Code, can_be_in_loops
from mbsfmu.formulations.functions import SystemFunctions
from mbsfmu.formulations.loop_equations import LoopEquations
from mbsfmu.formulations.system import System
from mbsfmu.formulations.traces import Traces

FEW = 4
"""Coordinates up to which code is straight: nothing is gained by loops over so few calls, and nothing is counted."""
_SHARE = 0.57
"""What an operation in loops costs, as a share of one in straight code. Instructions of the latter are read from memory
one after the other, those of kernels stay in the first cache, and loads and stores of what kernels are given and give
are counted as operations, too."""
_BEGINNING = 1300
"""Operations of straight code that it takes to begin with loops: their first calls find nothing in the caches."""
_SHORT, _LONG = 100_000, 400_000
"""Operations of straight code for a right-hand side, times coordinates, up to which code for implicit steps is
straight, and beyond which it is in loops, whichever is faster. With derivatives by all coordinates, tracing and
compiling it takes as long as that product; kernels take longer than what is short."""


def straight_is_faster(straight: int, loops: int) -> bool:
    """Tell whether straight code takes less time by the operations of either form.

    Both numbers are as `benchmarks/divide_and_conquer/choice.py` measured them; docs/large-mechanisms.md has its table.
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

    Straight code for implicit steps grows as the square: how long it is counts, too.

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

    def operations(code: Code) -> int:
        functions = SystemFunctions(
            system, loops, None, code, sequential=sequential, sections=sections, in_blocks=in_blocks
        )
        return functions.defined("weighed", lambda given: list(given.forward_dynamics(0.0))).operations

    straight, in_loops = traces.fact("operations of both forms", lambda: list(map(operations, Code)))
    length = straight * len(system.coordinates)
    is_faster = straight_is_faster(straight, in_loops)
    chosen = is_faster if explicit else length <= _SHORT or (is_faster and length <= _LONG)
    return Code.STRAIGHT if chosen else Code.LOOPS
