"""Where independent runs are made: in this process, in worker processes, or on a cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, wait
from typing import Any, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class InlineExecutor(Executor):
    """Makes each call at once, in this process."""

    def submit(self, fn: Callable[..., Outcome], /, *args: Any, **kwargs: Any) -> Future[Outcome]:
        """Make the call and return its outcome as a finished future."""
        future: Future[Outcome] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def local_executor(workers: int) -> Executor:
    """Return an executor for this machine: worker processes, or this process where one worker is enough."""
    return InlineExecutor() if workers <= 1 else process_pool(workers)


def process_pool(workers: int) -> ProcessPoolExecutor:
    """Return worker processes that end when this process does, even when it is killed."""
    return ProcessPoolExecutor(workers, initializer=_prepare_worker)


def _prepare_worker() -> None:
    """Prepare a worker: it ends with its parent, and is quiet, for what its runs have to tell is in their rows."""
    logging.getLogger("mbsfmu").setLevel(logging.ERROR)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Shares:
    """Counts calls that are done, and tells the share of all of them.

    Parameters
    ----------
    progress
        Called with the share, from whatever thread the executor uses, one call at a time.
    total
        Number of calls.
    """

    def __init__(self, progress: Callable[[float], None] | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self._lock = threading.Lock()

    def count(self, _: object = None) -> None:
        """Count one more."""
        with self._lock:
            self._done += 1
            if self._progress is not None:
                self._progress(self._done / self._total)


def run_all(
    executor: Executor, function: Callable[[Item], Outcome], items: Iterable[Item], shares: Shares
) -> list[Outcome]:
    """Return the outcome of a function for each item; what one of the calls raises is raised, the rest dropped."""
    futures: list[Future[Outcome]] = []
    try:
        for item in items:
            future = executor.submit(function, item)
            future.add_done_callback(shares.count)
            futures.append(future)
        wait(futures)
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise
