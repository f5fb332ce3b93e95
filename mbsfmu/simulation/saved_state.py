"""Saved states as bytes, and checkpoints from which a killed run goes on."""

from __future__ import annotations

import hashlib
import json
import time as clock
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import opened, sealed
from mbsfmu.initialization.coordinates import Partition
from mbsfmu.integration.solver import Statistics
from mbsfmu.io.checkpoints import PARTS, CheckpointFile
from mbsfmu.simulation.run_loop import Place, Recording, RunLoop
from mbsfmu.simulation.watches import EnergyWatch
from mbsfmu.stepping.state import ARRAYS, State, array_sizes
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

_DAMAGED = "the saved state is refused: it is damaged"


@dataclass(frozen=True)
class SavedState:
    """Complete state of a simulation.

    Attributes
    ----------
    place
        Where the course is.
    step
        Internal step in s.
    tolerances
        Relative and absolute tolerance of a solver that chooses its steps, shape (2,); zero for others.
    parameters, inputs, held, calculated
        As the simulation has them.
    energies
        What the watch on energy has seen.
    stepped
        Whether a step was made since initialization.
    """

    place: Place
    step: float
    tolerances: Floats
    parameters: Floats
    inputs: Floats
    held: NDArray[np.bool_]
    calculated: Floats
    energies: Floats
    stepped: bool

    @classmethod
    def of(cls, run_loop: RunLoop, watch: EnergyWatch) -> SavedState:
        """Return the present state of a simulation."""
        solver, inputs = run_loop.solver, run_loop.inputs
        return cls(
            run_loop.place if run_loop.state is not None else replace(run_loop.place, effective=inputs.values),
            solver.step,
            solver.tolerances,
            run_loop.parameters,
            inputs.values,
            inputs.held,
            run_loop.calculated,
            watch.numbers,
            run_loop.stepped,
        )

    def put_back(self, run_loop: RunLoop, watch: EnergyWatch) -> None:
        """Restore a simulation."""
        solver, inputs = run_loop.solver, run_loop.inputs
        solver.step = self.step
        solver.tolerances = self.tolerances
        run_loop.take_parameters(self.parameters)
        inputs.values, inputs.held = self.inputs, self.held
        watch.numbers = self.energies
        run_loop.calculated, run_loop.stepped = self.calculated, self.stepped
        run_loop.go_to(self.place)
        inputs.since = run_loop.time


class StateFormat:
    """Serialization of the states of one system.

    Parameters
    ----------
    functions
        Functions of the system; they tell the sizes.
    calculated, energies
        Number of calculated parameters, and of what the watch on energy has seen.
    identity
        Of the simulation: states of others are refused.
    """

    def __init__(self, functions: SystemFunctions, calculated: int, energies: int, identity: str) -> None:
        n, inputs = len(functions.coordinates), len(functions.inputs)
        own = (calculated, len(functions.discrete), energies)
        self._head = (8, len(functions.parameters), inputs, inputs, inputs, *own)
        self._body = array_sizes(functions)
        self._size = sum(self._head) + sum(self._body) + n
        self._coordinates = n
        self._identity = identity

    def pack(self, snapshot: SavedState) -> bytes:
        """Return a state as bytes."""
        place, state = snapshot.place, snapshot.place.state
        times = [place.time, place.passed, place.sampled, snapshot.step]
        flags = [*times, *snapshot.tolerances, float(snapshot.stepped), float(state is not None)]
        parts = [
            flags,
            snapshot.parameters,
            snapshot.inputs,
            snapshot.held,
            place.effective,
            snapshot.calculated,
            place.discrete,
            snapshot.energies,
        ]
        if state is None:
            parts.append(np.zeros(self._size - sum(self._head)))
        else:
            parts += [getattr(state, name) for name in ARRAYS]
            independent = np.full(self._coordinates, -1.0)
            if state.partition is not None:
                independent[:] = 0.0
                independent[state.partition.independent] = 1.0
            parts.append(independent)
        return sealed(self._identity, np.concatenate([np.asarray(part, dtype=float) for part in parts]).tobytes())

    def unpack(self, saved: bytes) -> SavedState:
        """Return the state from bytes.

        Raises
        ------
        InputError
            When the bytes are of another model or formulation, or damaged.
        """
        content = opened(self._identity, saved)
        if len(content) != 8 * self._size:
            raise InputError(f"{_DAMAGED}: it has {len(content)} bytes; a state of this model has {8 * self._size}")
        sizes = (*self._head, *self._body, self._coordinates)
        numbers = np.frombuffer(content, dtype=float)
        flags, parameters, inputs, held, effective, calculated, discrete, energies, *rest = (
            part.copy() for part in np.split(numbers, np.cumsum(sizes)[:-1])
        )
        *arrays, independent = rest
        self._check(flags, held, independent)
        followed = dict(zip(ARRAYS, arrays, strict=True))["error_record"][-2:-1]
        counts = np.concatenate([energies[:1], followed])
        if not (np.isfinite(counts).all() and (counts >= 0.0).all()):
            raise InputError(f"{_DAMAGED}: it says what no simulation can be in")
        state = None
        if flags[7]:
            partition = None
            if not (independent == -1.0).any() or not len(independent):
                chosen = [index for index, flag in enumerate(independent) if flag == 1.0]
                partition = Partition.of(chosen, self._coordinates)
            state = State(**dict(zip(ARRAYS, arrays, strict=True)), partition=partition)
        time, passed, sampled, step = flags[:4].tolist()
        place = Place(time, passed, sampled, state, effective, discrete)
        stepped = bool(flags[6])
        return SavedState(place, step, flags[4:6], parameters, inputs, held == 1.0, calculated, energies, stepped)

    @staticmethod
    def _check(flags: Floats, held: Floats, independent: Floats) -> None:
        """Check that the numbers of a state are possible."""
        words = np.concatenate([flags[6:], held])
        possible = np.isfinite(flags).all() and flags[3] > 0 and np.isin(words, (0.0, 1.0)).all()
        if not (possible and np.isin(independent, (-1.0, 0.0, 1.0)).all()):
            raise InputError(f"{_DAMAGED}: it says what no simulation can be in")


@dataclass
class CheckedRun:
    """A run that is made in parts, with checkpoints between them.

    Attributes
    ----------
    file
        The checkpoint of its call.
    save, restore
        Functions that give the complete state of the simulation as bytes, and put it back.
    seconds
        Time on the clock in s that the run took in earlier processes.
    """

    file: CheckpointFile
    save: Callable[[], bytes]
    restore: Callable[[bytes], None]
    seconds: float = 0.0

    def go_on(self, recording: Recording, statistics: Statistics) -> None:
        """Bring the run to its last checkpoint, if there is one.

        Parameters
        ----------
        recording
            Gets the rows until then.
        statistics
            Get what it has cost until then.

        Raises
        ------
        InputError
            When the checkpoint is of another call, or damaged.
        """
        content = self.file.read()
        if content is None:
            return
        self.restore(content["state"])
        rows: Floats = content["rows"]
        assert recording.rows is not None
        recording.rows[: len(rows)] = rows
        recording.done = len(rows)
        _put_back(statistics, content["statistics"])
        self.seconds = content["seconds"]

    def parts(self, recording: Recording, statistics: Statistics) -> Iterator[Recording]:
        """Yield the parts of a recording that are left, and write checkpoints between them.

        Where a part ends, the state is taken, whether a file is written or not: inputs are moved on to there, so that
        the result does not depend on when the process ends.

        Raises
        ------
        WriteError
            When a checkpoint cannot be written.
        """
        begin = clock.monotonic()
        count = len(recording.times) - 1
        ends = [-(-count * part // PARTS) for part in range(1, PARTS + 1)]
        for end in dict.fromkeys(ends):
            start = recording.done - 1
            if end <= start:
                continue
            part = recording.part(start, end)
            try:
                yield part
            finally:
                recording.done = start + part.done
            recording.report_progress()
            if end == count:
                return
            saved = self.save()
            if self.file.is_due:
                self._write(saved, recording, statistics, self.seconds + clock.monotonic() - begin)

    def _write(self, saved: bytes, recording: Recording, statistics: Statistics, seconds: float) -> None:
        _, rows = recording.recorded
        content = {"state": saved, "rows": rows, "statistics": _counted(statistics), "seconds": seconds}
        self.file.write(float(recording.times[recording.done - 1]), content)


def call_in_words(
    name: str, identity: str, values: Mapping[str, Floats], stop: float, output_step: float
) -> dict[str, str]:
    """Return what a run was called with, for comparisons of calls.

    Parameters
    ----------
    name, identity
        The model, and its equations and options.
    values
        Arrays that may be set before a run.
    stop, output_step
        In s.
    """
    numbers = json.dumps({each: np.asarray(array, dtype=float).tolist() for each, array in values.items()})
    return {
        "the model": name,
        "the stop time": f"{float(stop)!r} s",
        "the output step": f"{float(output_step)!r} s",
        "the equations and options": hashlib.sha256(identity.encode()).hexdigest()[:12],
        "the values": hashlib.sha256(numbers.encode()).hexdigest()[:12],
        "the version": version("mbsfmu"),
    }


def _counted(statistics: Statistics) -> dict[str, Any]:
    numbers = {each.name: getattr(statistics, each.name) for each in fields(statistics) if each.name != "iterations"}
    levels = {name: [count.solutions, count.total, count.most] for name, count in statistics.iterations.items()}
    return {**numbers, "iterations": levels}


def _put_back(statistics: Statistics, counted: Mapping[str, Any]) -> None:
    for name, value in counted.items():
        if name != "iterations":
            setattr(statistics, name, value)
    for name, (solutions, total, most) in counted["iterations"].items():
        count = statistics.iterations[name]
        count.solutions, count.total, count.most = solutions, total, most
