"""Sample times of discrete states, and their updates.

The sample times are offset + k · sample_time, k = 0, 1, …, without accumulation: they do not drift, and do not depend
on the steps or the start of a run. Native FMUs have the same, to the last bit (`runtime/core/sampling.c`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.times import RESOLVED_STEP, resolution
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import Sampling


class Sampler:
    """Updates the discrete states of a system.

    Parameters
    ----------
    functions
        Functions of the system, whose discrete states it changes.

    Attributes
    ----------
    shortest
        Shortest sample time in s; infinite where nothing is sampled.
    """

    def __init__(self, functions: SystemFunctions) -> None:
        self._functions = functions
        self._samplings: Sequence[Sampling] = functions.system.samplings
        self.shortest = min((each.sample_time for each in self._samplings), default=math.inf)

    def next_instant(self, passed: float) -> float:
        """Return the first sample time after a time in s; infinite without sampled blocks."""
        nexts = (each.offset + (_count(each, passed) + 1.0) * each.sample_time for each in self._samplings)
        return min(nexts, default=math.inf)

    def check(self, time: float) -> None:
        """Check that sample times are distinct at a time in s.

        Raises
        ------
        InputError
            When they are lost in the resolution of time.
        """
        least = RESOLVED_STEP * resolution(time)
        if self.shortest < least:
            raise InputError(
                f"the sample time of {self.shortest:g} s is lost in the resolution of time at t = {time:g} s; it must "
                f"be at least {least:.3g} s there"
            )

    def update(self, passed: float, now: float) -> bool:
        """Make all updates with sample times in (passed, now] in s; return whether discrete states have changed.

        The functions hold the state, parameters and inputs.

        Raises
        ------
        SimulationError
            When an update is not finite; the discrete states are as they were then.
        """
        discrete = self._functions.discrete
        before = discrete.copy()
        for each in self._samplings:
            if _count(each, now) > _count(each, passed):
                own = slice(each.first, each.first + each.count)
                discrete[own] = self._functions.updates()[0][own]
                if not np.isfinite(discrete[own]).all():
                    discrete[:] = before
                    raise SimulationError(f"{each.owner}: the update at t = {now:.9g} s is not finite{each.reason}")
        return not np.array_equal(before, discrete)


def _count(sampling: Sampling, time: float) -> float:
    """Return the number of the last sample time up to a time in s; −1 before the first one."""
    return max(math.floor((time - sampling.offset) / sampling.sample_time), -1)
