"""The compiled loop for runs in process: implicit steps without the interpreter between them."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import hydraulics
from mbsfmu.compiling.compiler import SWITCH, CompilerError, compile_library, has_compiler, kept_library
from mbsfmu.compiling.kept import tell_once
from mbsfmu.formulations.functions import Floats, SystemFunctions
from mbsfmu.formulations.history_layout import fingerprint
from mbsfmu.formulations.iteration import IterationCount
from mbsfmu.formulations.partition import Partition
from mbsfmu.formulations.state import ARRAYS, State, array_sizes
from mbsfmu.identity import content_key
from mbsfmu.native.model_code import LOOP, identity_source, step_sources
from mbsfmu.native.shared import LEVELS, STATISTICS
from mbsfmu.simulation.implicit import BRIEF, ImplicitSolver
from mbsfmu.simulation.newton import Jacobian
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.solver import Inputs, substeps

_CHUNK = 1000  # internal steps between two looks at the interpreter

_Doubles = ctypes.POINTER(ctypes.c_double)
_Ints = ctypes.POINTER(ctypes.c_int)


class MisfitError(CompilerError):
    """A library that is of something else than what it is loaded for."""


class CompiledLoop:
    """A library with the steps of one model and formulation.

    Parameters
    ----------
    library
        The compiled `loop.c`.
    simulation
        The simulation that it was made from; it tells the sizes.
    identity
        What the library must say that it was made from.

    Raises
    ------
    MisfitError
        When the library was made from something else, or has other sizes.
    OSError
        When it cannot be loaded.
    """

    def __init__(self, library: Path, simulation: Simulation, identity: str) -> None:
        functions = simulation.functions
        self._bounds = np.cumsum((0, *array_sizes(functions))).tolist()
        self._coordinates = len(functions.coordinates)
        self._inputs = len(functions.inputs)
        self._parameters, self._discrete = functions.parameters, functions.discrete
        loaded = ctypes.CDLL(str(library))
        _check(loaded, library, functions, identity)
        loaded.mbsfmu_create.restype = ctypes.c_void_p
        loaded.mbsfmu_destroy.argtypes = [ctypes.c_void_p]
        self._call = loaded.mbsfmu_steps
        given = (_Doubles, _Doubles, _Doubles, _Ints, ctypes.c_int, _Doubles, _Doubles)
        self._call.argtypes = [ctypes.c_void_p, *given, _Doubles, _Ints, _Doubles]
        self._instance = ctypes.c_void_p(loaded.mbsfmu_create())
        weakref.finalize(self, loaded.mbsfmu_destroy, self._instance)

    def steps(self, state: State, steps: Floats, inputs: Floats) -> tuple[list[State], Floats]:
        """Make steps; return the states after each that succeeded, and what they took.

        That is: Newton iterations, sum and most; for each level of a projection its solutions, iterations, and most.

        Parameters
        ----------
        state
            Where the first step begins.
        steps, inputs
            Size of each step in s, and inputs at its end; shapes (k,) and (k, number of inputs).
        """
        row = np.concatenate([getattr(state, name) for name in ARRAYS])
        choice = np.zeros(self._coordinates, dtype=np.intc)
        if state.partition is not None:
            choice[state.partition.dependent] = 1
        rows = np.empty((len(steps), len(row)))
        choices = np.empty((len(steps), self._coordinates), dtype=np.intc)
        statistics = np.zeros(STATISTICS)
        parameters, inputs = np.ascontiguousarray(self._parameters), np.ascontiguousarray(inputs, dtype=float)
        made = self._call(
            self._instance, _pointer(parameters), _pointer(self._discrete), _pointer(row), choice.ctypes.data_as(_Ints),
            len(steps), _pointer(steps), _pointer(inputs), _pointer(rows), choices.ctypes.data_as(_Ints),
            _pointer(statistics),
        )  # fmt: skip
        states = []
        partition, chosen = state.partition, choice
        for values, now in zip(rows[:made], choices[:made], strict=True):
            if partition is not None and not np.array_equal(now, chosen):
                partition, chosen = _partition(now), now
            parts = (values[begin:end] for begin, end in pairwise(self._bounds))
            states.append(State(**dict(zip(ARRAYS, parts, strict=True)), partition=partition))
        return states, statistics


def _check(loaded: ctypes.CDLL, library: Path, functions: SystemFunctions, identity: str) -> None:
    """Make sure that a library is of what it is loaded for: with other sizes it would read and write beyond arrays."""
    sizes = dict(zip(ARRAYS, array_sizes(functions), strict=True))
    sizes |= {"inputs": len(functions.inputs), "parameters": len(functions.parameters)}
    sizes |= {"discrete": len(functions.discrete)}
    sizes |= {"choices": len(functions.coordinates), "statistics": STATISTICS}
    try:
        loaded.mbsfmu_identity.restype = ctypes.c_char_p
        own = loaded.mbsfmu_identity().decode()
        room = (ctypes.c_int * len(sizes))()
        count = loaded.mbsfmu_sizes(room, len(room))
    except AttributeError:
        raise MisfitError(f"{library} does not say what it was made from") from None
    if own != identity:
        raise MisfitError(f"{library} was made from something else than its name says")
    if count != len(room):
        raise MisfitError(f"{library} hands over {count} arrays, not {len(room)}")
    for (name, size), given in zip(sizes.items(), room, strict=True):
        if given != size:
            raise MisfitError(f"{library} has {name} of size {given}, not {size}")


def _pointer(array: Floats) -> ctypes._Pointer[ctypes.c_double]:
    return array.ctypes.data_as(_Doubles)


def _partition(dependent: NDArray[np.intc]) -> Partition:
    return Partition.of(np.flatnonzero(dependent == 0).tolist(), len(dependent))


@dataclass(kw_only=True)
class CompiledImplicitSolver(ImplicitSolver):
    """Implicit steps in a compiled loop; a step that fails there is halved by the interpreter.

    Attributes
    ----------
    loop
        The compiled steps of the formulation.
    """

    loop: CompiledLoop

    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`; intervals longer than the internal step are divided evenly."""
        plan: list[tuple[float, float, bool]] = []
        for begin, end in pairwise(times.tolist()):
            if end - begin < BRIEF * self.step:
                state = yield from self._run(state, plan, inputs)
                plan = []
                state = self._over(state, begin, end, inputs)
                yield state
                continue
            pieces = list(substeps(begin, end, self.step))
            plan += [(time, step, index == len(pieces)) for index, (time, step) in enumerate(pieces, start=1)]
            if len(plan) >= _CHUNK:
                state = yield from self._run(state, plan, inputs)
                plan = []
        yield from self._run(state, plan, inputs)

    def _run(
        self, state: State, plan: list[tuple[float, float, bool]], inputs: Inputs
    ) -> Generator[State, None, State]:
        while plan:
            steps = np.array([step for _, step, _ in plan])
            values = np.array([inputs(time + step) for time, step, _ in plan])
            states, taken = self.loop.steps(state, steps, values)
            self.statistics.steps += len(states)
            self.statistics.newton_total += int(taken[0])
            self.statistics.newton_max = max(self.statistics.newton_max, int(taken[1]))
            for count, (solutions, total, most) in zip(
                self.statistics.iterations.values(), taken[2:].reshape(LEVELS, 3).astype(int).tolist(), strict=False
            ):
                count.join(IterationCount(solutions, total, most))
            for after, (_, _, wanted) in zip(states, plan, strict=False):
                self.statistics.repartitions += not after.goes_on_from(state)
                state = after
                if wanted:
                    yield state
            plan = plan[len(states) :]
            if plan:
                time, step, wanted = plan.pop(0)
                state = self._step(state, time, step, inputs, 0)
                if wanted:
                    yield state
        return state


def compile_in_process(simulation: Simulation, key: object) -> None:
    """Let a simulation run in compiled code, where its solver can be compiled and there is a compiler or kept code.

    Whatever goes wrong with that never stops a run: it is told once, and CasADi's interpreter makes the steps.

    Parameters
    ----------
    simulation
        A simulation; anything but implicit steps with exact Jacobian stays as it is.
    key
        What the equations follow from: the model and the options that enter the code. What was compiled for it
        once is used again.
    """
    solver = simulation.solver
    if type(solver) is not ImplicitSolver or solver.jacobian is not Jacobian.EXACT:
        return
    if os.environ.get(SWITCH) == "0":
        return
    name = content_key(
        key,
        fingerprint(solver.formulation.rule),
        _fingerprint(),
        *(version(package) for package in ("casadi", "numpy")),
        LOOP,
    )
    try:
        loop = _kept_loop(simulation, name)
        if loop is None and not has_compiler():
            return
        if loop is None:
            sources = {**step_sources(simulation), **identity_source(name)}
            library = compile_library(sources, LOOP, None, key=name, portable=False)
            loop = CompiledLoop(library, simulation, name)
    except (CompilerError, OSError) as error:
        tell_once(f"{error}; runs in process are not compiled, CasADi's interpreter makes their steps")
        return
    simulation.solver = CompiledImplicitSolver(solver.formulation, solver.step, solver.statistics, loop=loop)


def _kept_loop(simulation: Simulation, name: str) -> CompiledLoop | None:
    """Return the loop that is kept under a name; one that does not fit is told, and kept no longer."""
    library = kept_library(name)
    if library is None:
        return None
    try:
        return CompiledLoop(library, simulation, name)
    except MisfitError as error:
        tell_once(f"{error}; it is made anew")
        library.unlink(missing_ok=True)
        return None


@cache
def _fingerprint() -> str:
    """Return a name for this version of the packages, down to the last character."""
    folders = [Path(__file__).parents[1], Path(str(hydraulics.__file__)).parent]
    files = sorted(file for folder in folders for file in folder.rglob("*") if file.suffix in (".py", ".c", ".h"))
    return content_key(*(file.read_bytes() for file in files))
