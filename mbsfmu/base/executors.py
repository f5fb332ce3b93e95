"""Where independent runs are made: in this process, in worker processes, or on a cluster."""

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
    """Calls were interrupted; `outcomes` has those that were done, in the order of their items."""

    def __init__(self, outcomes: list[Any]) -> None:
        super().__init__()
        self.outcomes = outcomes


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
    """Return worker processes that end when this process does, even when it is killed.

    An interruption inside `with` ends the calls that are under way, and makes no others.
    """
    return _WorkerProcesses(workers, initializer=_prepare_worker)


class _WorkerProcesses(ProcessPoolExecutor):
    """Worker processes whose calls, unlike those of the base class, end where this process is interrupted.

    Ctrl-C goes to all processes of a terminal: a worker that it ended would leave its pool waiting for ever.
    """

    def submit(self, fn: Callable[..., Outcome], /, *args: Any, **kwargs: Any) -> Future[Outcome]:
        """Hand a call to a worker."""
        return super().submit(_call, fn, *args, **kwargs)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        """Wait for the workers to end; where something went wrong, for the calls under way alone."""
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        for process in (self._processes or {}).values() if interrupted else ():
            if process.is_alive() and process.pid is not None:
                os.kill(process.pid, signal.SIGINT)
        self.shutdown(wait=True, cancel_futures=kind is not None)


class _Worker:
    """What a worker process knows of itself: whether it makes a call, and whether it was interrupted."""

    calling = interrupted = False

    @classmethod
    def interrupt(cls, *_: object) -> None:
        """End the call that is under way, once: what it has to clean up is not interrupted."""
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
    """Prepare a worker: it ends with its parent, and is quiet, for what its runs have to tell is in their rows."""
    signal.signal(signal.SIGINT, _Worker.interrupt)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
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
    """Return the outcome of a function for each item; what one of the calls raises is raised, the rest dropped.

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
