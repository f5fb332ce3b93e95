"""Consistency checks of integration rules by known motions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TypeVar

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.rules.rule import Array, FirstOrderValues, PositionValues, Rule, Step
from mbsfmu.stepping.state import derivatives
from mbsfmu.tracing.symbols import TracingError

_AGREEMENT = 1e-9
"""Round-off tolerance relative to a rate."""
_STEPS = 64
"""Number of steps of the coarser one of two motions with constant acceleration."""
_LIMIT = 2e-3
"""Tolerance of the velocity in the limit of small steps, extrapolated from two motions."""
_VALUES, _RATES = np.array([0.5, -0.3, 0.0, 2.0]), np.array([1.0, -2.0, 0.7, 0.0])

Answer = TypeVar("Answer")


@cache
def check_rule(rule: Rule) -> None:
    """Refuse an inconsistent rule, whose steps do not follow the rates in the limit of small steps.

    Along a straight line the rate at the end of a step must equal the slope for any two step sizes, and so must the
    history. With constant acceleration, velocities and positions must tend to those of a parabola.

    Raises
    ------
    InputError
        When the rule fails.
    """
    _answered(rule, lambda: derivatives(rule, _step(1.0, 0.0)))
    with np.errstate(all="ignore"):
        for step in _steps():
            for function, given, expected in _answered(rule, lambda step=step: list(_on_a_line(rule, step))):
                _check_rate(rule, function, step, given, expected)
        coarse, fine = (_answered(rule, lambda steps=steps: _on_a_parabola(rule, steps)) for steps in (1, 2))
    left = np.abs(2.0 * fine - coarse - 1.0)
    if not np.all(left <= _LIMIT):
        velocity, position = 2.0 * fine - coarse
        raise InputError(
            f"the rule '{rule}' is refused: where the acceleration is constant, its velocity tends to {velocity:.6g} "
            f"and its way to {position:.6g} times those of a parabola as steps become small; both must tend to 1"
        )


def _steps() -> Iterator[Step]:
    """Yield steps of several sizes: without a previous step, shorter, equal and longer ones."""
    for size in (1.0, 0.01):
        for ratio in (0.0, 0.5, 1.0, 3.0):
            yield _step(size, ratio * size)


def _step(size: float, before: float) -> Step:
    return Step(np.asarray(size), np.asarray(before))


def _on_a_line(rule: Rule, step: Step) -> Iterator[tuple[str, Array, Array]]:
    """Yield the rule's results at the end of steps along straight lines, and the expected ones."""
    rates, ends, still = _RATES, _VALUES + step.size * _RATES, np.zeros(len(_RATES))
    velocities, accelerations = rule.remembered_motion
    begin, end = FirstOrderValues(_VALUES, rates, [rates] * rule.remembered), FirstOrderValues(ends, rates)
    moved = [rates] * velocities + [still] * accelerations
    moving, moved_on = PositionValues(_VALUES, rates, still, moved), PositionValues(ends, rates, still)
    yield "rate", rule.rate(ends, begin, step), rates
    velocity, acceleration = rule.motion(ends, moving, step)
    yield "motion, as velocity,", velocity, rates
    yield "motion, as acceleration,", acceleration, still
    yield from _remembered(rule, "history", rule.history(end, begin, step), begin.history)
    yield from _remembered(rule, "motion_history", rule.motion_history(moved_on, moving, step), moved)


def _remembered(
    rule: Rule, function: str, given: Sequence[Array], expected: Sequence[Array]
) -> Iterator[tuple[str, Array, Array]]:
    if len(given) != len(expected):
        raise InputError(
            f"the rule '{rule}' is refused: {function} gives {len(given)} rates where {len(expected)} are remembered"
        )
    yield from ((function, *each) for each in zip(given, expected, strict=True))


def _check_rate(rule: Rule, function: str, step: Step, given: Array, expected: Array) -> None:
    """Refuse a rule with wrong rates along straight lines."""
    off = np.abs(np.broadcast_to(given, np.shape(expected)) - expected)
    if not np.all(off <= _AGREEMENT / step.size):
        worst = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
        before = f"after one of {step.before:g} s" if step.before else "with nothing remembered"
        raise InputError(
            f"the rule '{rule}' is refused: along a straight line, {function} gives {np.ravel(given)[worst]:.6g} where "
            f"{expected[worst]:.6g} is right, in a step of {step.size:g} s {before}; steps would not follow the rates"
        )


def _on_a_parabola(rule: Rule, finer: int) -> Array:
    """Return velocity and position after steps with acceleration 1 from zero velocity, relative to the exact ones.

    Step sizes alternate.
    """
    velocities, accelerations = rule.remembered_motion
    now = PositionValues(np.zeros(1), np.zeros(1), np.ones(1))
    before, time = 0.0, 0.0
    for size in np.tile([1.0, 2.0], finer * _STEPS // 2) / (finer * 1.5 * _STEPS):
        step = _step(size, before)
        if not before:
            now = now._replace(history=[now.velocity] * velocities + [now.acceleration] * accelerations)
        # The acceleration is linear in the position at the end.
        trials = now.position, now.position + size**2
        at_first, further = (rule.motion(trial, now, step)[1] for trial in trials)
        position = now.position + size**2 * (1.0 - at_first) / (further - at_first)
        end = PositionValues(position, rule.motion(position, now, step)[0], np.ones(1))
        now = end._replace(history=rule.motion_history(end, now, step))
        before, time = size, time + size
    return np.array([now.velocity[0] / time, now.position[0] / (0.5 * time**2)])


def _answered(rule: Rule, call: Callable[[], Answer]) -> Answer:
    """Call a function of a rule; report its exceptions as a refusal."""
    try:
        return call()
    except (InputError, TracingError):
        raise
    except Exception as error:  # whatever a user's function raises
        text = " ".join(str(error).split())
        raise InputError(f"the rule '{rule}' is refused: it raises {type(error).__name__}: {text}") from error
