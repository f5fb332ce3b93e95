"""Newton's iteration from its one source: as it stands, in C of one machine, and in lanes, on random equations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from step_sources import Solve, compiled_steps

from mbsfmu.integration.implicit import MOST_ITERATIONS
from mbsfmu.stepping.language import Reals
from mbsfmu.stepping.newton import Iteration, Machine, Motion, Problem, newton
from mbsfmu.tracing.workspace import Floats

DATA, FOUND = 38, 13
"""How many numbers `Data` and `Found` of steps_alone.c have."""


@dataclass
class Start(Motion):
    coordinates: Reals
    velocities: Reals


@dataclass
class Equation(Problem):
    guess: Reals


NOMINALS, TOLERANCES = (1.0, 0.5, 2.0, 1e-3), (1e-8, 1e-9, 1e-8, 1e-7)


class Cubic(Machine):
    """A x + c x³ = b, with the faults of a case: as steps_alone.c has it."""

    def __init__(self, data: Floats, most: int) -> None:
        self.COORDINATES, self.UNKNOWNS, self.ALL_UNKNOWNS, self.STATES = 3, 4, 4, 1
        self.NEWTON_ITERATIONS, self.REFRESH_COST, self.REMAINING, self.HEAVIEST = MOST_ITERATIONS, 2.5, 1e-3, 1e5
        self.unknown_nominals, self.unknown_tolerances = NOMINALS, TOLERANCES
        self.MOST_INCREMENTS = most
        self.a, self.c, self.b, self.guess, self.kept, rest = np.split(data, [16, 20, 24, 28, 32])
        self.rate, self.reuses, velocity, self.fails_at, self.not_finite_at, self.singular_at = rest.tolist()
        self.state = Start([0.0] * 3, [velocity] * 3)
        self.evaluations = self.matrices = 0
        self.reason = ""

    def begin(self, problem: Problem, step: float) -> None:
        problem.guess = self.guess.tolist()

    def evaluate(self, problem: Problem, unknowns: Reals, residual: Reals) -> bool:
        self.evaluations += 1
        if self.evaluations == self.fails_at:
            self.reason = "a loop is open"
            return False
        for k in range(4):
            total = 0.0
            for j in range(4):
                total += float(self.a[4 * k + j]) * unknowns[j]
            x = unknowns[k]
            residual[k] = total + float(self.c[k]) * (x * x * x) - float(self.b[k])
        if self.evaluations == self.not_finite_at:
            residual[2] = math.nan
        self.at = list(unknowns)
        return True

    def make_matrix(self, iteration: Iteration) -> bool:
        self.matrices += 1
        if self.matrices == self.singular_at:
            return False
        iteration.inverse = [
            1.0 / (float(self.a[5 * k]) + 3.0 * float(self.c[k]) * (x * x)) for k, x in enumerate(self.at)
        ]
        return True

    def solve_matrix(self, iteration: Iteration) -> None:
        iteration.increment[:] = [a * b for a, b in zip(iteration.inverse, iteration.residual, strict=True)]

    def reuse_iteration_matrix(self, step: float, iteration: Iteration) -> None:
        iteration.own, iteration.rate, iteration.inverse = self.reuses == 0.0, self.rate, self.kept.tolist()

    def loops_hold(self) -> bool:
        return True

    def fail(self, sentence: str, *values: object) -> None:
        self.reason = sentence % values

    def unknown_name(self, i: int) -> str:
        return "pqrs"[i]


def in_python(data: Floats, most: int) -> tuple[Floats, str]:
    machine, iteration = Cubic(data, most), Iteration([0.0] * 4, [0.0] * 4, [0.0] * 4)
    solved = newton(machine, Equation([]), 1e-3, iteration)
    numbers: list[float] = [solved, iteration.count, iteration.iteration_matrices, iteration.evaluations]
    numbers += [iteration.evaluated, iteration.increments, iteration.rate, iteration.spent, iteration.unconverged]
    return np.array([*numbers, *iteration.unknowns]), machine.reason


def in_c(folder: Path, lanes: int = 0, most: int = 0) -> Solve:
    """Return the iteration in C; of one machine where there are no lanes."""
    return compiled_steps(folder, "steps_alone.c", FOUND, lanes, options=[f"-DMOST_INCREMENTS={most}"])


def random_case(random: np.random.Generator, *, faults: bool) -> Floats:
    """Return an equation, half of them strongly curved, some with an inverse of an earlier step, some with a fault."""
    a = random.uniform(-0.3, 0.3, (4, 4)) * random.choice([0.1, 1.0, 1.5]) + np.diag(random.uniform(1.0, 2.0, 4))
    c = random.uniform(-1.0, 1.0, 4) * random.choice([0.0, 0.1, 3.0])
    exact = random.uniform(-0.5, 0.5, 4) * random.choice([1.0, 1e-4, 20.0])
    b = a @ exact + c * exact**3
    guess = exact + random.choice([1.0, 1e-3, 1e-9, 1e-13]) * random.uniform(-1.0, 1.0, 4)
    kept = random.choice([1.0, 1.0, 0.3, 2.5]) / (np.diag(a) * random.uniform(0.9, 1.1, 4))
    fault = random.integers(1, 7, 3) * (random.random(3) < (0.15 if faults else 0.0))
    reuse = [random.choice([0.0, 0.05, 0.2]), float(random.random() < 0.7), random.choice([0.0, 1.0])]
    return np.concatenate([a.ravel(), c, b, guess, kept, reuse, fault.astype(float)])


@pytest.mark.parametrize("most", [0, 2])
def test_python_and_c_have_the_same_bits(tmp_path: Path, most: int) -> None:
    """With the sentences of what fails; lanes of a group of one machine have the bits, too."""
    random = np.random.default_rng(7)
    one, lane = in_c(tmp_path / "one", most=most), in_c(tmp_path / "lane", lanes=1, most=most)
    ends: list[str] = []
    for case in range(3000):
        data = random_case(random, faults=True)
        found, reason = one(data)
        expected, expected_reason = in_python(data, most)
        message = f"case {case}"
        assert (reason, found[0]) == (expected_reason, expected[0]), message
        if found[0]:
            np.testing.assert_array_equal(found, expected, message)
        alone = lane(data)[0][0]
        assert alone[0] == found[0], message
        if found[0]:
            np.testing.assert_array_equal(alone, found, message)
        ends.append("solved" if found[0] else reason)
    branches = ["solved", "a loop is open", "singular in iteration", "not finite in iteration"]
    branches += [] if most else ["diverges: increments grow", "hardly decrease"]
    for branch in branches:
        assert sum(branch in each for each in ends) > 3, branch


def test_machines_of_a_group_solve_each_its_own_equation(tmp_path: Path) -> None:
    """What is said to be solved is, to the last increment and its tolerance, whatever becomes of the others."""
    random = np.random.default_rng(11)
    group = in_c(tmp_path, lanes=4)
    solved = failed = 0
    for _ in range(1000):
        data = np.stack([random_case(random, faults=lane == 2) for lane in range(4)])
        found, _ = group(data)
        for numbers, result in zip(data, found, strict=True):
            if not result[0]:
                failed += 1
                continue
            solved += 1
            a, c, b = numbers[:16].reshape(4, 4), numbers[16:20], numbers[20:24]
            x = result[9:]
            slopes = np.abs(a) + np.diag(3.0 * np.abs(c) * x**2)
            tolerance = np.array(TOLERANCES) * np.maximum(np.array(NOMINALS), np.abs(x))
            round_off = 1e-10 * np.maximum(np.array(NOMINALS), np.abs(x))
            left = np.abs(a @ x + c * x**3 - b)
            assert (left <= slopes @ (tolerance + round_off)).all(), (left, slopes @ tolerance)
    assert solved > 2500
    assert failed > 50
