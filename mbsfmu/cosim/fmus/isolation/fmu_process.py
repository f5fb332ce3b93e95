"""The process of an FMU as the master sees it: it is asked, and may end or be late."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from socket import socketpair

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.fmus.fmu_instance import FmuError
from mbsfmu.cosim.fmus.isolation.channel import Channel
from mbsfmu.cosim.fmus.isolation.messages import Call, Reply

_PATIENCE = 5.0  # s for a process to end
_PATIENCE_AT_FIRST = 120.0  # s for a process to begin
_DOING = {
    "make": "while it was loaded",
    "setup": "in its initialization",
    "enter_initialization": "in its initialization",
    "exit_initialization": "in its initialization",
    "step": "in its step",
    "close": "while it was freed",
}
_OTHERWISE = "while its variables were set and read"


class FmuProcess:
    """A process of its own for an FMU.

    Parameters
    ----------
    name
        Name of the FMU.
    limit
        Time in s of the clock that a call may take; None for any.

    Attributes
    ----------
    end
        When the FMU has ended the run, in s; None where it has not.

    Raises
    ------
    InputError
        Where there are no such processes.
    """

    def __init__(self, name: str, limit: float | None) -> None:
        if os.name != "posix":
            raise InputError(f"{name} cannot have a process of its own on {sys.platform}; leave out isolate")
        self.name, self._limit = name, limit
        self._began = self._asked = self._closed = False
        self.end: float | None = None
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

    def ask(self, calls: list[Call], time: float) -> Reply:
        """Let the FMU make calls at a time in s, and return what they gave.

        Raises
        ------
        FmuError
            When the process ends or does not answer in time: then it is ended; what a call raises otherwise.
        """
        self._asked = True
        try:
            if not self._began:
                self._begin()
            self._channel.send(calls)
            reply = Reply(*self._channel.receive())
        except TimeoutError:
            self._end()
            message = f"did not come back within {self._limit:g} s {self._doing(calls)}, and was ended"
            raise FmuError(
                f"{self.name} at t = {time:.9g} s {message}; a larger time limit gives it longer", True
            ) from None
        except (EOFError, ConnectionError):
            doing = self._doing(calls)
            raise FmuError(f"{self.name} at t = {time:.9g} s: its process {self._death()} {doing}", True) from None
        self._asked, self.end = False, reply.end
        for logger, level, text in reply.logs:
            logging.getLogger(logger).log(level, "%s", text)
        if reply.failure is not None:
            raise reply.failure.exception()
        return reply

    def _begin(self) -> None:
        """Wait until the process has loaded what it needs, which says nothing of its FMU."""
        self._channel.wait_for(_PATIENCE_AT_FIRST)
        self._channel.receive()
        self._channel.wait_for(self._limit)
        self._began = True

    @staticmethod
    def _doing(calls: list[Call]) -> str:
        return next((_DOING[name] for name, *_ in reversed(calls) if name in _DOING), _OTHERWISE)

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
