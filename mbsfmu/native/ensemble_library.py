"""Compiled code that runs many machines of one model at once, each in a lane of the processor's vectors."""

from __future__ import annotations

import ctypes
import logging
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import content_key
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.compiler import SWITCH, compile_library, has_compiler, is_compiled, kept_library
from mbsfmu.io.signals import AnySignal
from mbsfmu.native.c_sources import ENSEMBLE, ensemble_sources, identity_source, lane_width_source, runtime_files
from mbsfmu.native.compiled import FollowedSignals, MisfitError, SignalRow, count_places, keep_name, kept_name
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.kept_traces import toolkit
from mbsfmu.tracing.workspace import Floats

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


_LOOK_EVERY = 0.1  # s, at what is done and whether somebody ends it
_Doubles = ctypes.POINTER(ctypes.c_double)
_Ints = ctypes.POINTER(ctypes.c_int)
_Logger = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


class _Machines(ctypes.Structure):
    """`Machines` of ensemble.c."""

    _fields_ = (
        ("machines", ctypes.c_int),
        ("first", ctypes.c_int),
        ("parameters", ctypes.c_void_p),
        ("inputs", ctypes.c_void_p),
        ("signals", ctypes.c_void_p),
        ("signal_counts", ctypes.c_void_p),
        ("held", ctypes.c_void_p),
        ("step_size", ctypes.c_double),
        ("chosen", ctypes.c_void_p),
        ("set", ctypes.c_void_p),
        ("newly", ctypes.c_void_p),
        ("times", ctypes.c_void_p),
        ("times_apart", ctypes.c_int),
        ("first_row", ctypes.c_int),
        ("count", ctypes.c_int),
        ("columns", ctypes.c_void_p),
        ("column_count", ctypes.c_int),
        ("rows", ctypes.c_void_p),
        ("done", ctypes.c_void_p),
        ("counts", ctypes.c_void_p),
        ("alone", ctypes.c_void_p),
        ("records", ctypes.c_void_p),
        ("reasons", ctypes.c_void_p),
        ("stop", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class MachineData:
    """Start data of machines.

    Attributes
    ----------
    parameters, inputs
        Of each machine; shapes (n, number of parameters) and (n, number of inputs).
    held
        Which inputs were set by hand in all machines, as integers; shape (number of inputs,).
    signals
        Those that inputs follow: of each machine, or one for all.
    step
        Internal step in s.
    """

    parameters: Floats
    inputs: Floats
    held: NDArray[np.intc]
    signals: Sequence[Mapping[int, AnySignal]]
    step: float


@dataclass(frozen=True)
class MachineRuns:
    """Results of runs.

    Attributes
    ----------
    rows
        What was recorded, shape (n, number of times, number of columns); NaN behind the end of machines that failed.
    done
        How many rows each machine came to, shape (n,).
    counts
        Statistics of each machine, in the places of `count_places`, shape (n, number of counts).
    alone
        Steps of each machine that were not made in lanes, shape (n,).
    records
        Error record of each machine, shape (n, its size); of size zero where errors are not estimated.
    failures
        Why machines have failed, by their numbers.
    warnings
        What was told of a machine, with its number.
    """

    rows: Floats
    done: NDArray[np.intc]
    counts: Floats
    alone: Floats
    records: Floats
    failures: dict[int, str]
    warnings: list[tuple[int, str]]


class EnsembleLibrary:
    """A library that runs machines of one model at once.

    Parameters
    ----------
    library
        The compiled `steps.c` and `ensemble.c`.
    simulation
        The simulation that it was made from.
    identity
        What the library must say that it was made from.
    vectors
        How many machines it computes at once.
    errors
        Whether it estimates errors.

    Raises
    ------
    MisfitError
        When the library was made from something else, or has other sizes.
    OSError
        When it cannot be loaded.
    """

    def __init__(self, library: Path, simulation: Simulation, identity: str, vectors: Vectors, *, errors: bool) -> None:
        self.vectors = vectors
        self._loaded = loaded = ctypes.CDLL(str(library))
        functions = simulation.functions
        expected = [vectors.lanes, len(functions.system.parameters), len(functions.inputs), len(simulation.continuous)]
        self._counts = max(place.stop for place in count_places().values())
        self._record = len(functions.error_record) if errors else 0
        expected += [self._counts, self._record]
        loaded.mbsfmu_identity.restype = ctypes.c_char_p
        sizes = (ctypes.c_int * (len(expected) + 1))()
        loaded.mbsfmu_sizes(sizes, len(sizes))
        if loaded.mbsfmu_identity().decode() != identity or sizes[: len(expected)] != expected:
            raise MisfitError(f"{library} was made from something else than its name says")
        self._reason = sizes[len(expected)]
        loaded.mbsfmu_create_group.argtypes = [_Logger]
        loaded.mbsfmu_create_group.restype = ctypes.c_void_p
        loaded.mbsfmu_destroy_group.argtypes = [ctypes.c_void_p]
        for function in (loaded.mbsfmu_start_groups, loaded.mbsfmu_advance_groups):
            function.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(_Machines), ctypes.c_int]
            function.restype = None

    def run(
        self,
        data: MachineData,
        times: Floats,
        columns: Sequence[int],
        workers: int,
        progress: Callable[[float], None] | None = None,
    ) -> MachineRuns:
        """Run machines from the first of some times to the last; those that fail end, and the others go on.

        Parameters
        ----------
        data
            The machines.
        times
            When rows are recorded in s, the start being the first, shape (k,) with k ≥ 2.
        columns
            What is recorded: indices into the variables that change.
        workers
            How many threads share the machines.
        progress
            Called with the share that is done.
        """
        return _Runs(self, data, times, columns).made(workers, progress)


class _MachineArrays:
    """What C reads and writes of all machines.

    Parameters
    ----------
    library
        The code.
    data
        The machines.
    times
        Of rows in s: of all machines, shape (number of rows,), or of each, shape (n, number of rows).
    columns
        What is recorded.
    first_row
        The row that machines come to next when they go on.
    """

    def __init__(
        self, library: EnsembleLibrary, data: MachineData, times: Floats, columns: Sequence[int], first_row: int
    ) -> None:
        self._data, self._lanes, self._first_row = data, library.vectors.lanes, first_row
        self.count = count = len(data.parameters)
        self.parameters, self.inputs = np.ascontiguousarray(data.parameters), np.ascontiguousarray(data.inputs)
        self.chosen = np.ones(count, dtype=np.intc)
        self.set = self.inputs.copy()
        self.newly = np.zeros(self.inputs.shape[1], dtype=np.intc)
        self.times = np.ascontiguousarray(times)
        self._columns = np.array(columns, dtype=np.intc)
        self.rows = np.full((count, times.shape[-1], len(columns)), np.nan)
        self.done = np.zeros(count, dtype=np.intc)
        self.counts = np.zeros((count, library._counts))
        self.alone = np.zeros(count)
        self.records = np.zeros((count, library._record))
        self.reasons = np.zeros((count, library._reason), dtype=np.uint8)
        self.stop = np.zeros(1, dtype=np.intc)
        followed = [FollowedSignals.of(each) for each in data.signals]
        self._followed = followed * (count if len(followed) == 1 else 1)
        self._signals = (ctypes.POINTER(SignalRow) * count)(*(each.rows for each in self._followed))
        self._signal_counts = np.array([len(each.rows) for each in self._followed], dtype=np.intc)

    def reason(self, machine: int) -> str:
        """Return why a machine has failed; empty where it has not."""
        return bytes(self.reasons[machine]).partition(b"\0")[0].decode()

    def group(self, first: int) -> _Machines:
        """Return what C is given of the group whose first machine has a number."""
        times_apart = self.times.shape[1] if self.times.ndim > 1 else 0
        signals = ctypes.addressof(self._signals) + first * ctypes.sizeof(ctypes.c_void_p)
        by_machine = {
            name: getattr(self, name)[first:].ctypes.data
            for name in (
                "parameters",
                "inputs",
                "chosen",
                "set",
                "rows",
                "done",
                "counts",
                "alone",
                "records",
                "reasons",
            )
        }
        return _Machines(
            machines=min(self._lanes, self.count - first),
            first=first,
            signals=signals,
            signal_counts=self._signal_counts[first:].ctypes.data,
            held=self._data.held.ctypes.data,
            step_size=self._data.step,
            newly=self.newly.ctypes.data,
            times=(self.times[first:] if times_apart else self.times).ctypes.data,
            times_apart=times_apart,
            first_row=self._first_row,
            count=self.times.shape[-1],
            columns=self._columns.ctypes.data,
            column_count=len(self._columns),
            stop=self.stop.ctypes.data,
            **by_machine,
        )


class _Runs:
    """Runs of all machines, group by group."""

    def __init__(self, library: EnsembleLibrary, data: MachineData, times: Floats, columns: Sequence[int]) -> None:
        self._loaded, self._lanes = library._loaded, library.vectors.lanes
        self._arrays = _MachineArrays(library, data, times, columns, first_row=1)
        self._warnings: list[tuple[int, str]] = []
        self._groups = iter(range(0, self._arrays.count, self._lanes))
        self._finished = self._created = 0
        self._lock = threading.Lock()

    def made(self, workers: int, progress: Callable[[float], None] | None) -> MachineRuns:
        """Make them."""
        arrays = self._arrays
        threads = [threading.Thread(target=self._work) for _ in range(min(workers, -(-arrays.count // self._lanes)))]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(_LOOK_EVERY)
                    if progress is not None:
                        progress(self._finished / arrays.count)
        finally:
            arrays.stop[0] = 1  # nothing asks for it any more where all is done
            for thread in threads:
                while thread.is_alive():
                    with suppress(KeyboardInterrupt):
                        thread.join()
        if progress is not None:
            progress(self._finished / arrays.count)
        if self._created < len(threads):
            raise MemoryError
        failures = {machine: text for machine in range(arrays.count) if (text := arrays.reason(machine))}
        warnings = sorted(self._warnings, key=itemgetter(0))
        return MachineRuns(arrays.rows, arrays.done, arrays.counts, arrays.alone, arrays.records, failures, warnings)

    def _work(self) -> None:
        logger = _logger(self._warnings)
        group = ctypes.c_void_p(self._loaded.mbsfmu_create_group(logger))
        if not group:
            return
        self._created += 1
        try:
            while (first := self._next()) is not None and not self._arrays.stop[0]:
                given = self._arrays.group(first)
                self._loaded.mbsfmu_start_groups(group, given, 1)
                self._loaded.mbsfmu_advance_groups(group, given, 1)
                with self._lock:
                    self._finished += given.machines
        finally:
            self._loaded.mbsfmu_destroy_group(group)

    def _next(self) -> int | None:
        """Return the first machine of the next group."""
        with self._lock:
            return next(self._groups, None)


class OpenMachines:
    """Machines that go on whenever they are asked to; of each the last row is known.

    Parameters
    ----------
    library
        The code.
    data
        The machines.
    columns
        What is recorded: indices into the variables that change.
    workers
        How many threads share the machines.

    Attributes
    ----------
    parameters
        Those that machines start with, shape (n, number of parameters).
    time
        Time in s that each machine has come to, NaN where it has failed, shape (n,).
    warnings
        What was told of a machine, with its number, since somebody took them.

    Raises
    ------
    MemoryError
        When there is not enough of it.
    """

    def __init__(self, library: EnsembleLibrary, data: MachineData, columns: Sequence[int], workers: int) -> None:
        self._loaded = library._loaded
        count = len(data.parameters)
        self._arrays = arrays = _MachineArrays(library, data, np.zeros((count, 1)), columns, first_row=0)
        self.parameters, self.time = arrays.parameters, np.full(count, np.nan)
        self.warnings: list[tuple[int, str]] = []
        self._logger = _logger(self.warnings)
        firsts = range(0, count, library.vectors.lanes)
        self._given = (_Machines * len(firsts))(*(arrays.group(first) for first in firsts))
        self._groups = (ctypes.c_void_p * len(firsts))()
        self._closing = weakref.finalize(self, _destroy, library._loaded, self._groups, self._logger)
        for place in range(len(firsts)):
            created = library._loaded.mbsfmu_create_group(self._logger)
            if not created:
                raise MemoryError
            self._groups[place] = created
        shares = np.array_split(np.arange(len(firsts)), min(workers, len(firsts)))
        self._shares = [(int(share[0]), len(share)) for share in shares]
        self._threads = ThreadPoolExecutor(len(shares))

    @property
    def rows(self) -> Floats:
        """The last row of each machine, shape (n, number of columns); NaN where it has failed."""
        return self._arrays.rows[:, 0]

    @property
    def counts(self) -> Floats:
        """Statistics of each machine since its start, in the places of `count_places`, shape (n, number of counts)."""
        return self._arrays.counts

    @property
    def records(self) -> Floats:
        """Error record of each machine, shape (n, its size); of size zero where errors are not estimated."""
        return self._arrays.records

    def start(self, chosen: NDArray[np.bool_]) -> dict[int, str]:
        """Start some machines, at time zero.

        Parameters
        ----------
        chosen
            Which, shape (n,).

        Returns
        -------
        dict
            Why machines failed, by their numbers.
        """
        self._arrays.chosen[:] = chosen
        self.time[chosen] = 0.0
        return self._made(self._loaded.mbsfmu_start_groups, chosen)

    def advance(self, until: Floats, inputs: Mapping[int, Floats]) -> dict[int, str]:
        """Let all machines that have not failed go on.

        Parameters
        ----------
        until
            Time in s that each comes to, shape (n,); those that are there stay.
        inputs
            What inputs are set to at the beginning, by their index, in each machine, shape (n,).

        Returns
        -------
        dict
            As for `start`.
        """
        arrays, running = self._arrays, np.isfinite(self.time)
        arrays.newly[:] = 0
        arrays.newly[list(inputs)] = 1
        for index, values in inputs.items():
            arrays.set[:, index] = values
        arrays.times[:, 0] = until
        self.time[running] = until[running]
        return self._made(self._loaded.mbsfmu_advance_groups, running)

    def _made(self, function: Any, chosen: NDArray[np.bool_]) -> dict[int, str]:
        """Call a function of C on all groups in threads; returns which of the chosen machines have failed, and why."""
        arrays = self._arrays
        arrays.done[chosen] = 0
        arrays.rows[chosen] = np.nan
        calls = [self._threads.submit(self._call, function, *share) for share in self._shares]
        try:
            while wait(calls, _LOOK_EVERY).not_done:  # with a timeout it can be interrupted on every platform
                pass
            for call in calls:
                call.result()
        except BaseException:
            arrays.stop[0] = 1
            self.close()
            raise
        failed = np.flatnonzero(chosen & (arrays.done == 0)).tolist()
        self.time[failed] = np.nan
        return {machine: arrays.reason(machine) for machine in failed}

    def _call(self, function: Any, first: int, count: int) -> None:
        """Call a function of C on some groups."""
        groups = ctypes.byref(self._groups, first * ctypes.sizeof(ctypes.c_void_p))
        given = ctypes.byref(self._given, first * ctypes.sizeof(_Machines))
        function(
            ctypes.cast(groups, ctypes.POINTER(ctypes.c_void_p)), ctypes.cast(given, ctypes.POINTER(_Machines)), count
        )

    def close(self) -> None:
        """Let go of the memory."""
        self._threads.shutdown()
        self._closing()


def _destroy(loaded: ctypes.CDLL, groups: ctypes.Array[ctypes.c_void_p], _logger: Any) -> None:
    """Destroy groups, whose logger has lived as long."""
    for group in groups:
        if group:
            loaded.mbsfmu_destroy_group(group)


def _logger(warnings: list[tuple[int, str]]) -> Any:
    """Return a logger of C that keeps what is told of machines, with their numbers."""

    def keep(machine: int | None, _status: int, sentence: bytes) -> None:
        warnings.append((machine or 0, sentence.decode()))

    return _Logger(keep)


def kept_ensemble_library(
    simulation: Simulation, key: object, lanes: int | None, *, errors: bool
) -> EnsembleLibrary | None:
    """Return compiled code that was made before; None where there is none. Arguments as for `ensemble_library`."""
    vectors = vectors_of_this_machine().narrowed(lanes)
    name = None if key is None else kept_name(_kept_as(key, vectors, errors=errors))
    if name is not None and (library := kept_library(name, vectors.flags)) is not None:
        with suppress(MisfitError, OSError):
            return EnsembleLibrary(library, simulation, name, vectors, errors=errors)
    return None


def _kept_as(key: object, vectors: Vectors, *, errors: bool) -> str:
    return content_key("ensemble", key, vectors, errors, toolkit())


def ensemble_library(simulation: Simulation, key: object, lanes: int | None, *, errors: bool) -> EnsembleLibrary:
    """Return compiled code that runs machines of a simulation at once; what was made before is used again.

    Parameters
    ----------
    simulation
        A simulation of double-step with the trapezoidal rule or a Rosenbrock method.
    key
        What the equations follow from; None where nobody knows.
    lanes
        How many machines are computed at once; as many as the processor can by default.
    errors
        Whether errors are estimated.

    Raises
    ------
    InputError
        When there is no C compiler, or a function of the model cannot be written for several machines at once.
    CompilerError
        When the compiler does not do its work.
    """
    if not is_compiled():
        raise InputError(f"ensembles run in compiled code, which {SWITCH} = 0 forbids; run machines one by one")
    if not has_compiler():
        raise InputError(
            "ensembles need a C compiler: install one (Debian: apt install gcc) or pip install 'mbsfmu[cross]', or run "
            "machines one by one"
        )
    if (kept := kept_ensemble_library(simulation, key, lanes, errors=errors)) is not None:
        return kept
    vectors = vectors_of_this_machine().narrowed(lanes)
    sources = ensemble_sources(simulation, vectors.lanes, vector_mathematics=vectors.mathematics, errors=errors)
    name = content_key(sorted(sources.items()), vectors, sorted(ENSEMBLE.items()))
    files = {**sources, **identity_source(name)}
    try:
        library = compile_library(files, ENSEMBLE, None, key=name, portable=False, flags=vectors.flags)
        made = EnsembleLibrary(library, simulation, name, vectors, errors=errors)
    except OSError as error:
        raise CompilerError(f"the code of ensembles cannot be loaded: {error}") from None
    simulation.functions.traces.keep()
    if key is not None:
        keep_name(_kept_as(key, vectors, errors=errors), name)
    return made
