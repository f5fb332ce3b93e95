"""Errors of runs that ended early, with the recorded result."""

from __future__ import annotations

from mbsfmu.base.errors import SimulationError
from mbsfmu.io.trajectory import Trajectory


class RunError(SimulationError):
    """Failed run; `result` has the recorded part."""

    def __init__(self, message: str, result: Trajectory) -> None:
        super().__init__(message)
        self.result = result


class RunInterrupted(KeyboardInterrupt):
    """Interrupted run; `result` has the recorded part."""

    def __init__(self, result: Trajectory) -> None:
        super().__init__()
        self.result = result
