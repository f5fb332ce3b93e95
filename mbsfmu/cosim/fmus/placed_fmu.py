"""An FMU on a worker of a Dask cluster, as the master sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.fmus.archive import PlacedArchive
from mbsfmu.cosim.fmus.fmu_instance import FmuError
from mbsfmu.cosim.fmus.isolation import Call, Failure, RemoteFmu, Reply, doing
from mbsfmu.modelling import closest_match

_CONNECTING = 10.0  # s for a scheduler to answer
_BEGINNING = 180.0  # s for a worker to load what an FMU needs
_ON_THE_WAY = 20.0  # s beyond the time limit of a call, which the worker watches, for messages


class Workers:
    """The workers of a Dask cluster.

    Parameters
    ----------
    scheduler
        Address of its scheduler, `tcp://host:8786`; with `tls://` the certificates are those of Dask's configuration.

    Raises
    ------
    InputError
        When Dask is not installed, or nothing answers at the address.
    """

    def __init__(self, scheduler: str) -> None:
        try:
            from distributed import Client  # noqa: PLC0415 - an extra
        except ImportError:
            raise InputError("FMUs on other hosts need Dask: pip install 'mbsfmu[dask]'") from None
        try:
            # Other libraries in this process, as those of netCDF files, would take the default client for theirs.
            self.client = Client(scheduler, timeout=_CONNECTING, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise InputError(f"there is no Dask scheduler at '{scheduler}': {_first_line(error)}") from None
        self._checked: set[str] = set()

    def close(self) -> None:
        """End the connection."""
        self.client.close()

    def address(self, worker: str) -> str:
        """Return the address of a worker from its name, or from the address itself.

        Raises
        ------
        InputError
            When the cluster has no such worker, or several, or its version of this package is another.
        """
        known = self.client.scheduler_info(n_workers=-1)["workers"]
        found = [each for each, facts in known.items() if worker in (each, str(facts["name"]))]
        if not found:
            names = [str(facts["name"]) for facts in known.values()]
            raise InputError(f"the cluster has no worker '{worker}'; {closest_match(worker, names)}")
        if found[0] not in self._checked:
            self._check_version(worker, found[0])
        return found[0]

    def _check_version(self, worker: str, address: str) -> None:
        from mbsfmu.cosim.fmus.fmu_actor import version  # noqa: PLC0415 - needs Dask

        try:
            answers: Any = self.client.run(version, workers=[address])
        except ImportError as error:
            raise InputError(f"worker '{worker}' cannot load this package: {_first_line(error)}") from None
        if answers[address] != version():
            raise InputError(
                f"worker '{worker}' has version {answers[address]} of this package; the master has {version()}"
            )
        self._checked.add(address)


class PlacedFmu(RemoteFmu):
    """An FMU on a worker.

    Parameters
    ----------
    name
        Name of the FMU.
    workers
        The workers.
    worker
        Name or address of the one that it is placed on.
    limit
        Time in s of the clock that a call may take; None for any.

    Raises
    ------
    InputError
        When there is no such worker.
    """

    def __init__(self, name: str, workers: Workers, worker: str, limit: float | None) -> None:
        from mbsfmu.cosim.fmus.fmu_actor import FmuActor  # noqa: PLC0415 - needs Dask

        super().__init__(name)
        self._worker = worker
        self._limit = None if limit is None else limit + _ON_THE_WAY
        self._lost = self._closed = False
        self._pending: Any = None
        self._actor: Any = None
        self._client = workers.client
        self._made = self._client.submit(
            FmuActor, f"{name} on {worker}", limit, workers=[workers.address(worker)], actor=True, pure=False, retries=0
        )

    def unpack(self, file: Path, exchanged: bool | None, called: str | None) -> PlacedArchive:
        """Send the FMU, unless the worker has it, and let it be unpacked; return what the master needs of it.

        Parameters
        ----------
        file
            The FMU.
        exchanged, called
            As of `Archive`.

        Raises
        ------
        InputError
            As of `Archive`, by the platform of the worker.
        FmuError
            When the worker is lost.
        """
        from mbsfmu.cosim.fmus.fmu_actor import digest_of  # noqa: PLC0415 - needs Dask

        if not file.is_file():
            raise InputError(f"there is no file {called or file}")
        content = file.read_bytes()
        digest = digest_of(content)
        self._calls = [("make",)]
        with self._watched(), self._client.as_current():  # to which the actor binds itself in its first call
            self._actor = self._made.result(_BEGINNING)
            if not self._actor.knows(digest).result(_BEGINNING):
                self._actor.take(digest, content).result(_BEGINNING)
            found = self._actor.unpack(digest, exchanged, called or str(file)).result(_BEGINNING)
        if isinstance(found, Failure):
            raise InputError(f"{found.text} (on worker '{self._worker}')")
        return found

    def _send(self) -> None:
        with self._watched():
            self._pending = self._actor.serve(self._calls, self._time)

    def receive(self) -> Reply:
        """Wait for what the calls gave, and return it; raises what the base says."""
        with self._watched():
            return self._pending.result(_BEGINNING if self._calls[0][0] == "make" else self._limit)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Say in words that the worker does not answer: Dask raises what its transport does."""
        try:
            yield
        except (InputError, KeyboardInterrupt):
            raise
        except Exception as error:
            self._lost = True
            how = "did not answer" if isinstance(error, TimeoutError) else "was lost"
            raise FmuError(
                f"{self.name} at t = {self._time:.9g} s: its worker '{self._worker}' {how} {doing(self._calls)}", True
            ) from error

    def close(self, *calls: Call) -> None:
        """Let the FMU make its last calls, if it still can, and end its process."""
        if self._closed:
            return
        self._closed = True
        if self._actor is None or self._lost:
            return
        try:
            if calls:
                self.ask(list(calls), self._time)
        finally:
            if not self._lost:
                self._calls = [("close",)]
                with self._watched():
                    self._actor.close().result(self._limit)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
