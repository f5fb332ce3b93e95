"""How long the C of a recorded function is."""

from __future__ import annotations

from mbsfmu.native.traced_code import program_code
from mbsfmu.tracing.workspace import RecordedFunction


def length_of_code(function: RecordedFunction) -> int:
    """Return its characters, with those of the kernels that it calls."""
    helpers: dict[str, str] = {}
    return len(program_code(function, helpers)) + sum(map(len, helpers.values()))
