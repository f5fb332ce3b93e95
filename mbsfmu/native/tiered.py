"""Runs that start in quickly compiled code and continue in optimized code.

Optimizing the code of a large model takes several times as long as all else of its first run. Both compute the same to
the last bit: where a run goes over changes nothing of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.kept import warn_once
from mbsfmu.native.loop import CompiledRunner
from mbsfmu.simulation.run_loop import Recording, RunLoop, Runner

_LOGGER = logging.getLogger(__name__)


_NOTED = 0.1
"""Of the patience: for what less was spent in nobody is told."""


class Spent:
    """Time spent by steps of a model in unoptimized code.

    Attributes
    ----------
    seconds
        In all of its runs.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def note(self) -> None:
        """Take notice that it has grown."""


class TieredRunner(Runner):
    """Runner of unoptimized code until optimized code is available.

    Parameters
    ----------
    quick
        Makes the steps at first.
    optimized
        Makes the runner of optimized code, which takes long; called once, in a thread, while steps are made.
    patience
        For how many s of steps nothing is optimized: processor time, as a clock runs on while others compute; that of
        the process, as runs that record are made in a thread of their own.
    spent
        How many were spent already.
    """

    def __init__(
        self, quick: CompiledRunner, optimized: Callable[[], CompiledRunner], patience: float, spent: Spent
    ) -> None:
        self._runner = quick
        self._optimized = optimized
        self._patience = patience
        self._made: Future[CompiledRunner] | None = None
        self._is_last = False
        self._spent = spent
        self._noted = spent.seconds
        self._began = 0.0

    def run(self, run_loop: RunLoop, recording: Recording) -> None:
        """Run from the present time of the run loop to the last time of a recording; errors as for every runner."""
        begin, self._began = time.perf_counter(), time.process_time()
        self.interim_seconds = 0.0
        self._goes_over()
        if self._is_last:
            self._runner.run(run_loop, recording)
            return
        try:
            stands = self._runner.attempt(run_loop, recording, self._goes_over)
        finally:
            self.interim_seconds = time.perf_counter() - begin
            self._spend(time.process_time() - self._began)
        if not stands:
            self._runner.run(run_loop, recording)

    def _spend(self, seconds: float) -> None:
        self._spent.seconds += seconds
        if self._spent.seconds - self._noted > _NOTED * self._patience:
            self._noted = self._spent.seconds
            self._spent.note()

    def _goes_over(self) -> bool:
        """Return whether an optimized runner has become available; start its compilation when due."""
        if self._is_last:
            return False
        if self._made is None:
            if self._spent.seconds + time.process_time() - self._began > self._patience:
                self._made = Future()
                threading.Thread(target=self._make, args=(self._made,), daemon=True).start()
            return False
        if not self._made.done():
            return False
        self._is_last = True
        try:
            self._runner = self._made.result()
        except (CompilerError, OSError) as error:
            warn_once(f"{error}; code of runs in process stays as it is, not optimized")
            return False
        return True

    def _make(self, made: Future[CompiledRunner]) -> None:
        _LOGGER.info("steps are made while their code is optimized; the run restarts with it, and gives the same")
        try:
            made.set_result(self._optimized())
        except Exception as error:
            made.set_exception(error)
