"""The forms of generated code, and which of them a system has or can have."""

from __future__ import annotations

from enum import StrEnum

from mbsfmu.base.errors import InputError
from mbsfmu.systems.system import System

LARGE = 64
"""Coordinates above which kernel loops are the default, whichever is faster: unrolled code
takes longer to trace and to compile the larger the system is."""


class Code(StrEnum):
    """Forms of generated code."""

    STRAIGHT = "straight"
    LOOPS = "loops"


def is_in_loops(system: System, code: Code | None) -> bool:
    """Tell whether the code of a system is in loops.

    Parameters
    ----------
    system
        The system.
    code
        What was chosen; None where the size decides.

    Raises
    ------
    InputError
        When loops are chosen for a system that cannot have them.
    """
    if code is Code.STRAIGHT:
        return False
    lacking = why_unrolled(system)
    if code is Code.LOOPS and lacking:
        raise InputError(f"kernel loops are for mechanisms; {system.name} {lacking}")
    return not lacking and (code is Code.LOOPS or len(system.start_system.coordinates) > LARGE)


def can_be_in_loops(system: System) -> bool:
    """Tell whether the code of a system can be in loops."""
    return not why_unrolled(system)


def why_unrolled(system: System) -> str:
    """Return why the code of a system cannot be in loops, as the end of a sentence on it; nothing where it can."""
    if not system.coordinates:
        return "has no bodies that move"
    if system.loop_iterates or system.fed_through:
        return "has a loop of connections that is solved at every instant"
    return ""
