"""Vector width of this machine's processor, and availability of a vector mathematics library."""

from __future__ import annotations

import ctypes
import logging
from dataclasses import dataclass
from functools import cache

from mbsfmu.base.errors import InputError
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.compiler import compile_library
from mbsfmu.native.c_sources import lane_width_source, runtime_files

_FLAGS: dict[int, tuple[str, ...]] = {8: ("-mavx512f", "-mavx512dq"), 4: ("-mavx2",), 2: ()}
"""How compilers are told of the instructions, by how many doubles these take at once: AVX-512, AVX2, and what every
processor has."""
_PROBE = "lane_probe.c"
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Vectors:
    """How several machines are computed at once.

    Attributes
    ----------
    lanes
        How many.
    mathematics
        Whether the vector library of mathematics is there; else sines and the like are computed one by one.
    """

    lanes: int
    mathematics: bool

    @property
    def flags(self) -> tuple[str, ...]:
        """Compiler flags."""
        return _FLAGS[self.lanes]

    def narrowed(self, lanes: int | None) -> Vectors:
        """Return vectors of fewer lanes, where a number is given.

        Raises
        ------
        InputError
            When the processor has no such vectors.
        """
        if lanes is None:
            return self
        there = [each for each in sorted(_FLAGS) if each <= self.lanes]
        if lanes not in there:
            raise InputError(f"lanes = {lanes} is not what this processor has: it may be {', '.join(map(str, there))}")
        return Vectors(lanes, self.mathematics)


@cache
def vectors_of_this_machine() -> Vectors:
    """Return the widest vectors of this machine's processor, by its own word.

    Raises
    ------
    NoCompilerError
        When there is no C compiler.
    CompilerError
        When it does not do its work.
    """
    try:
        probe, mathematics = _probe(vector_mathematics=True), True
    except (CompilerError, OSError):
        probe, mathematics = _probe(vector_mathematics=False), False
        _LOGGER.warning(
            "there is no vector library of mathematics here (glibc has one since 2.35): ensembles compute sines, roots "
            "of powers and the like machine by machine, which is slower"
        )
    return Vectors(probe.mbsfmu_lanes(), mathematics)


def _probe(*, vector_mathematics: bool) -> ctypes.CDLL:
    files = runtime_files()
    sources = {name: files[name].read_text("utf-8") for name in (_PROBE, "visibility.h", "prefix.h")}
    sources |= lane_width_source(1, vector_mathematics=vector_mathematics)
    return ctypes.CDLL(str(compile_library(sources, {_PROBE: "-O1"}, None, portable=False)))
