"""Runs that ended before their time, with what was recorded until then."""

from __future__ import annotations

from mbsfmu.base.errors import SimulationError
from mbsfmu.io.trajectory import Trajectory


class RunError(SimulationError):
    """A run that failed on its way; `result` has what was recorded until then."""

    def __init__(self, message: str, result: Trajectory) -> None:
        super().__init__(message)
        self.result = result


class RunInterrupted(KeyboardInterrupt):
    """A run that was interrupted; `result` has what was recorded until then."""

    def __init__(self, result: Trajectory) -> None:
        super().__init__()
        self.result = result
