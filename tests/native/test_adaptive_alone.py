"""Steps that are chosen by their error from their one source: as it stands, in C of one machine, and in lanes."""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from step_sources import Solve, compiled_steps

from mbsfmu.integration.rosenbrock import MOST_FACTOR, RODAS4
from mbsfmu.native.model_tables import rosenbrock_tables
from mbsfmu.stepping.adaptive import Attempt, Machine, Motion, Way, make_step
from mbsfmu.stepping.language import Reals
from mbsfmu.stepping.rosenbrock import Machine as StageMachine
from mbsfmu.stepping.rosenbrock import find_between, find_end
from mbsfmu.tracing.workspace import Floats

SIZE, FOUND, MOST_STEPS_MADE = 3, 14, 8
"""Sizes of adaptive_alone.c."""


class Start(Motion):
    tolerance_factor = 1.0


class Cubic(Machine, StageMachine):
    """y' = b t - a y - c y³, with the faults of a case: as adaptive_alone.c has it."""

    def __init__(self, data: Floats) -> None:
        a, c, b, y, rest = np.split(data, [3, 6, 9, 12])
        self.a, self.c, self.b, self.y = a.tolist(), c.tolist(), b.tolist(), y.tolist()
        self.whole, self.suggested, self.fails_at, self.not_finite_at, self.refuses_at = rest.tolist()
        self.SIZE, self.WATCHED, self.STAGES, self.ORDER = SIZE, 2, RODAS4.stages, RODAS4.order
        self.MOST_FACTOR, self.FOLLOWS_SLIGHT, self.SOLVER_NAME = MOST_FACTOR, True, RODAS4.name
        self.ABSOLUTE_TOLERANCE, self.RELATIVE_TOLERANCE, self.explicit_scales = 1e-7, 1e-6, (1.0, 0.5, 2.0)
        self.INTERPOLANTS, self.interpolation = len(RODAS4.interpolation), tuple(chain(*RODAS4.interpolation))
        self.couplings, self.rate_couplings = (
            tuple(chain(*rows)) for rows in (RODAS4.couplings, RODAS4.rate_couplings)
        )
        self.stage_nodes, self.stage_slopes = RODAS4.nodes, RODAS4.slopes
        self.state, self.refusal, self.reason = Start(), "", ""
        self.evaluations = self.refusals = self.taken = self.solved = 0

    def rate(self, time: float, y: float, i: int) -> float:
        return self.b[i] * time - self.a[i] * y - self.c[i] * (y * y * y)

    def find_rates(self, time: float, values: Reals, rates: Reals) -> bool:
        self.evaluations += 1
        rates[:] = [self.rate(time, y, i) for i, y in enumerate(values)]
        if self.evaluations == self.fails_at:
            self.reason = "a loop is open"
            return False
        return True

    def find_end(self, attempt: Attempt) -> bool:
        return find_end(self, attempt)

    def factorize_step(self, attempt: Attempt) -> bool:
        slopes = [-self.a[i] - 3.0 * self.c[i] * (y * y) for i, y in enumerate(attempt.start)]
        self.factors = [1.0 / (1.0 / (attempt.step * RODAS4.diagonal) - slope) for slope in slopes]
        return True

    def solve_stage(self, attempt: Attempt, stage: int) -> bool:
        for i in range(SIZE):
            attempt.increments[SIZE * stage + i] *= self.factors[i]
        self.solved += 1
        if self.solved == self.not_finite_at:
            attempt.increments[SIZE * stage] = math.nan
        return True

    def take_end(self, way: Way, attempt: Attempt) -> bool:
        self.taken += 1
        if self.taken == self.refuses_at:
            self.reason = "another branch"
            return False
        self.y = list(attempt.end)
        return True

    def count_refusal(self) -> None:
        self.refusals += 1
        self.refusal = self.reason or self.refusal

    def begin_try(self) -> None:
        self.reason = ""

    def is_stopped(self) -> bool:
        return False

    def fail(self, sentence: str, *values: object) -> None:
        self.reason = sentence % values

    def fail_because(self, sentence: str, *values: object) -> None:
        self.reason = sentence % values + (f": {self.reason}" if self.reason else "")


def in_python(data: Floats) -> tuple[Floats, str]:
    machine = Cubic(data)
    way = Way(0.0, machine.whole, machine.whole, suggested=machine.suggested, most=MOST_FACTOR)
    attempt = Attempt(
        *([0.0] * SIZE for _ in range(5)), [0.0] * (machine.STAGES * SIZE), *([0.0] * machine.STAGES for _ in range(2))
    )
    made, steps = True, 0
    while made and steps < MOST_STEPS_MADE and way.elapsed < way.whole:
        attempt.time = way.origin + way.elapsed
        attempt.start[:], attempt.drift[:] = machine.y, machine.b
        attempt.rates[:] = [machine.rate(attempt.time, y, i) for i, y in enumerate(machine.y)]
        made, steps = make_step(machine, way, attempt), steps + 1
    inside = [0.0] * SIZE
    find_between(machine, attempt, 0.3, inside)
    numbers = [made, way.elapsed, way.suggested, way.tries, way.refused, way.looked, machine.evaluations]
    return np.array([*numbers, machine.refusals, *machine.y, *inside]), "" if made else machine.reason


def in_c(folder: Path, lanes: int = 0) -> Solve:
    method = {"method.h": "\n".join([*rosenbrock_tables(RODAS4), f"#define STAGES {RODAS4.stages}", ""])}
    return compiled_steps(folder, "adaptive_alone.c", FOUND, lanes, files=method)


def random_case(random: np.random.Generator) -> Floats:
    """Return an equation, some stiff, some at rest, some with a first step, some with faults."""
    a = random.uniform(0.1, 2.0, SIZE) * random.choice([1.0, 1.0, 1e4])
    c = random.uniform(0.0, 1.0, SIZE) * random.choice([0.0, 1.0])
    b = random.uniform(-1.0, 1.0, SIZE) * random.choice([0.0, 1.0, 1e-9])
    start = random.uniform(-1.0, 1.0, SIZE) * random.choice([0.0, 1.0, 1e-7, 1e3])
    whole = random.choice([1.0, 1e-3, 30.0])
    suggested = whole * random.choice([0.0, 0.0, 0.02, 3.0, 1e-15])
    faults = random.integers(1, 40, 3) * (random.random(3) < 0.2)
    if random.random() < 0.05:
        faults[2], suggested = 1, 3e-14 * whole
    return np.array([*a, *c, *b, *start, whole, suggested, *faults.astype(float)])


def test_python_and_c_have_the_same_bits(tmp_path: Path) -> None:
    """With the sentences of what fails; lanes of a group of one machine have the bits, too."""
    random = np.random.default_rng(5)
    one, lane = in_c(tmp_path / "one"), in_c(tmp_path / "lane", lanes=1)
    ends: list[str] = []
    for case in range(1500):
        data, message = random_case(random), f"case {case}"
        found, reason = one(data)
        expected, expected_reason = in_python(data)
        assert reason == expected_reason, message
        np.testing.assert_array_equal(found, expected, message)
        np.testing.assert_array_equal(lane(data)[0][0], expected, message)
        ends.append(reason or ("refused" if found[7] else "made"))
    for branch in ("made", "refused", "however small it is"):
        assert sum(branch in each for each in ends) > 3, branch


@pytest.mark.parametrize("lanes", [4])
def test_machines_of_a_group_step_as_alone(tmp_path: Path, lanes: int) -> None:
    """Each takes the steps, refusals and evaluations that it takes alone, whatever becomes of the others."""
    random = np.random.default_rng(6)
    one, group = in_c(tmp_path / "one"), in_c(tmp_path / "group", lanes=lanes)
    for case in range(500):
        data = np.array([random_case(random) for _ in range(lanes)])
        for machine, found in zip(data, group(data)[0], strict=True):
            np.testing.assert_array_equal(found[:11], one(machine)[0][:11], f"case {case}")
