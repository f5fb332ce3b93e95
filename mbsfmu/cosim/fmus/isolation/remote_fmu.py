"""An FMU outside the process of the master, as the master sees it: it is asked, and may end or be late."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence

from mbsfmu.cosim.fmus.isolation.messages import Call, Reply

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
