"""Worker process of an FMU: loads it and makes the master's calls."""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
import threading
from socket import socket
from typing import Any

import numpy as np

from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmu_instance import Instance, Port
from mbsfmu.cosim.fmus.instantiation import make_instance
from mbsfmu.cosim.fmus.isolation import DESCRIBED, Call, Channel, Failure, Log, Reply
from mbsfmu.cosim.fmus.library_instance import LibraryInstance


class _Logs(logging.Handler):
    """Stores log records until they are sent."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Log] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append((record.name, record.levelno, record.getMessage()))


class Service:
    """The FMU of this process, and its ports by number; methods are the allowed calls."""

    def __init__(self) -> None:
        self._logs = _Logs()
        self._instance: Instance | None = None
        self._ports: dict[int, Port] = {}
        logger = logging.getLogger("mbsfmu")
        logger.handlers[:] = [self._logs]
        logger.propagate = False

    def serve(self, calls: list[Call]) -> Reply:
        """Make calls in turn, up to the first that goes wrong."""
        answers, failure = [], None
        for name, *arguments in calls:
            try:
                own = getattr(self, f"call_{name}", None)
                answers.append((own or getattr(self._instance, name))(*arguments))
            except Exception as error:
                failure = Failure.of(error)
                break
        logs, self._logs.kept = self._logs.kept, []
        instance = self._instance
        if instance is None:
            return Reply(answers, failure, None, logs, None, math.inf)
        happened, instance.happened = instance.happened, math.inf
        return Reply(answers, failure, instance.ends.get(instance.name), logs, instance.events, happened)

    def call_make(self, name: str, archive: Archive, solver: str, values: dict[str, Any], level: int) -> dict[str, Any]:
        """Load the FMU and return its data."""
        logging.getLogger("mbsfmu").setLevel(level)
        LibraryInstance.has_company = False
        instance = self._instance = make_instance(name, archive, solver, values)
        described = {each: getattr(instance, each) for each in DESCRIBED}
        return {**described, "arrays": dict(instance.arrays)}

    def call_port(self, number: int, names: tuple[str, ...]) -> bool:
        """Make a port and return whether all of its variables are Real."""
        assert self._instance is not None
        self._ports[number] = self._instance.port(names)
        return self._ports[number].all_real

    def call_write(self, number: int, values: bytes) -> None:
        """Set variables."""
        port = self._ports[number]
        port.values[:] = np.frombuffer(values)
        port.write()

    def call_write_slopes(self, number: int, slopes: bytes) -> None:
        """Set first derivatives by time."""
        port = self._ports[number]
        port.slopes[:] = np.frombuffer(slopes)
        port.write_slopes()

    def call_read(self, number: int) -> bytes:
        """Read variables."""
        return self._ports[number].read().tobytes()

    def call_read_rates(self, number: int) -> bytes:
        """Read first derivatives by time."""
        return self._ports[number].read_rates().tobytes()

    def call_try(self, name: str, *arguments: Any) -> Any:
        """Make a call whose answer may not be needed: what goes wrong in it is its answer."""
        try:
            return (getattr(self, f"call_{name}", None) or getattr(self._instance, name))(*arguments)
        except Exception as error:
            return Failure.of(error)


def main() -> None:
    """Serve the master at the other end of a connection, until it closes it or ends."""
    channel, lifeline = Channel(socket(fileno=int(sys.argv[1]))), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        os.read(lifeline, 1)  # comes back when the master has ended, however it did
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    service = Service()
    channel.send(())
    while True:
        try:
            calls = channel.receive()
        except (EOFError, ConnectionError):
            return
        channel.send(tuple(service.serve(calls)))


if __name__ == "__main__":
    main()
