"""Compiled adjoints of runs: the trapezoidal steps of double-step, from the end to the start."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from mbsfmu.base.identity import content_key
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.compiler import is_level_given, kept_library
from mbsfmu.compiling.kept import warn_once
from mbsfmu.native.c_sources import ADJOINT, QUICK_ADJOINT, StepSources
from mbsfmu.native.loop import MisfitError
from mbsfmu.native.point_library import (
    DifferentiatedSteps,
    PointArrays,
    PointLibrary,
    StepsTable,
    steps_are_compiled,
)
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.kept_traces import toolkit
from mbsfmu.tracing.workspace import Floats

_LARGE = 1.5e4
"""Operations that take more than some seconds to be optimized."""
_PATIENCE = 1e-4
"""In s for each operation, as long as optimizing takes: so long tables of operations do, which are made at once."""


class _Back(StepsTable):
    """`Back` of adjoint.c."""

    _fields_ = (
        ("read", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("at_begin", "at_end", "adjoint", "by_parameters", "by_inputs")),
    )


@dataclass(frozen=True)
class BackwardSteps(DifferentiatedSteps):
    """Steps that are gone back, and a scalar of what is computed.

    Attributes
    ----------
    row
        Index of what is read.
    at_begin, at_end
        Derivatives of the scalar with respect to it where steps begin and end.
    adjoint
        dJ/dw behind the last step, which becomes that before the first one.
    by_parameters, by_inputs
        Get the derivatives added: shapes (parameters,) and (N + 1, inputs).
    """

    row: int
    at_begin: Floats
    at_end: Floats
    adjoint: Floats
    by_parameters: Floats
    by_inputs: Floats


class AdjointLibrary(PointLibrary):
    """A library of adjoints of one model; the compiled `adjoint.c`."""

    def go_back(self, points: PointArrays, steps: BackwardSteps) -> None:
        """Go back over steps with one choice of coordinates; errors as for `complete`."""
        fields = steps.fields("at_begin", "at_end", "adjoint", "by_parameters", "by_inputs")
        self._call(self._loaded.mbsfmu_go_back, self._run(points), _Back(read=steps.row, **fields))


@dataclass
class _Made:
    """What is made of a simulation: its sources, their name, and libraries."""

    sources: StepSources
    name: str
    library: AdjointLibrary
    optimized: bool = field(default=False)


_made: WeakKeyDictionary[Simulation, _Made | None] = WeakKeyDictionary()


def adjoint_library(simulation: Simulation) -> AdjointLibrary | None:
    """Return compiled adjoints of a simulation; None without a compiler, or where the code cannot be made.

    Large models begin with tables of operations, which need no compiler's time; code is optimized when so much time was
    spent with these as that takes.

    Parameters
    ----------
    simulation
        A simulation with the trapezoidal rule; of double-step, whose steps have such code.
    """
    if not steps_are_compiled(simulation):
        return None
    if simulation not in _made:
        _made[simulation] = _first(simulation)
    made = _made[simulation]
    if made is None:
        return None
    if not made.optimized and made.library.seconds > made.sources.length * _PATIENCE:
        made.optimized = True
        try:
            made.library = AdjointLibrary.compiled(simulation, made.name, made.name, made.sources.code(), ADJOINT)
        except (CompilerError, OSError, MisfitError) as error:
            warn_once(f"{error}; code of gradients stays as it is, not optimized")
    return made.library


def _first(simulation: Simulation) -> _Made | None:
    try:
        sources = StepSources.of_adjoint(simulation)
        name = content_key("adjoint", sources.to_dict(), toolkit(), sorted(ADJOINT.items()))
        small = is_level_given() or sources.length < _LARGE or kept_library(name) is not None
        if small:
            library = AdjointLibrary.compiled(simulation, name, name, sources.code(), ADJOINT)
            return _Made(sources, name, library, optimized=True)
        quick = content_key(name, sorted(QUICK_ADJOINT.items()))
        return _Made(sources, name, AdjointLibrary.compiled(simulation, quick, name, sources.tables(), QUICK_ADJOINT))
    except (CompilerError, OSError, MisfitError) as error:
        warn_once(f"{error}; gradients are not compiled, CasADi's interpreter finds them")
        return None
