"""Runs the points of a study by an executor; a killed process affects its own points only."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import Any

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.executors import process_pool
from mbsfmu.studies.points import StudyPoint

Row = dict[str, Any]
Task = tuple[StudyPoint, ...]
"""Points that are run in one call."""
RunTask = Callable[[Task], Sequence[Row]]
Take = Callable[[StudyPoint, Row], None]

_KILLED = "the process that ran it was killed"
_UNDER_WAY = 4  # tasks handed to each worker ahead, so that none waits for the journal

logger = logging.getLogger(__name__)


def run_points(
    run: RunTask, tasks: Iterable[Task], take: Take, *, workers: int, executor: Executor | None = None
) -> None:
    """Run all points and pass on each row when it is complete.

    Parameters
    ----------
    run
        Returns the rows of a task; it has to be sent to other processes.
    tasks
        The points.
    take
        Called with each point and its row, in this thread.
    workers
        Number of processes, where no executor is given.
    executor
        Any executor; it is left open.

    Raises
    ------
    SimulationError
        When a given executor breaks.
    """
    waiting = deque(tasks)
    if executor is not None:
        if _drain(executor, run, waiting, take, None):
            raise SimulationError("the executor broke; the rows that were done are kept")
        return
    while waiting:
        with process_pool(workers) as pool:
            suspects = _drain(pool, run, waiting, take, _UNDER_WAY * workers)
        if suspects:
            logger.warning("a worker process was killed; the points it may have run are tried again one by one")
        for point in (point for task in suspects for point in task):
            with process_pool(1) as pool:
                if _drain(pool, run, deque([(point,)]), take, 1):
                    take(point, {"status": "failed", "message": _KILLED, "warnings": ""})


def _drain(executor: Executor, run: RunTask, waiting: deque[Task], take: Take, most: int | None) -> list[Task]:
    """Run pending tasks, a limited number at a time; return those in progress when the executor broke."""
    under_way: dict[Future[Sequence[Row]], Task] = {}
    lost: list[Task] = []
    try:
        while (waiting or under_way) and not (lost and not under_way):
            while waiting and not lost and (most is None or len(under_way) < most):
                task = waiting.popleft()
                try:
                    future = executor.submit(run, task)
                except BrokenExecutor:
                    lost.append(task)
                    break
                under_way[future] = task
                if future.done():  # an executor that runs each call at once: its row is taken before the next one
                    break
            for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                task = under_way.pop(future)
                try:
                    rows = _rows(future, task)
                except BrokenExecutor:
                    lost.append(task)
                    continue
                if rows is None:
                    waiting.extend((point,) for point in task)
                else:
                    for point, row in zip(task, rows, strict=True):
                        take(point, row)
    except BaseException:
        for future in under_way:
            future.cancel()
        raise
    return lost


def _rows(future: Future[Sequence[Row]], task: Task) -> Sequence[Row] | None:
    """Return the rows of a task that has ended; None where an error may be of any of its points.

    Raises
    ------
    BrokenExecutor
        When its process was killed.
    """
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception as error:
        if len(task) > 1:
            return None
        return [{"status": "failed", "message": f"{type(error).__name__}: {error}", "warnings": ""}]
