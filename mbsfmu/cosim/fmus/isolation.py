"""FMUs in separate processes: a crash or endless call does not affect the master.

Messages between the master and the process of an FMU.

The master sends a list of calls, each a tuple of a name and arguments; the process makes them in turn, up to the first
that goes wrong, and sends one `Reply`. Numbers go as the bytes that they are: nothing is rounded.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import struct
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from socket import socket, socketpair
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.fmus.archive import Archive, PlacedArchive
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuEnded, FmuError, Instance, Port

_LENGTH = struct.Struct("=Q")
_ONCE = 1 << 16  # bytes that are asked for at once: nearly always all


class Channel:
    """One end.

    Parameters
    ----------
    connected
        A socket that is connected with the other end; both are processes of ours, which trust each other.
    """

    def __init__(self, connected: socket) -> None:
        self._socket = connected

    def wait_for(self, limit: float | None) -> None:
        """Set the time limit of waiting in s; None for no limit, the default."""
        self._socket.settimeout(limit)

    def send(self, message: Any) -> None:
        """Send a message.

        Raises
        ------
        ConnectionError
            When nobody is at the other end.
        TimeoutError
            When nobody takes it.
        """
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._socket.sendall(_LENGTH.pack(len(data)) + data)

    def receive(self) -> Any:
        """Wait for a message and return it.

        Raises
        ------
        ConnectionError, EOFError
            When nobody is at the other end any more.
        TimeoutError
            When none comes in time.
        """
        data = self._part()
        while len(data) < _LENGTH.size or len(data) < _LENGTH.size + _LENGTH.unpack_from(data)[0]:
            data += self._part()
        return pickle.loads(memoryview(data)[_LENGTH.size :])

    def _part(self) -> bytes:
        data = self._socket.recv(_ONCE)
        if not data:
            raise EOFError
        return data

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


Call = tuple[Any, ...]
Log = tuple[str, int, str]
DESCRIBED = (
    "variables",
    "kinds",
    "units",
    "aliases",
    "wide",
    "structural",
    "configured",
    "dependencies",
    "initial_dependencies",
    "states",
    "derivatives",
    "default_experiment",
    "suggested_tolerance",
    "interpolates",
    "gives_rates",
    "gives_directional_derivatives",
    "saves_state",
    "serializes_state",
    "takes_any_step",
    "has_initialization_mode",
    "is_exchanged",
)
"""Instance attributes that the master knows, including `arrays`."""


class Failure(NamedTuple):
    """A transferred exception: its kind, message, and further data."""

    kind: str
    text: str
    fatal: bool = False
    time: float | None = None

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Return an exception in transferable form."""
        if isinstance(error, FmuError):
            return cls("unit", str(error), error.fatal, error.reached)
        if isinstance(error, FmuEnded):
            return cls("ended", "", time=error.time)
        kind = next((name for name, kind in _KINDS.items() if isinstance(error, kind)), "simulation")
        known = isinstance(error, tuple(_KINDS.values()))
        return cls(kind, str(error) if known else f"{type(error).__name__}: {error}")

    def exception(self) -> Exception:
        """Return the exception."""
        if self.kind == "unit":
            return FmuError(self.text, self.fatal, self.time)
        if self.kind == "ended":
            assert self.time is not None
            return FmuEnded(self.time)
        return _KINDS[self.kind](self.text)


_KINDS: dict[str, type[Exception]] = {"input": InputError, "simulation": SimulationError}


class Reply(NamedTuple):
    """Results of a list of calls.

    Attributes
    ----------
    answers
        What each of them has returned.
    failure
        What has gone wrong in the one after them.
    end
        When the FMU has ended the run, in s.
    logs
        What was logged: logger, level and text.
    events
        Number of events that the FMU's integration has handled; None where it is not integrated.
    happened
        When the first event inside of steps has happened since the last reply, in s; infinity for none.
    """

    answers: list[Any]
    failure: Failure | None
    end: float | None
    logs: list[Log]
    events: int | None
    happened: float


_DOING = {
    "make": "while it was loaded",
    "setup": "in its initialization",
    "enter_initialization": "in its initialization",
    "exit_initialization": "in its initialization",
    "step": "in its step",
    "close": "while it was freed",
}
_OTHERWISE = "while its variables were set and read"


def doing(calls: Sequence[Call]) -> str:
    """Return in words what an FMU does in calls."""
    return next((_DOING[name] for name, *_ in reversed(calls) if name in _DOING), _OTHERWISE)


class RemoteFmu(ABC):
    """Base of FMUs in other processes.

    Parameters
    ----------
    name
        Name of the FMU.

    Attributes
    ----------
    end
        When the FMU has ended the run, in s; None where it has not.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.end: float | None = None
        self._calls: list[Call] = []
        self._time = 0.0

    def send(self, calls: list[Call], time: float) -> None:
        """Let the FMU make calls at a time in s; `receive` has what they give.

        Raises
        ------
        FmuError
            When its process has ended.
        """
        self._calls, self._time = calls, time
        self._send()

    @abstractmethod
    def _send(self) -> None:
        """Send the present calls; raises what `send` raises."""

    @abstractmethod
    def receive(self) -> Reply:
        """Wait for what the calls gave, and return it.

        Raises
        ------
        FmuError
            When the process ends or does not answer in time: then it is ended.
        """

    def answer(self) -> Reply:
        """Return what the calls gave; messages are logged.

        Raises
        ------
        FmuError
            As of `receive`; what a call raises otherwise.
        """
        reply = self.receive()
        self.end = reply.end
        for logger, level, text in reply.logs:
            logging.getLogger(logger).log(level, "%s", text)
        if reply.failure is not None:
            raise reply.failure.exception()
        return reply

    def ask(self, calls: list[Call], time: float) -> Reply:
        """Let the FMU make calls at a time in s, and return what they gave; raises what `send` and `answer` raise."""
        self.send(calls, time)
        return self.answer()

    @abstractmethod
    def close(self, *calls: Call) -> None:
        """Let the FMU make its last calls, if it still can, and end its process."""


_PATIENCE = 5.0  # s for a process to end
_PATIENCE_AT_FIRST = 120.0  # s for a process to begin


class FmuProcess(RemoteFmu):
    """A process of its own for an FMU.

    Parameters
    ----------
    name
        Name of the FMU.
    limit
        Time in s of the clock that a call may take; None for any.

    Raises
    ------
    InputError
        Where there are no such processes.
    """

    def __init__(self, name: str, limit: float | None) -> None:
        if os.name != "posix":
            raise InputError(f"{name} cannot have a process of its own on {sys.platform}; leave out isolate")
        super().__init__(name)
        self._limit = limit
        self._began = self._asked = self._closed = False
        ours, theirs = socketpair()
        self._channel = Channel(ours)
        inside, self._lifeline = os.pipe()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        handles = theirs.fileno(), inside
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.isolation_worker", *map(str, handles)],
                pass_fds=handles,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,  # an interruption at the terminal is for the master alone
            )
        finally:
            theirs.close()
            os.close(inside)

    def _send(self) -> None:
        self._asked = True
        with self._watched():
            if not self._began:
                self._begin()
            self._channel.send(self._calls)

    def receive(self) -> Reply:
        """Wait for what the calls gave, and return it; raises what the base says."""
        with self._watched():
            reply = Reply(*self._channel.receive())
        self._asked = False
        return reply

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Say in words how the process ends, and end it when it is late."""
        try:
            yield
        except TimeoutError:
            self._end()
            message = f"did not come back within {self._limit:g} s {doing(self._calls)}, and was ended"
            raise FmuError(
                f"{self.name} at t = {self._time:.9g} s {message}; a larger time limit gives it longer", True
            ) from None
        except (EOFError, ConnectionError):
            message = f"its process {self._death()} {doing(self._calls)}"
            raise FmuError(f"{self.name} at t = {self._time:.9g} s: {message}", True) from None

    def _begin(self) -> None:
        """Wait until the process has loaded what it needs, which says nothing of its FMU."""
        self._channel.wait_for(_PATIENCE_AT_FIRST)
        self._channel.receive()
        self._channel.wait_for(self._limit)
        self._began = True

    def _death(self) -> str:
        """Wait for the process and say how it has ended."""
        try:
            status = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._end()
            return "does not answer and was ended"
        if status < 0:
            with contextlib.suppress(ValueError):
                return f"was ended by {signal.Signals(-status).name}"
            return f"was ended by the signal {-status}"
        return f"ended by itself with the status {status}"

    def _end(self) -> None:
        """End the process, and those that it has begun."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self, *calls: Call) -> None:
        """Let the FMU make its last calls, if it still can, and end the process."""
        if self._closed:
            return
        self._closed = True
        try:
            if calls and not self._asked:  # what did not answer has ended, or is ended here
                self.ask(list(calls), 0.0)
        finally:
            self._channel.close()
            os.close(self._lifeline)
            try:
                self._process.wait(_PATIENCE if not self._asked else 0.0)
            except subprocess.TimeoutExpired:
                self._end()


logger = logging.getLogger(__name__)


class IsolatedInstance(Instance):
    """An instance in a process of its own, here or on another host, in which it is one as any other.

    What is set, saved and restored waits for the next call that has an answer; what was read after the last step is
    read with the next one at once. So a step is one message to and fro, and the FMU sees the same calls in one order.

    Parameters
    ----------
    name
        Its name.
    archive
        The unpacked FMU.
    process
        Where it is.
    solver
        For an FMU for model exchange.
    values
        Start values by name, of which those of structural parameters are set.
    """

    def __init__(
        self,
        name: str,
        archive: Archive | PlacedArchive,
        process: RemoteFmu,
        solver: str,
        values: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        super().__init__(name)
        self.flat_names = archive.flat_names
        self._process = process
        self._waiting: list[Call] = []
        self._answers: dict[Call, Any] = {}
        self._wanted: dict[Call, None] = {}
        self._stepping: list[Call] = []
        self._ports = self._waited = 0
        level = logging.getLogger("mbsfmu").getEffectiveLevel()
        for attribute, value in self._ask(("make", name, archive, solver, dict(values), level)).items():
            setattr(self, attribute, value)

    steps_apart: ClassVar[bool] = True

    def _ask(self, *calls: Call) -> Any:
        """Let the FMU make calls, after those that wait; return what the first of these gave."""
        return self._ask_all(calls)[0]

    def _ask_all(self, calls: Sequence[Call]) -> list[Any]:
        self._send(calls)
        return self._answered()

    def _send(self, calls: Sequence[Call]) -> None:
        """Let the FMU make calls, after those that wait."""
        waiting, self._waiting = self._waiting, []
        self._waited = len(waiting)
        self._answers.clear()
        with self._noted():
            self._process.send([*waiting, *calls], self.time)

    def _answered(self) -> list[Any]:
        """Return what the calls gave that were sent last."""
        with self._noted():
            reply = self._process.answer()
        self.events, self.happened = reply.events, min(self.happened, reply.happened)
        return reply.answers[self._waited :]

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Note that the instance cannot be called any more, when an error says so."""
        try:
            yield
        except FmuError as error:
            self._fatal = self._fatal or error.fatal
            raise

    def later(self, *call: Any) -> None:
        """Queue a call for the next one with an answer."""
        self._waiting.append(call)

    def fetch(self, *call: Any) -> Any:
        """Return the answer of a read-only call, which is made with the next step too."""
        self._wanted[call] = None
        answer = self._answers[call] if call in self._answers and not self._waiting else self._ask(call)
        if isinstance(answer, Failure):
            raise answer.exception()
        return answer

    # -- life cycle -----------------------------------------------------------------------------------------

    def setup(self, start: float, stop: float, tolerance: float | None = None) -> None:
        """Set up the experiment, times in s; the tolerance of the FMU's own solver is what it suggests by default."""
        self.time = start
        self._ask(("setup", start, stop, tolerance))

    def enter_initialization(self) -> None:
        """Enter initialization mode."""
        self._ask(("enter_initialization",))

    def exit_initialization(self) -> None:
        """Leave initialization mode."""
        self._ask(("exit_initialization",))

    def step(self, time: float, step: float) -> None:
        """Make a step in s.

        Raises
        ------
        FmuError
            When the FMU refuses, or its process ends.
        FmuEnded
            When the FMU ended the run before the end of the step; at the end, it is noted in `ends`.
        """
        self.send_step(time, step)
        self.finish_step()

    def send_step(self, time: float, step: float) -> None:
        """Begin a step in s, which `finish_step` waits for."""
        self.clock.time = time
        self.clock.steps += 1
        self._stepping, self._wanted = list(self._wanted), {}
        self._send([("step", time, step), *(("try", *call) for call in self._stepping)])

    def finish_step(self) -> None:
        """Wait for the end of a step that was begun; raises what `step` raises."""
        try:
            _, *answers = self._answered()
        finally:
            if self._process.end is not None:
                self.ends[self.name] = self._process.end
        self._answers = dict(zip(self._stepping, answers, strict=True))

    def read_next_event(self) -> float:
        """Return when a signal of the FMU's own jumps or bends next, in s; infinity where it does not say."""
        return self.fetch("read_next_event")

    def close(self) -> None:
        """Free the instance and end its process."""
        try:
            self._process.close(("close",))
        except FmuError as error:
            logger.warning("%s", error)

    # -- states ---------------------------------------------------------------------------------------------

    def serialize(self) -> bytes:
        """Return the state for another process."""
        return self._ask(("serialize",))

    def deserialize(self, state: bytes) -> None:
        """Take a state of another process."""
        self._ask(("deserialize", state))
        self.ends.pop(self.name, None)

    def save(self, slot: str, time: float) -> None:
        """Keep the state at a time in s under a name; what was kept under it is replaced."""
        self.later("save", slot, time)

    def restore(self, slot: str) -> None:
        """Go back to the state that was kept under a name."""
        self.later("restore", slot)
        self.ends.pop(self.name, None)

    def release(self, slot: str) -> None:
        """Discard the state under a name."""
        self.later("release", slot)

    # -- values ---------------------------------------------------------------------------------------------

    def port(self, names: Sequence[str], values: Floats | None = None) -> Port:
        """Return a port of numeric variables; `values` is its array."""
        self._ports += 1
        return _IsolatedPort(self, names, values, self._ports, self._ask(("port", self._ports, tuple(names))))

    def set_start(self, name: str, value: Any) -> None:
        """Set a parameter, start value or String input, by the type of the variable.

        Raises
        ------
        InputError
            When there is no such variable, or the value is none of its type.
        """
        self._ask(("set_start", name, value))

    def read_text(self, name: str) -> str:
        """Return the value of a String variable."""
        return self.fetch("read_text", name)

    def directional_derivative(self, unknowns: Sequence[str], knowns: Sequence[str]) -> Floats:
        """Return the derivatives of unknowns by knowns, shape (number of unknowns, number of knowns)."""
        return self._ask(("directional_derivative", list(unknowns), list(knowns)))


class _IsolatedPort(Port):
    """A port of an FMU in a process of its own, which has one with the same number."""

    def __init__(
        self, instance: IsolatedInstance, names: Sequence[str], values: Floats | None, number: int, all_real: bool
    ) -> None:
        super().__init__(instance, names, values)
        self._unit, self._number, self._all_real = instance, number, all_real

    @property
    def all_real(self) -> bool:
        """Whether all variables are Real."""
        return self._all_real

    def read(self) -> Floats:
        """Read the variables into `values` and return it."""
        self.values[:] = np.frombuffer(self._unit.fetch("read", self._number))
        return self.values

    def write(self) -> None:
        """Set the variables to `values`; whole numbers are rounded."""
        self._unit.later("write", self._number, self.values.tobytes())

    def write_slopes(self) -> None:
        """Set the first derivatives of the inputs by time to `slopes`; all must be Real."""
        self._unit.later("write_slopes", self._number, self.slopes.tobytes())

    def read_rates(self) -> Floats:
        """Return the first derivatives of the outputs by time in 1/s; all must be Real."""
        return np.frombuffer(self._unit.fetch("read_rates", self._number))
