"""Compiled code that runs many machines of one model at once, each in a lane of the processor's vectors."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import content_key
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.compiler import SWITCH, compile_library, has_compiler, is_compiled, kept_library
from mbsfmu.io.signals import AnySignal
from mbsfmu.native.c_sources import ENSEMBLE, ensemble_sources, identity_source
from mbsfmu.native.compiled import keep_name, kept_name
from mbsfmu.native.loop import FollowedSignals, MisfitError, SignalRow, count_places
from mbsfmu.native.processor import Vectors, vectors_of_this_machine
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.tracing.kept_traces import toolkit
from mbsfmu.tracing.workspace import Floats

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
        ("times", ctypes.c_void_p),
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
        loaded.mbsfmu_run_machines.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Machines)]
        loaded.mbsfmu_run_machines.restype = None

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


class _Runs:
    """Runs of all machines, group by group."""

    def __init__(self, library: EnsembleLibrary, data: MachineData, times: Floats, columns: Sequence[int]) -> None:
        self._library, self._loaded, self._lanes = library, library._loaded, library.vectors.lanes
        self._data = data
        self._count = len(data.parameters)
        self._parameters = np.ascontiguousarray(data.parameters)
        self._inputs = np.ascontiguousarray(data.inputs)
        self._times = np.ascontiguousarray(times)
        self._columns = np.array(columns, dtype=np.intc)
        self._rows = np.full((self._count, len(times), len(columns)), np.nan)
        self._done = np.zeros(self._count, dtype=np.intc)
        self._counts = np.zeros((self._count, library._counts))
        self._alone = np.zeros(self._count)
        self._records = np.zeros((self._count, library._record))
        self._reasons = np.zeros((self._count, library._reason), dtype=np.uint8)
        self._stop = np.zeros(1, dtype=np.intc)
        followed = [FollowedSignals.of(each) for each in data.signals]
        self._followed = followed * (self._count if len(followed) == 1 else 1)
        self._signals = (ctypes.POINTER(SignalRow) * self._count)(*(each.rows for each in self._followed))
        self._signal_counts = np.array([len(each.rows) for each in self._followed], dtype=np.intc)
        self._warnings: list[tuple[int, str]] = []
        self._groups = iter(range(0, self._count, self._lanes))
        self._finished = self._created = 0
        self._lock = threading.Lock()

    def made(self, workers: int, progress: Callable[[float], None] | None) -> MachineRuns:
        """Make them."""
        threads = [threading.Thread(target=self._work) for _ in range(min(workers, -(-self._count // self._lanes)))]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(_LOOK_EVERY)
                    if progress is not None:
                        progress(self._finished / self._count)
        finally:
            self._stop[0] = 1  # nothing asks for it any more where all is done
            for thread in threads:
                while thread.is_alive():
                    with suppress(KeyboardInterrupt):
                        thread.join()
        if progress is not None:
            progress(self._finished / self._count)
        if self._created < len(threads):
            raise MemoryError
        texts = (bytes(row).partition(b"\0")[0].decode() for row in self._reasons)
        failures = {machine: text for machine, text in enumerate(texts) if text}
        warnings = sorted(self._warnings, key=itemgetter(0))
        return MachineRuns(self._rows, self._done, self._counts, self._alone, self._records, failures, warnings)

    def _work(self) -> None:
        logger = _Logger(self._told)
        group = ctypes.c_void_p(self._loaded.mbsfmu_create_group(logger))
        if not group:
            return
        self._created += 1
        try:
            while (first := self._next()) is not None and not self._stop[0]:
                machines = min(self._lanes, self._count - first)
                self._loaded.mbsfmu_run_machines(group, self._handed(first, machines))
                with self._lock:
                    self._finished += machines
        finally:
            self._loaded.mbsfmu_destroy_group(group)

    def _next(self) -> int | None:
        """Return the first machine of the next group."""
        with self._lock:
            return next(self._groups, None)

    def _told(self, machine: int | None, _status: int, sentence: bytes) -> None:
        self._warnings.append((machine or 0, sentence.decode()))

    def _handed(self, first: int, machines: int) -> _Machines:
        arrays = self._parameters, self._inputs, self._rows, self._done, self._counts, self._alone, self._records
        parameters, inputs, rows, done, counts, alone, records = (each[first:].ctypes.data for each in arrays)
        signals = ctypes.addressof(self._signals) + first * ctypes.sizeof(ctypes.c_void_p)
        return _Machines(
            machines=machines,
            first=first,
            parameters=parameters,
            inputs=inputs,
            signals=signals,
            signal_counts=self._signal_counts[first:].ctypes.data,
            held=self._data.held.ctypes.data,
            step_size=self._data.step,
            times=self._times.ctypes.data,
            count=len(self._times),
            columns=self._columns.ctypes.data,
            column_count=len(self._columns),
            rows=rows,
            done=done,
            counts=counts,
            alone=alone,
            records=records,
            reasons=self._reasons[first:].ctypes.data,
            stop=self._stop.ctypes.data,
        )


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
        A simulation of double-step with the trapezoidal rule.
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
