"""Compiled code that evaluates the equations of double-step at the points of a run."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.compiling.compiler import compile_library, has_compiler, is_compiled
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.integration.implicit import ImplicitSolver
from mbsfmu.native.c_sources import identity_source
from mbsfmu.native.loop import check_library
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.workspace import Floats

COMPLETED = ("velocities", "independent_velocities", "independent_accelerations", "accelerations", "multipliers")
"""Arrays at points that are found there."""
_NOTHING_READ, _NO_VALUES = np.zeros(0, dtype=np.intc), np.zeros(0)


class Run(ctypes.Structure):
    """`Run` of run_points.c."""

    _fields_ = (
        ("points", ctypes.c_int),
        ("failed", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("parameters", "references", "discrete", "loop_iterates", "active")),
        *((name, ctypes.c_void_p) for name in ("dependent", "choices", "coordinates", "states", "integrals", "inputs")),
        *((name, ctypes.c_void_p) for name in COMPLETED),
        ("rates", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("read_count", ctypes.c_int),
        ("values", ctypes.c_void_p),
    )


def steps_are_compiled(simulation: Simulation) -> bool:
    """Return whether the steps of a simulation are differentiated in compiled code: those of double-step by a rule."""
    own = isinstance(simulation.formulation, DoubleStep) and isinstance(simulation.solver, ImplicitSolver)
    return own and is_compiled() and has_compiler()


@dataclass(frozen=True)
class PointArrays:
    """Arrays of a run at points where steps begin and end, contiguous, with a row for each point.

    Attributes
    ----------
    values
        By name of the part: constants of the run; coordinates, velocities, states, integrals and inputs at points; and
        what is found there (`COMPLETED`, and F as `rates`).
    dependent
        Flags of dependent coordinates for each choice, shape (choices, n).
    choices
        Of each point, shape (points,).
    """

    values: dict[str, Floats]
    dependent: NDArray[np.intc]
    choices: NDArray[np.intc]


class StepsTable(ctypes.Structure):
    """What the structures of steps begin with: the fields of `DifferentiatedSteps`."""

    _fields_ = (
        ("first", ctypes.c_int),
        ("last", ctypes.c_int),
        ("begins", ctypes.c_void_p),
        ("ends", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class DifferentiatedSteps:
    """Steps of a run that are differentiated; arrays are contiguous.

    Attributes
    ----------
    first, last
        The steps [first, last).
    begins, ends, sizes
        Points of all steps, and their sizes in s.
    """

    first: int
    last: int
    begins: NDArray[np.intc]
    ends: NDArray[np.intc]
    sizes: Floats

    def fields(self, *arrays: str) -> dict[str, int]:
        """Return the fields of a structure of these steps: the addresses of arrays, those of all steps among them."""
        addresses = {name: getattr(self, name).ctypes.data for name in ("begins", "ends", "sizes", *arrays)}
        return {"first": self.first, "last": self.last, **addresses}


class PointLibrary:
    """A library that evaluates the equations of one model at points of runs.

    Parameters
    ----------
    library
        The compiled file, which includes `run_points.c`.
    simulation
        The simulation that it was made from.
    identity
        What the library must say that it was made from.
    sizes
        Its further sizes by their names, beside those of the model.

    Raises
    ------
    MisfitError
        When the library was made from something else, or has other sizes.
    OSError
        When it cannot be loaded.
    """

    def __init__(
        self, library: Path, simulation: Simulation, identity: str, sizes: Mapping[str, int] | None = None
    ) -> None:
        self._loaded = loaded = ctypes.CDLL(str(library))
        functions = simulation.functions
        system = functions.system
        coordinates, states, integrals = (len(each) for each in (system.coordinates, system.states, system.integrals))
        own = {
            "coordinates": coordinates,
            "constraints": len(functions.rows),
            "freedom": coordinates - functions.rank,
            "states": states,
            "integrals": integrals,
            "inputs": len(system.inputs),
            "parameters": len(system.parameters),
            "computed": len(system.outputs) + 3 * coordinates + states + integrals,
        }
        check_library(loaded, library, identity, {**own, **(sizes or {})})
        self.seconds = 0.0

    @classmethod
    def compiled(
        cls,
        simulation: Simulation,
        key: str,
        identity: str,
        files: Mapping[str, str],
        levels: Mapping[str, str],
        sizes: Mapping[str, int] | None = None,
    ) -> Self:
        """Compile a library.

        Parameters
        ----------
        simulation, identity, sizes
            As for the class.
        key
            What it is kept under.
        files, levels
            Its C files, and those that are compiled with their optimization.

        Raises
        ------
        CompilerError
            When it cannot be compiled.
        MisfitError, OSError
            As for the class.
        """
        library = compile_library({**files, **identity_source(identity)}, levels, None, key=key, portable=False)
        return cls(library, simulation, identity, sizes)

    def complete(self, points: PointArrays, rows: Sequence[int]) -> Floats:
        """Find accelerations, multipliers and rates at points, and return what is read there, (points, rows).

        Raises
        ------
        SimulationError
            When loops or masses are singular at a point.
        """
        read = np.array(rows, dtype=np.intc)
        values = np.empty((len(points.choices), len(rows)))
        self._call(self._loaded.mbsfmu_complete, self._run(points, read, values))
        return values

    def _run(self, points: PointArrays, read: NDArray[np.intc] = _NOTHING_READ, values: Floats = _NO_VALUES) -> Run:
        given = {name: array.ctypes.data for name, array in points.values.items()}
        places = {"dependent": points.dependent.ctypes.data, "choices": points.choices.ctypes.data}
        reads = {"read": read.ctypes.data, "read_count": len(read), "values": values.ctypes.data}
        return Run(points=len(points.choices), failed=-1, **given, **places, **reads)

    def _call(self, function: ctypes._NamedFuncPointer, run: Run, *others: ctypes.Structure) -> None:
        begin = time.perf_counter()
        if not function(ctypes.byref(run), *(ctypes.byref(each) for each in others)):
            raise MemoryError
        self.seconds += time.perf_counter() - begin
        if run.failed >= 0:
            raise SimulationError(
                f"the equations are singular at point {run.failed} of the run: it is not differentiated"
            )
