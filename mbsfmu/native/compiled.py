"""Runs in process in C: steps, discontinuities, updates and readings in one call, in quickly compiled code first."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.identity import content_key
from mbsfmu.compiling import kept
from mbsfmu.compiling.compilation import SOURCES, CompilerError
from mbsfmu.compiling.compiler import (
    compile_library,
    has_compiler,
    is_compiled,
    is_level_given,
    is_unoptimized,
    kept_library,
)
from mbsfmu.compiling.kept import warn_once
from mbsfmu.initialization.coordinates import Partition
from mbsfmu.integration.implicit import ImplicitSolver, Jacobian
from mbsfmu.integration.solver import Solver, Statistics
from mbsfmu.io.signals import AnySignal
from mbsfmu.native.c_sources import LOOP, QUICK, StepSources, identity_source
from mbsfmu.native.model_tables import native_solver
from mbsfmu.native.shared import COUNTS, LEVELS, PRESENT
from mbsfmu.simulation.run_loop import Place, Recording, RunLoop, Runner
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.stepping.state import ARRAYS, State, array_sizes, fingerprint
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.kept_traces import toolkit
from mbsfmu.tracing.workspace import Floats

_LOGGER = logging.getLogger(__name__)


_NOTED = 0.1
"""Of the patience: for what less was spent in nobody is told."""


class Spent:
    """Time spent by steps of a model in unoptimized code.

    Attributes
    ----------
    seconds
        In all of its runs.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def note(self) -> None:
        """Take notice that it has grown."""


class TieredRunner(Runner):
    """Runner of unoptimized code until optimized code is available.

    Parameters
    ----------
    quick
        Makes the steps at first.
    optimized
        Makes the runner of optimized code, which takes long; called once, in a thread, while steps are made.
    patience
        For how many s of steps nothing is optimized: processor time, as a clock runs on while others compute; that of
        the process, as runs that record are made in a thread of their own.
    spent
        How many were spent already.
    """

    def __init__(
        self, quick: CompiledRunner, optimized: Callable[[], CompiledRunner], patience: float, spent: Spent
    ) -> None:
        self._runner = quick
        self._optimized = optimized
        self._patience = patience
        self._made: Future[CompiledRunner] | None = None
        self._is_last = False
        self._spent = spent
        self._noted = spent.seconds
        self._began = 0.0

    def run(self, run_loop: RunLoop, recording: Recording) -> None:
        """Run from the present time of the run loop to the last time of a recording; errors as for every runner."""
        begin, self._began = time.perf_counter(), time.process_time()
        self.interim_seconds = 0.0
        self._goes_over()
        if self._is_last:
            self._runner.run(run_loop, recording)
            return
        try:
            stands = self._runner.attempt(run_loop, recording, self._goes_over)
        finally:
            self.interim_seconds = time.perf_counter() - begin
            self._spend(time.process_time() - self._began)
        if not stands:
            self._runner.run(run_loop, recording)

    def _spend(self, seconds: float) -> None:
        self._spent.seconds += seconds
        if self._spent.seconds - self._noted > _NOTED * self._patience:
            self._noted = self._spent.seconds
            self._spent.note()

    def _goes_over(self) -> bool:
        """Return whether an optimized runner has become available; start its compilation when due."""
        if self._is_last:
            return False
        if self._made is None:
            if self._spent.seconds + time.process_time() - self._began > self._patience:
                self._made = Future()
                threading.Thread(target=self._make, args=(self._made,), daemon=True).start()
            return False
        if not self._made.done():
            return False
        self._is_last = True
        try:
            self._runner = self._made.result()
        except (CompilerError, OSError) as error:
            warn_once(f"{error}; code of runs in process stays as it is, not optimized")
            return False
        return True

    def _make(self, made: Future[CompiledRunner]) -> None:
        _LOGGER.info("steps are made while their code is optimized; the run restarts with it, and gives the same")
        try:
            made.set_result(self._optimized())
        except Exception as error:
            made.set_exception(error)


_LARGE = 8e3  # operations that take more than a second to be optimized
_PATIENCE = 27e-6  # s for each of them: a quarter of what optimizing takes, which another processor does
_KEPT_SOURCES, _NAME, _SPENT = ".sources", ".name", ".spent"
_FASTEST = 1


def compile_in_process(simulation: Simulation, key: object) -> None:
    """Use a compiled runner for a simulation, if its solver has C code and there is a compiler or cached code.

    A failure never stops a run: it is reported once, and CasADi's interpreter is used.

    Parameters
    ----------
    simulation
        A simulation; it stays as it is with solvers that native FMUs do not have, or a forward-difference Jacobian.
    key
        What the equations follow from: the model and the options that enter the code. The code that was made for it
        and for the rule's equations once is used again. None where nobody knows: then the equations are traced.

    Compiled code is known by its sources: models that differ in numbers alone, which are no part of these, share it.
    """
    if not is_compiled() or not _has_code(simulation.solver):
        return
    rule = fingerprint(simulation.formulation.rule)
    model = None if key is None else content_key(key, rule, toolkit())
    name = None if model is None else kept_name(model)
    sources = None
    if name is None:
        sources = _traced(simulation)
        name = content_key(sources.to_dict(), rule, toolkit(), sorted(LOOP.items()))
    try:
        runner = _kept(simulation, name, name) or _started(simulation, name, sources)
    except (CompilerError, OSError) as error:
        warn_once(f"{error}; runs in process are not compiled, CasADi's interpreter makes their steps")
        return
    if runner is None:
        return
    simulation.runner = runner
    if sources is not None and model is not None:
        keep_name(model, name)


def _started(simulation: Simulation, name: str, sources: StepSources | None) -> Runner | None:
    """Return the first runner without optimized code; None if nothing is compiled."""
    quick = content_key(name, sorted(QUICK.items()))
    if not has_compiler():
        if (runner := _kept(simulation, quick, name)) is None:
            warn_once(
                "there is no C compiler: CasADi's interpreter makes the steps of runs in process, a hundred times as "
                "slowly; install one (Debian: apt install gcc) or pip install 'mbsfmu[cross]'"
            )
        return runner
    read = SOURCES in os.environ  # by somebody, who looks for C
    soonest = is_unoptimized() and not read
    if soonest and (runner := _kept(simulation, quick, name)):
        return runner
    traced = sources is not None or (sources := _kept_sources(name)) is None
    if sources is None:
        sources = _traced(simulation)

    def made(key: str, files: Mapping[str, str], levels: Mapping[str, str]) -> CompiledRunner:
        files = {**files, **identity_source(name)}
        library = compile_library(files, levels, None, key=key, portable=False, as_given=levels is QUICK)
        return CompiledRunner(library, simulation, name)

    if soonest:
        return made(quick, sources.tables(), QUICK)
    patience = sources.length * _PATIENCE
    if is_level_given() or sources.length < _LARGE or (spent := _Spent(name)).seconds > patience:
        return made(name, sources.code(), LOOP)
    if traced:
        kept.store(name, toolkit(), _KEPT_SOURCES, zlib.compress(json.dumps(sources.to_dict()).encode(), _FASTEST))
    first = _kept(simulation, quick, name) or made(quick, sources.code() if read else sources.tables(), QUICK)
    return TieredRunner(first, lambda: made(name, sources.code(), LOOP), patience, spent)


def _traced(simulation: Simulation) -> StepSources:
    system = simulation.functions.system
    _LOGGER.info("%s: C is written for the equations of %d coordinates", system.name, len(system.coordinates))
    return StepSources.of(simulation)


def _has_code(solver: Solver) -> bool:
    """Return whether a solver has C code."""
    if isinstance(solver, ImplicitSolver):
        return type(solver) is ImplicitSolver and solver.jacobian is Jacobian.EXACT
    try:
        native_solver(solver)
    except InputError:
        return False
    return True


# -- what is kept -----------------------------------------------------------------------------------------------------


def _kept(simulation: Simulation, key: str, identity: str) -> CompiledRunner | None:
    """Return the cached library of a key; an incompatible one is reported and discarded."""
    library = kept_library(key)
    if library is None:
        return None
    try:
        return CompiledRunner(library, simulation, identity)
    except MisfitError as error:
        warn_once(f"{error}; it is compiled again")
        library.unlink(missing_ok=True)
        return None


class _Spent(Spent):
    """Stored time of a model, which accumulates over processes with short runs."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._file = kept.find(name, toolkit(), _SPENT)
        try:
            super().__init__(0.0 if self._file is None else float(self._file.read_text()))
        except OSError:  # gone since
            super().__init__()

    def note(self) -> None:
        """Store the spent time."""
        before = self._file
        self._file = kept.store(self._name, toolkit(), _SPENT, f"{self.seconds:.6g}".encode())
        if before is not None and before != self._file:
            before.unlink(missing_ok=True)


def kept_name(key: str) -> str | None:
    """Return the name of the code that was made for a model before; None where none was."""
    file = kept.find(key, toolkit(), _NAME)
    try:
        return None if file is None else file.read_text()
    except OSError:  # gone since
        return None


def keep_name(key: str, name: str) -> None:
    """Keep the name of the code that was made for a model."""
    kept.store(key, toolkit(), _NAME, name.encode())


def _kept_sources(name: str) -> StepSources | None:
    """Return the cached sources of a key, so that later optimization needs no tracing."""
    file = kept.find(name, toolkit(), _KEPT_SOURCES)
    try:
        return None if file is None else StepSources.kept(json.loads(zlib.decompress(file.read_bytes())))
    except OSError:  # gone since
        return None


# -- compiled loop of runs in process: steps, discontinuities, updates and readings in one call ------------------------

_LOOK_EVERY = 0.1  # s, at what a run that takes long has done
_ROOM = 4096  # for ends of steps, in a first call
_COUNTED = {"evaluations": "rhs_evaluations"}  # whose name in C is another one

_Doubles = ctypes.POINTER(ctypes.c_double)
_Ints = ctypes.POINTER(ctypes.c_int)
_Logger = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


class MisfitError(CompilerError):
    """Library that does not belong to its model."""


class SignalRow(ctypes.Structure):
    """`Signal` of runtime.h."""

    _fields_ = (
        ("input", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("count", ctypes.c_int),
        ("times", _Doubles),
        ("values", _Doubles),
        ("initial", ctypes.c_double),
    )


class _Recording(ctypes.Structure):
    """`Recording` of loop.c."""

    _fields_ = (
        ("times", _Doubles),
        ("rows", _Doubles),
        ("count", ctypes.c_int),
        ("warned", ctypes.c_int),
        ("done", ctypes.c_int),
        ("stop", ctypes.c_int),
        ("ahead", ctypes.c_int),
        ("same", ctypes.c_double),
        ("ends", _Doubles),
        ("room", ctypes.c_int),
        ("steps", ctypes.c_int),
        ("reached", ctypes.c_void_p),
    )


class _Teller:
    """Collects messages from C and forwards them; those of an abandoned run are dropped."""

    def __init__(self) -> None:
        self.waits = False
        self._sentences: list[str] = []

    def take(self, _environment: int | None, _status: int, sentence: bytes) -> None:
        """Collect a message."""
        self._sentences.append(sentence.decode())
        if not self.waits:
            self.report_progress(stands=True)

    def report_progress(self, stands: bool) -> None:
        """Forward the collected messages, or drop them."""
        while self._sentences:
            sentence = self._sentences.pop(0)
            if stands:
                _LOGGER.warning("%s", sentence)


class CompiledRunner(Runner):
    """Runner with a library of steps and readings of one model and formulation.

    Parameters
    ----------
    library
        The compiled `steps.c` and `loop.c`.
    simulation
        The simulation that it was made from; it tells the sizes, and has the signals.
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
        loaded = ctypes.CDLL(str(library))
        present, counts = _sizes(simulation.functions), _count_sizes()
        self._columns = len(simulation.continuous)
        flags = {"inputs set": len(simulation.functions.inputs), "choices": len(simulation.functions.coordinates)}
        check_library(loaded, library, identity, present | counts | flags | {"readings": self._columns})
        self._present, self._counts = _places(present), _places(counts)
        self._tolerances = simulation.made_tolerances  # those in the code, whatever was set since
        loaded.mbsfmu_create.argtypes = [ctypes.POINTER(SignalRow), ctypes.c_int, _Logger]
        loaded.mbsfmu_create.restype = ctypes.c_void_p
        loaded.mbsfmu_destroy.argtypes = [ctypes.c_void_p]
        loaded.mbsfmu_reason.argtypes = [ctypes.c_void_p]
        loaded.mbsfmu_reason.restype = ctypes.c_char_p
        self._reason = loaded.mbsfmu_reason
        self._record = loaded.mbsfmu_record
        self._record.argtypes = [ctypes.c_void_p, _Doubles, _Ints, _Ints, _Doubles, ctypes.POINTER(_Recording)]
        self._followed = FollowedSignals.of(simulation.signals)
        self._teller = _Teller()
        self._logger = _Logger(self._teller.take)
        created = loaded.mbsfmu_create(self._followed.rows, len(self._followed.rows), self._logger)
        if not created:
            raise MemoryError
        self._instance = ctypes.c_void_p(created)
        weakref.finalize(self, loaded.mbsfmu_destroy, self._instance)

    def run(self, run_loop: RunLoop, recording: Recording) -> None:
        """Run from the present time of the run loop to the last time of a recording; errors as for every runner."""
        self.attempt(run_loop, recording)

    def attempt(
        self,
        run_loop: RunLoop,
        recording: Recording,
        gives_up: Callable[[], bool] | None = None,
        room: int | None = None,
    ) -> bool:
        """Run, unless abandoned on the way: then the run loop is unchanged, without messages.

        Parameters
        ----------
        run_loop, recording
            As for every runner.
        gives_up
            Asked now and then, where rows are recorded, whether that is to be; None where it never is.
        room
            For the ends of so many steps, where these are asked for; a run with more is made once more.

        Returns
        -------
        bool
            Whether the run is made; errors as for every runner.
        """
        times = np.ascontiguousarray(recording.times)
        rows = np.empty((len(times), self._columns)) if recording.rows is None else recording.rows
        warned, ahead = run_loop.rank_watch.warned, recording.rows is None
        step_ends, room = run_loop.solver.step_ends, room or _ROOM
        ends = np.empty(0 if step_ends is None else room)
        told = 0.0, _pointer(ends), len(ends)
        asked = _Recording(_pointer(times), _pointer(rows), len(times), warned, recording.done, 0, ahead, *told)
        present, counts = self._handed(run_loop), self._counted(run_loop.solver.statistics)
        held, dependent = run_loop.inputs.held.astype(np.intc), _dependent(run_loop.present)

        def call() -> bool:
            flags = held.ctypes.data_as(_Ints), dependent.ctypes.data_as(_Ints)
            return bool(self._record(self._instance, _pointer(present), *flags, _pointer(counts), asked))

        made: bool | None = False
        self._teller.waits = gives_up is not None or step_ends is not None
        try:
            made = call() if recording.rows is None else _interruptible(call, asked, recording, gives_up)
        finally:
            has_room = step_ends is None or asked.steps <= room
            self._teller.report_progress(stands=made is not None and has_room)
            if made is not None and has_room:
                recording.done = asked.done
                self._take(run_loop, present, dependent)
                count(run_loop.solver.statistics, self._counts, counts)
                run_loop.rank_watch.warned = bool(asked.warned)
                if asked.done > 1:
                    run_loop.take_readings(rows[asked.done - 1])
        if made is None:
            recording.done = 1
            return False
        if not has_room:
            recording.done = 1
            return self.attempt(run_loop, recording, gives_up, asked.steps)
        if not made:
            raise SimulationError(self._reason(self._instance).decode())
        if step_ends is not None:
            step_ends.extend(ends[: asked.steps].tolist())
        return True

    def _handed(self, run_loop: RunLoop) -> Floats:
        """Return the arguments of C as one array."""
        tolerances = run_loop.solver.tolerances
        values = {
            "time": run_loop.time,
            "passed": run_loop.passed,
            "sampled": run_loop.sampled,
            "step_size": run_loop.solver.step,
            "tolerance_factor": tolerances[0] / self._tolerances[0] if tolerances[0] else 1.0,
            "parameters": run_loop.parameters,
            "inputs": run_loop.inputs.values,
            "effective": run_loop.effective,
            "discrete": run_loop.functions.discrete,
        }
        return _packed(self._present, values | {name: getattr(run_loop.present, name) for name in ARRAYS})

    def _take(self, run_loop: RunLoop, present: Floats, dependent: NDArray[np.intc]) -> None:
        """Update the run loop from the results of C."""
        parts = {name: present[place] for name, place in self._present.items()}
        partition = run_loop.present.partition
        if partition is not None and not np.array_equal(np.flatnonzero(dependent), partition.dependent):
            partition = Partition.of(np.flatnonzero(dependent == 0).tolist(), len(dependent))
        state = State(**{name: parts[name] for name in ARRAYS}, partition=partition)
        time, passed, sampled = (parts[name].item() for name in ("time", "passed", "sampled"))
        run_loop.go_to(Place(time, passed, sampled, state, parts["effective"], parts["discrete"]))

    def _counted(self, statistics: Statistics) -> Floats:
        """Return the statistics so far as one array."""
        values: dict[str, ArrayLike] = {}
        for name in self._counts:
            values[name] = getattr(statistics, _COUNTED.get(name, name))
        levels = np.zeros((LEVELS, 3))
        for level, count in zip(levels, statistics.iterations.values(), strict=False):
            level[:] = count.solutions, count.total, count.most
        return _packed(self._counts, values | {"iterations": levels.ravel()})


def count(statistics: Statistics, places: Mapping[str, slice], counts: Floats) -> None:
    """Update statistics from C.

    Parameters
    ----------
    statistics
        These.
    places
        Where each count stands, by its name in C.
    counts
        All counts as one array.
    """
    for name, place in places.items():
        if name == "iterations":
            for level, of_level in zip(counts[place].reshape(-1, 3), statistics.iterations.values(), strict=False):
                of_level.solutions, of_level.total, of_level.most = map(int, level)
        else:
            own = _COUNTED.get(name, name)
            setattr(statistics, own, type(getattr(statistics, own))(counts[place].item()))


def _interruptible(
    call: Callable[[], bool], asked: _Recording, recording: Recording, gives_up: Callable[[], bool] | None
) -> bool | None:
    """Make a long call in a thread, so that this one can be interrupted and report progress.

    Returns what the call does; None where it was given up before it was done.
    """
    made: list[bool] = []
    given_up = False
    thread = threading.Thread(target=lambda: made.append(call()))
    try:
        thread.start()
        while thread.is_alive() and not given_up:
            thread.join(_LOOK_EVERY)
            recording.done = asked.done
            recording.report_progress()
            given_up = gives_up is not None and thread.is_alive() and gives_up()
    finally:
        asked.stop = 1  # nothing asks for it any more where the call is done
        while thread.is_alive():
            with suppress(KeyboardInterrupt):
                thread.join()
    return None if given_up and not made[0] else made[0]


def count_places() -> dict[str, slice]:
    """Return where each count of C stands in the array of all, by its name there."""
    return _places(_count_sizes())


def _count_sizes() -> dict[str, int]:
    sizes = {"1": 1, "3 * LEVELS": 3 * LEVELS}
    return {name: sizes[size] for name, size in COUNTS.items()}


def _sizes(functions: SystemFunctions) -> dict[str, int]:
    """Return the sizes of transferred fields."""
    sizes = {"1": 1, "PARAMETERS": len(functions.parameters)}
    sizes |= {"INPUTS": len(functions.inputs), "DISCRETE": len(functions.discrete)}
    present = {name: sizes[size] for name, size in PRESENT.items()}
    arrays = dict(zip(ARRAYS, array_sizes(functions), strict=True))
    return present | arrays


def check_library(loaded: ctypes.CDLL, library: Path, identity: str, sizes: Mapping[str, int]) -> None:
    """Check that a library belongs to its model, because other sizes would access memory out of bounds.

    Parameters
    ----------
    loaded, library
        The library and its file.
    identity
        What it must say that it was made from.
    sizes
        What it must say of the sizes of its arrays, in its order, by names for messages.

    Raises
    ------
    MisfitError
        When it says something else.
    """
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


def _places(sizes: Mapping[str, int]) -> dict[str, slice]:
    """Return the positions of several arrays in a concatenation."""
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


def _packed(places: Mapping[str, slice], values: Mapping[str, ArrayLike]) -> Floats:
    array = np.empty(max(place.stop for place in places.values()))
    for name, place in places.items():
        array[place] = values[name]
    return array


@dataclass(frozen=True)
class FollowedSignals:
    """Signals as C has them.

    Attributes
    ----------
    rows
        What C is given.
    arrays
        What these point into.
    """

    rows: ctypes.Array[SignalRow]
    arrays: list[Floats]

    @classmethod
    def of(cls, signals: Mapping[int, AnySignal]) -> FollowedSignals:
        """Return those of signals by the index of the input that follows them."""
        rows, arrays = [], []
        for index, signal in signals.items():
            table = signal.table
            times, values = np.array(table.times, dtype=float), np.array(table.values, dtype=float)
            arrays += [times, values]
            rows.append(SignalRow(index, table.kind, len(times), _pointer(times), _pointer(values), table.initial))
        return cls((SignalRow * len(rows))(*rows), arrays)


def _dependent(state: State) -> NDArray[np.intc]:
    """Return ones for dependent coordinates; zeros without a partition."""
    dependent = np.zeros(len(state.coordinates), dtype=np.intc)
    if state.partition is not None:
        dependent[state.partition.dependent] = 1
    return dependent


def _pointer(array: Floats) -> ctypes._Pointer[ctypes.c_double]:
    return array.ctypes.data_as(_Doubles)
