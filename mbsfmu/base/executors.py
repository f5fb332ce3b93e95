"""Executors of independent runs: this process, worker processes, or a cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, wait
from typing import Any, TypeVar

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class CallsInterrupted(KeyboardInterrupt):
    """Interrupted calls; `outcomes` has the completed ones, in the order of their items."""

    def __init__(self, outcomes: list[Any]) -> None:
        super().__init__()
        self.outcomes = outcomes


class InlineExecutor(Executor):
    """Executor that makes each call immediately, in this process."""

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
    """Return worker processes that end with this process, even if it is killed.

    An interruption inside `with` ends the calls in progress, and prevents others.
    """
    return _WorkerProcesses(workers, initializer=_prepare_worker)


class _WorkerProcesses(ProcessPoolExecutor):
    """Worker processes whose calls end when this process is interrupted, unlike those of the base class.

    Ctrl-C goes to all processes of a terminal; a worker ended by it would block its pool.
    """

    def submit(self, fn: Callable[..., Outcome], /, *args: Any, **kwargs: Any) -> Future[Outcome]:
        """Submit a call to a worker."""
        return super().submit(_call, fn, *args, **kwargs)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Wait for the workers to end; after an error, for the calls in progress only."""
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        for process in (self._processes or {}).values() if interrupted else ():
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, signal.SIGINT)
        self.shutdown(wait=True, cancel_futures=kind is not None)


class _Worker:
    """State of a worker process: whether a call is in progress, and whether it was interrupted."""

    calling = interrupted = False

    @classmethod
    def interrupt(cls, *_: object) -> None:
        """End the call in progress, once: its cleanup is not interrupted."""
        if cls.calling and not cls.interrupted:
            cls.interrupted = True
            raise KeyboardInterrupt
        cls.interrupted = True


def _call(function: Callable[..., Outcome], /, *args: Any, **kwargs: Any) -> Outcome:
    """Make a call in a worker."""
    _Worker.calling = True
    try:
        if _Worker.interrupted:
            raise KeyboardInterrupt
        return function(*args, **kwargs)
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None  # without results that would travel for nothing
    finally:
        _Worker.calling = False


def _prepare_worker() -> None:
    """Prepare a worker: it ends with its parent, and prints no warnings, because its runs report in their rows."""
    signal.signal(signal.SIGINT, _Worker.interrupt)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    logger = logging.getLogger("mbsfmu")
    logger.handlers[:] = [logging.NullHandler()]  # a forked worker has those of its parent
    logger.propagate = False
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Shares:
    """Counts completed calls and reports their fraction of all.

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
    """Return the results of a function for all items; an exception of one call is raised, the rest dropped.

    Raises
    ------
    CallsInterrupted
        When this process is interrupted; it has the outcomes that were there.
    """
    futures: list[Future[Outcome]] = []
    try:
        for item in items:
            future = executor.submit(function, item)
            futures.append(future)
            future.add_done_callback(shares.count)
        wait(futures)
        return [future.result() for future in futures]
    except BaseException as error:
        for future in futures:
            future.cancel()
        if isinstance(error, KeyboardInterrupt):
            raise CallsInterrupted(
                [each.result() for each in futures if each.done() and not each.cancelled() and not each.exception()]
            ) from None
        raise
