"""Compiled sensitivities of runs: derivatives of the trapezoidal steps of double-step, from the start to the end."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from mbsfmu.base.identity import content_key
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.kept import warn_once
from mbsfmu.native.c_sources import SENSITIVITIES, StepSources
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

_WORTH = 3000
"""Steps that take as long in NumPy as the compiler does: both are proportional to the length of the equations."""


class _Forward(StepsTable):
    """`Forward` of sensitivities.c."""

    _fields_ = (
        ("directions", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("along", "motion", "at_begin", "at_end")),
    )


@dataclass(frozen=True)
class ForwardSteps(DifferentiatedSteps):
    """Steps that are gone forward, and derivatives of what is computed along directions.

    Attributes
    ----------
    along
        Directions in the parameters of the library, shape (directions, columns).
    motion
        Derivatives of w before the first step, shape (directions, size), which become those behind the last one.
    at_begin, at_end
        Get derivatives of what is read where steps begin and end, shape (N, rows, directions).
    """

    along: Floats
    motion: Floats
    at_begin: Floats
    at_end: Floats


class SensitivityLibrary(PointLibrary):
    """A library of sensitivities of one model; the compiled `sensitivities.c`."""

    def go_forward(self, points: PointArrays, steps: ForwardSteps) -> None:
        """Go over steps with one choice of coordinates; errors as for `complete`."""
        fields = steps.fields("along", "motion", "at_begin", "at_end")
        forward = _Forward(directions=len(steps.along), **fields)
        self._call(self._loaded.mbsfmu_go_forward, self._run(points), forward)


@dataclass
class _Spent:
    """Steps of a simulation that were differentiated, and its libraries by columns and rows."""

    steps: int = 0
    libraries: dict[tuple[tuple[int, ...], tuple[int, ...]], SensitivityLibrary | None] = field(default_factory=dict)


_spent: WeakKeyDictionary[Simulation, _Spent] = WeakKeyDictionary()


def library_of_points(simulation: Simulation) -> PointLibrary | None:
    """Return a library that was made for sensitivities of a simulation, if any: all of them complete points."""
    made = _spent[simulation].libraries.values() if simulation in _spent else ()
    return next((library for library in made if library is not None), None)


def sensitivity_library(
    simulation: Simulation, columns: Sequence[int], rows: Sequence[int], steps: int
) -> SensitivityLibrary | None:
    """Return compiled sensitivities of a simulation.

    None without a compiler, where the code cannot be made, or where so few steps were differentiated until now that
    NumPy is sooner done with them than the compiler.

    Parameters
    ----------
    simulation
        A simulation with the trapezoidal rule; of double-step, whose steps have such code.
    columns, rows
        Indices of the parameters, and of what is read among the computed variables.
    steps
        How many steps are to be differentiated.
    """
    if not steps_are_compiled(simulation):
        return None
    spent, key = _spent.setdefault(simulation, _Spent()), (tuple(columns), tuple(rows))
    spent.steps += steps
    if key not in spent.libraries:
        if spent.steps < _WORTH:
            return None
        spent.libraries[key] = _made(simulation, columns, rows)
    return spent.libraries[key]


def _made(simulation: Simulation, columns: Sequence[int], rows: Sequence[int]) -> SensitivityLibrary | None:
    sizes = {"read": len(rows), "columns": len(columns)}
    try:
        sources = StepSources.of_sensitivities(simulation, columns, rows)
        name = content_key("sensitivities", sources.to_dict(), toolkit(), sorted(SENSITIVITIES.items()))
        return SensitivityLibrary.compiled(simulation, name, name, sources.code(), SENSITIVITIES, sizes)
    except (CompilerError, OSError, MisfitError) as error:
        warn_once(f"{error}; sensitivities are not compiled, NumPy finds them")
        return None
