"""Newton's iteration of units on one equation: what is left of the error, when it ends, what it keeps and says."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from one_equation import STEP, Scalar
from runtime_sources import INCLUDES

from mbsfmu import SimulationError
from mbsfmu.formulations.formulation import StepProblem
from mbsfmu.integration.implicit import Jacobian, Method, solve
from mbsfmu.native import shared
from mbsfmu.native.c_sources import step_files
from mbsfmu.stepping.iteration import SMALL, STILL, Limits
from mbsfmu.stepping.newton import FADING, FAST, FLOOR, ROUND_OFF
from mbsfmu.tracing.workspace import Floats

HERE = Path(__file__).parent
TOLERANCE, REMAINING, HEAVIEST = 1e-6, 1e-3, 1e5


@dataclass(frozen=True)
class Found:
    """What an iteration found, and the iteration matrix that it keeps: inverse, step, before, steps, spent, rate."""

    unknown: float
    increments: int
    iteration_matrices: int
    evaluations: int
    solutions: int
    kept: Floats
    reason: str


@pytest.fixture(scope="module")
def newton(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Found]:
    """The C of units, compiled for one unknown."""
    return compiled(tmp_path_factory.mktemp("newton"))


def compiled(folder: Path, *flags: str) -> Callable[..., Found]:
    """Return the iteration in C, compiled with flags."""
    constants = [line for line in shared.definitions() if "(EACH)" not in line]
    for name, text in {**step_files(), "shared.h": "\n".join([*constants, ""])}.items():
        (folder / name).write_text(text)
    command = ["gcc", "-std=c99", "-O1", "-fPIC", "-shared", f"-I{folder}", *INCLUDES, *flags]
    subprocess.run([*command, str(HERE / "newton_alone.c"), "-o", str(folder / "newton.so"), "-lm"], check=True)
    library = ctypes.CDLL(str(folder / "newton.so"))

    def solved(
        guess: float,
        bend: float = 0.0,
        inverse: float | None = None,
        *,
        rate: float = 0.0,
        noise: float = 0.0,
        tolerance: float = TOLERANCE,
        spent: float = 10.0,
        velocity: float = 0.0,
    ) -> Found:
        given = np.array([guess, bend, noise, tolerance, REMAINING, 1e9, HEAVIEST, velocity])
        kept = np.array([0.0] * 6 if inverse is None else [inverse, STEP, 0.0, 1.0, spent, rate])
        found, reason = np.zeros(5), ctypes.create_string_buffer(512)
        double = ctypes.POINTER(ctypes.c_double)
        library.solve(*(each.ctypes.data_as(double) for each in (given, kept, found)), reason)
        return Found(found[0], int(found[1]), int(found[2]), int(found[3]), int(found[4]), kept, reason.value.decode())

    return solved


def test_a_number_that_is_none_is_the_largest_wherever_it_stands(tmp_path: Path) -> None:
    compiled(tmp_path)
    largest = ctypes.CDLL(str(tmp_path / "newton.so")).largest
    largest.restype = ctypes.c_double
    for values in ([np.nan, 1.0, 2.0], [1.0, np.nan, 3.0], [1.0, 2.0, np.nan], [-3.0, 1.0, 2.0], [1.0, -np.inf, 2.0]):
        numbers = (ctypes.c_double * 3)(*values)
        np.testing.assert_equal(largest(numbers, 3), np.max(np.abs(values)))


@pytest.mark.parametrize("iterations", [1, 2, 3])
def test_limited_iterations_take_the_work_that_exports_tell(tmp_path: Path, iterations: int) -> None:
    """N + 1 residuals, N Jacobians and 2 N solves where nothing converges, fewer where something does."""
    newton = compiled(tmp_path, f"-DMOST_INCREMENTS={iterations}")
    worst = newton(30.0, bend=1.0, tolerance=1e-12)
    assert worst.increments == iterations
    assert (worst.evaluations, worst.iteration_matrices, worst.solutions) == (
        iterations + 1,
        iterations,
        2 * iterations,
    )
    easy = newton(0.5, tolerance=1e-6)
    assert (easy.evaluations, easy.iteration_matrices, easy.solutions) == (1, 1, 1)


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.2, 0.29, -0.2])
def test_what_remains_is_negligible_beside_the_tolerance(newton: Callable[..., Found], ratio: float) -> None:
    """Errors of a linear equation shrink by the ratio r: what an increment d leaves is d r / (1 − r)."""
    found = newton(0.9, inverse=1.0 - ratio)
    assert found.iteration_matrices == 0
    assert abs(found.unknown - 0.5) <= 1.001 * REMAINING * TOLERANCE / (1.0 - abs(ratio))
    sizes = 0.4 * abs(ratio) ** np.arange(30) * (1.0 - ratio) / TOLERANCE
    enough = (sizes * abs(ratio) / (1.0 - abs(ratio)) <= REMAINING) | (sizes * abs(ratio) <= REMAINING)
    assert found.increments == 1 + np.argmax(enough), "neither one more than needed nor one less"
    left = sizes * abs(ratio) / (1.0 - abs(ratio))
    looked = left[found.increments - 1] > REMAINING
    assert found.evaluations == found.increments + looked, "one below what remains is seen where that may be more"


@pytest.mark.parametrize(
    ("velocity", "first", "increments"),
    [(1.0, 1e-2, 2), (1.0, 1e-4, 2), (1.0, 3e-8, 1), (1.0, 1e-9, 0), (0.1 * STILL / STEP, 1e-4, 0)],
)
def test_less_remains_where_the_first_increment_is_small(
    newton: Callable[..., Found], velocity: float, first: float, increments: int
) -> None:
    """Errors shrink by 0.2 to 1e-3 of the tolerance, of first increments below 1e-2 in proportion, but 1e-8 at least.

    At rest increments are round-off.
    """
    assert SMALL == 1e-2
    assert newton(0.5 + first * TOLERANCE / 0.8, inverse=0.8, velocity=velocity).increments == increments


def test_the_ratio_is_kept_for_the_next_step(newton: Callable[..., Found]) -> None:
    """It fades; where it is known, one increment below what it leaves is enough, and nothing is evaluated behind it."""
    first = newton(0.9, inverse=0.9)
    assert first.kept[5] == pytest.approx(0.1, rel=1e-6)
    assert first.kept[3:5] == pytest.approx([2.0, 10.0 + first.evaluations])
    near = newton(0.5 + 1e-6, inverse=0.99, rate=0.2)
    assert near.kept[5] == pytest.approx(FADING * 0.2)
    assert near.increments == near.evaluations == 2
    assert newton(0.9, inverse=3.0, rate=0.25).kept[5] == 0.0, "of an iteration matrix that is new nothing is known"


@pytest.mark.parametrize(
    ("share", "fast", "ends"),
    [(0.1 * FLOOR, False, True), (3.0 * FLOOR, False, False), (0.3 * ROUND_OFF, True, True)],
)
def test_round_off_ends_where_it_is_that(newton: Callable[..., Found], share: float, fast: bool, ends: bool) -> None:
    """Increments that no longer shrink: below the floor, or below round-off where they have shrunk fast until then."""
    ratio = 0.1 * FAST if fast else 0.25
    guess = 0.5 + (1e-3 if fast else 1e3 * share)
    found = newton(guess, inverse=1.0 - ratio, noise=share, tolerance=1e-15)
    assert (found.iteration_matrices == 0) == ends
    assert found.unknown == pytest.approx(0.5, abs=3.0 * max(share, 1e-15))


@pytest.mark.parametrize(
    ("guess", "sentence"),
    [
        (
            -0.72,
            "the iteration stalls: increments hardly decrease, and the residual is 0.012 times what it was at first",
        ),
        (-0.69, "the iteration diverges: increments grow, and the residual is 0.0043 times what it was at first"),
    ],
)
def test_what_fails_far_above_its_tolerance_does_not_blame_that(
    newton: Callable[..., Found], guess: float, sentence: str
) -> None:
    """Between the turning points of a cubic Newton's iteration goes to and fro; C and Python say the same of it."""
    reason = newton(guess, -0.6).reason
    assert reason.startswith("after 10 iterations x still moves by 0.0")
    assert reason.endswith(sentence)
    limits, method = Limits(np.array([TOLERANCE]), np.ones(1)), Method(Jacobian.EXACT, 10, 1e9)
    problem = cast(StepProblem, Scalar(-0.6, np.array([guess])))
    with pytest.raises(SimulationError) as warned:
        solve(lambda: problem, STEP, limits, method, None, 0.0)
    assert str(warned.value) == reason
