"""A process of its own for an FMU, on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from socket import socketpair

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.fmus.fmu_instance import FmuError
from mbsfmu.cosim.fmus.isolation.channel import Channel
from mbsfmu.cosim.fmus.isolation.messages import Call, Reply
from mbsfmu.cosim.fmus.isolation.remote_fmu import RemoteFmu, doing

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
                [sys.executable, "-m", f"{__package__}.worker", *map(str, handles)],
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
