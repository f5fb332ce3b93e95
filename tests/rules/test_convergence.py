"""Rules on equations with closed solutions, z̈ = −z and ẋ = −x, with steps that may change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mbsfmu.rules import FirstOrderValues, PositionValues, Rule, Step, find_rule

RULES = (
    "trapezoidal",
    "bdf2",
    "generalized-alpha",
    "generalized-alpha:spectral_radius=0",
    "generalized-alpha:spectral_radius=1",
)


def moved(rule: Rule, begin: PositionValues, step: Step) -> PositionValues:
    at_zero, at_one = (rule.motion(np.array([end]), begin, step)[1] for end in (0.0, 1.0))
    end = at_zero / (-1.0 - (at_one - at_zero))
    done = PositionValues(end, rule.motion(end, begin, step)[0], -end)
    return done._replace(history=rule.motion_history(done, begin, step))


def changed(rule: Rule, begin: FirstOrderValues, step: Step) -> FirstOrderValues:
    at_zero, at_one = (rule.rate(np.array([end]), begin, step) for end in (0.0, 1.0))
    end = at_zero / (-1.0 - (at_one - at_zero))
    done = FirstOrderValues(end, -end)
    return done._replace(history=rule.history(done, begin, step))


def errors(rule: Rule, size: float, pattern: Sequence[float]) -> list[float]:
    """Errors of z, ż and x at t = 2 s, with steps in the ratios of a pattern that comes again and again."""
    velocities, accelerations = rule.remembered_motion
    one, nothing = np.ones(1), np.zeros(1)
    motion = PositionValues(one, nothing, -one, [nothing] * velocities + [-one] * accelerations)
    quantity = FirstOrderValues(one, -one, [-one] * rule.remembered)
    before, time = nothing, 0.0
    for index in range(round(2.0 / size) * len(pattern)):
        step = Step(np.array([size * pattern[index % len(pattern)] / sum(pattern)]), before)
        motion, quantity, before = moved(rule, motion, step), changed(rule, quantity, step), step.size
        time += step.size[0]
    exact = np.cos(time), -np.sin(time), np.exp(-time)
    found = motion.position, motion.velocity, quantity.value
    return [float(abs(each[0] - true)) for each, true in zip(found, exact, strict=True)]


@pytest.mark.parametrize("pattern", [(1.0,), (1.0, 3.0), (4.0, 2.0, 1.0, 2.0)], ids=str)
@pytest.mark.parametrize("name", RULES)
def test_second_order_whatever_the_steps(name: str, pattern: tuple[float, ...]) -> None:
    rule = find_rule(name)
    assert rule is not None
    sizes = (0.02, 0.01, 0.005)
    found = np.array([errors(rule, size, pattern) for size in sizes])
    for column in found.T:
        slope = np.polyfit(np.log(sizes), np.log(column), 1)[0]
        assert slope == pytest.approx(2.0, abs=0.12)
