"""An FMU on a worker of a Dask cluster, as the worker has it."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.metadata
import math
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from distributed import get_worker

from mbsfmu.base.files import complete_file
from mbsfmu.cosim.fmus.archive import Archive, PlacedArchive
from mbsfmu.cosim.fmus.fmu_instance import FmuError
from mbsfmu.cosim.fmus.isolation import Call, Failure, FmuProcess, Reply
from mbsfmu.cosim.fmus.isolation_worker import Service


def version() -> str:
    """Return the version of this package that the worker has."""
    return importlib.metadata.version("mbsfmu")


def digest_of(content: bytes) -> str:
    """Return the name of a file by its content."""
    return hashlib.sha256(content).hexdigest()


class FmuActor:
    """An FMU in a process of its own on this host; where there are no such processes, in that of the worker.

    Messages are those of isolated FMUs. Calls that compute are made in a thread of its own, so that the FMUs of one
    worker step at the same time.

    Parameters
    ----------
    name
        What messages call it.
    limit
        Time in s of the clock that a call may take; None for any.
    """

    def __init__(self, name: str, limit: float | None) -> None:
        self._folder = Path(get_worker().local_directory, "fmus")
        self._thread = ThreadPoolExecutor(1, f"FMU {name}")
        self._process = FmuProcess(name, limit) if os.name == "posix" else None
        self._service = Service() if self._process is None else None
        self._archive: Archive | None = None

    def knows(self, digest: str) -> bool:
        """Return whether the worker has a file already, by its SHA-256."""
        return self._file(digest).is_file()

    def take(self, digest: str, content: bytes) -> None:
        """Keep a file for as long as the worker lives."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with complete_file(self._file(digest)) as partial_file:
            partial_file.write_bytes(content)

    def _file(self, digest: str) -> Path:
        return self._folder / f"{digest}.fmu"

    async def unpack(self, digest: str, exchanged: bool | None, called: str) -> PlacedArchive | Failure:
        """Unpack a file and return what the master needs of it; what is wrong with it otherwise."""
        return await self._apart(self._unpack, digest, exchanged, called)

    def _unpack(self, digest: str, exchanged: bool | None, called: str) -> PlacedArchive | Failure:
        try:
            self._archive = Archive(self._file(digest), exchanged, called)
        except Exception as error:
            return Failure.of(error)
        return PlacedArchive(dict(self._archive.flat_names), self._archive.exchanged, self._archive.carried)

    async def serve(self, calls: list[Call], time: float) -> Reply:
        """Let the FMU make calls at a time in s; a process that ends or is late is a failure of the reply."""
        return await self._apart(self._serve, calls, time)

    def _serve(self, calls: list[Call], time: float) -> Reply:
        own = [(name, rest[0], self._archive, *rest[2:]) if name == "make" else (name, *rest) for name, *rest in calls]
        if self._process is None:
            assert self._service is not None
            return self._service.serve(own)
        try:
            self._process.send(own, time)
            return self._process.receive()
        except FmuError as error:
            return Reply([], Failure.of(error), None, [], None, math.inf)

    async def close(self) -> None:
        """End the process and remove what was unpacked; the FMU has made its last calls."""
        await self._apart(self._close)
        self._thread.shutdown(wait=False)

    def _close(self) -> None:
        if self._process is not None:
            self._process.close()
        if self._archive is not None:
            self._archive.close()

    async def _apart(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(function, *arguments))
