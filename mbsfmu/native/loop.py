"""Compiled loop of runs in process: steps, discontinuities, updates and readings in one call."""

from __future__ import annotations

import ctypes
import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.initialization.coordinates import Partition
from mbsfmu.integration.solver import Statistics
from mbsfmu.io.signals import AnySignal
from mbsfmu.native.shared import COUNTS, LEVELS, PRESENT
from mbsfmu.simulation.run_loop import Place, Recording, RunLoop, Runner
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.stepping.state import ARRAYS, State, array_sizes
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

_LOOK_EVERY = 0.1  # s, at what a run that takes long has done
_ROOM = 4096  # for ends of steps, in a first call
_COUNTED = {"evaluations": "rhs_evaluations"}  # whose name in C is another one

_LOGGER = logging.getLogger(__name__)
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
