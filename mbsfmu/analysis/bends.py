"""Where the equations of a run bend inside its steps, whose derivatives then are those of one side alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbsfmu.analysis.recorded_run import RecordedRun

_NAMED = 2
"""How many are named."""


class Bend(NamedTuple):
    """A passage of an event indicator through zero, as where a stop is reached: its name, and the time in s."""

    name: str
    time: float


def bends(run: RecordedRun) -> list[Bend]:
    """Return where event indicators of parts pass zero inside steps, by time."""
    functions, points = run.functions, run.points
    variables = functions.system.event_indicators
    if not variables:
        return []
    values = run.equations.at.evaluate(functions.event_indicators)[0][:, :, 0]
    begin, end = values[points.begins], values[points.ends]
    steps, places = np.nonzero(begin * end < 0.0)
    shares = begin[steps, places] / (begin[steps, places] - end[steps, places])
    times = points.times[steps] + shares * points.steps[steps]
    found = [Bend(variables[place].name, time) for place, time in zip(places.tolist(), times.tolist(), strict=True)]
    return sorted(found, key=lambda bend: bend.time)


def bends_in_words(found: Sequence[Bend], before: float) -> tuple[str, ...]:
    """Return where the last bends before a time in s are, or the first ones where there is none, in words."""
    earlier = [bend for bend in found if bend.time <= before]
    named = earlier[-_NAMED:] if earlier else list(found[:_NAMED])
    times: dict[str, list[str]] = {}
    for bend in named:
        times.setdefault(bend.name, []).append(f"{bend.time:.6g} s")
    return tuple(f"{name} passes zero inside steps, at t = {' and '.join(at)}" for name, at in times.items())
