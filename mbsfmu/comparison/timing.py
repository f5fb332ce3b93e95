"""Cost of steps: interleaved repetitions of coupled runs until their costs are distinguishable."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from mbsfmu.base.muted import muted
from mbsfmu.comparison.run import Run, Task, run_timed

RESOLUTION = 1.1
"""Ratio of costs below which they are equal. The ratio of the same two settings differs by 1 to 3 % between processes,
by memory layout, independent of the repetitions.
"""
LEAST, MOST = 6, 25
"""Numbers of repetitions of each run. Six are the fewest whose extremes enclose the median with 95 %."""
SECONDS = 5.0
"""Processor time in s for repetitions of short runs."""
_CONFIDENCE = 0.95
_BEYOND = 3.0
"""Cost ratio to the least expensive run above which runs are not repeated: parallel runs interact by less."""


@dataclass(frozen=True)
class Repetitions:
    """Runs to repeat in turn.

    Attributes
    ----------
    tasks
        The runs.
    seconds
        Processor time in s that this may take; each run is made once in any case.
    """

    tasks: Sequence[Task]
    seconds: float


def accurate_runs(runs: Sequence[Run], accuracy: float) -> list[Run]:
    """Return the runs with an error of at most `accuracy`, the least expensive first."""
    good = [run for run in runs if run.judged is not None and run.judged <= accuracy and run.costs]
    return sorted(good, key=lambda run: median(run.costs))


def cheapest_runs(runs: Sequence[Run], accuracy: float) -> list[Run]:
    """Return the least expensive runs with an error of at most `accuracy`, and equal ones; the most accurate first.

    As cheap is a run whose cost is not larger with 95 % confidence, by the quotients of repetitions made one after the
    other, or larger by less than `RESOLUTION`. No run where none is accurate enough.
    """
    good = accurate_runs(runs, accuracy)
    tied = [run for run in good if not costs_more(run.costs, good[0].costs)]
    return sorted(tied, key=lambda run: run.judged or 0.0)


def contenders(runs: Sequence[Run], accuracy: float) -> list[Run]:
    """Return the candidates of the least expensive accurate run, from parallel runs."""
    good = accurate_runs(runs, accuracy)
    return [run for run in good if median(run.costs) <= _BEYOND * median(good[0].costs)]


def costs_more(costs: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether a run costs more than another one, from interleaved repetitions."""
    return _bounds(costs, others)[0] > RESOLUTION


def repeated_costs(repetitions: Repetitions) -> list[list[float]]:
    """Return the cost of steps of each run in its repetitions, in s of processor time per simulated second.

    All runs are repeated in turn, so that what else the machine does meets all of them alike. Those that are dearer
    than the cheapest one are left out from then on. It ends where all others are known to be as cheap, after `MOST`
    repetitions, or where the next ones would take too long.
    """
    costs: list[list[float]] = [[] for _ in repetitions.tasks]
    if not costs:
        return costs
    racing, begin = list(range(len(costs))), clock.process_time()
    with muted():
        for done in range(1, MOST + 1):
            for index in racing:
                costs[index].append(run_timed(repetitions.tasks[index])[1].stepping)
            cheapest = min((costs[index] for index in racing), key=median)
            if done >= LEAST:
                racing = [index for index in racing if not costs_more(costs[index], cheapest)]
                if all(_bounds(costs[index], cheapest)[1] <= RESOLUTION for index in racing):
                    break
            if (clock.process_time() - begin) * (done + 1) / done > repetitions.seconds:
                break
    return costs


def _bounds(costs: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """Return between which bounds the median quotient of costs lies with 95 % confidence; by the extremes of few.

    By order statistics, whatever the distribution: the number of quotients below the median is binomial (Conover,
    Practical Nonparametric Statistics, 3.2).
    """
    quotients = sorted(one / other for one, other in zip(costs, others, strict=False))
    count = len(quotients)
    left_out, outside = 0, 2.0 * 0.5**count
    while (outside := outside + 2.0 * math.comb(count, left_out + 1) * 0.5**count) <= 1.0 - _CONFIDENCE:
        left_out += 1
    return quotients[left_out], quotients[-1 - left_out]
