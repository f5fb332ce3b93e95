"""Forms of generated code, and the choice between them for a system."""

from __future__ import annotations

from enum import StrEnum

from mbsfmu.base.errors import InputError
from mbsfmu.systems.system import System

LARGE = 64
"""Number of coordinates above which kernel loops are the default: unrolled code takes longer to compile."""


class Code(StrEnum):
    """Forms of generated code."""

    STRAIGHT = "straight"
    LOOPS = "loops"


def is_in_loops(system: System, code: Code | None) -> bool:
    """Return whether the code of a system is in loops.

    Parameters
    ----------
    system
        The system.
    code
        Chosen form; None if the size decides.

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
    """Return whether the code of a system can be in loops."""
    return not why_unrolled(system)


def why_unrolled(system: System) -> str:
    """Return why the code of a system cannot be in loops, as the end of a sentence; empty if it can."""
    if not system.coordinates:
        return "has no bodies that move"
    if system.loop_iterates or system.fed_through:
        return "has a loop of connections that is solved at every instant"
    return ""
