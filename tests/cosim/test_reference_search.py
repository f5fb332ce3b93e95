"""The search of a reference run of FMUs: its estimate, its doubts and its way through algorithms, on made-up errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import mbsfmu
from mbsfmu.base.errors import SimulationError
from mbsfmu.comparison import reference_run
from mbsfmu.comparison.reference_run import CoupledReference, InternalSteps, _CoupledRun, _Search
from mbsfmu.comparison.run import CoupledFmus, ReferenceRun
from mbsfmu.cosim import CosimulationError, CosimulationResult
from mbsfmu.modelling.variables import Variable

NOTHING = CosimulationResult(np.array([0.0, 1.0]), np.zeros((2, 0)), (), ())


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[CoupledReference, list[int]]]:
    """Return a function that searches by the errors of steps from 0.1 s on, and by which of the runs fail."""

    def searched(
        error: Callable[[float], float], accuracy: float, fails: Callable[[int], bool] = lambda _: False
    ) -> tuple[CoupledReference, list[int]]:
        tried = list[int]()

        def made(_: object, halvings: int) -> SimpleNamespace:
            tried.append(halvings)
            if fails(halvings):
                raise CosimulationError("it diverges", NOTHING)
            return SimpleNamespace(
                step=0.1 / 2**halvings,
                internal_steps={},
                seconds=0.0,
                result=SimpleNamespace(time=np.array([0.0, 1.0])),
            )

        def changes(_: object, now: _CoupledRun, last: _CoupledRun) -> dict[str, float]:
            return {"y": abs(error(now.step) - error(last.step))}

        monkeypatch.setattr(_Search, "_make", made)
        monkeypatch.setattr(_Search, "_changes", changes)
        return _Search(CoupledFmus([]), "newton", (0.1,), 1.0, accuracy, {}, InternalSteps()).run(np.inf)[0], tried

    return searched


Search = Callable[..., tuple[CoupledReference, list[int]]]


def test_the_reference_is_the_best_of_its_halvings(search: Search) -> None:
    """Of an error h² + 1e-9 / h, halvings of 0.1 s change it least at 0.1 / 2⁷ s; two that are worse are the last."""

    def error(step: float) -> float:
        return step**2 + 1e-9 / step

    found, tried = search(error, 1e-5)
    assert found.step == 0.1 / 2**7
    assert found.uncertainty["y"] == pytest.approx((error(0.1 / 2**6) - error(found.step)) / 3.0)
    assert tried == list(range(10))


@pytest.mark.parametrize(("order", "accuracy"), [(1, 0.1), (2, 0.1), (1, 1.0)])
def test_the_error_is_estimated_by_richardson(search: Search, order: int, accuracy: float) -> None:
    """Of an error c hⁿ the estimate is exact, and the search ends where it is a hundredth of the accuracy."""
    found, _ = search(lambda step: step**order, accuracy)
    assert found.uncertainty["y"] == pytest.approx(found.step**order, rel=1e-9)
    assert found.step**order <= 0.01 * accuracy < (2.0 * found.step) ** order
    assert found.doubt == ""


def test_changes_that_do_not_fall_are_taken_as_they_are(search: Search) -> None:
    """They alternate by round-off: the larger one of the last two counts."""
    found, _ = search(lambda step: {0.1: 0.0, 0.05: 1e-6}.get(step, 1.8e-6), 1e-3)
    assert found.uncertainty["y"] == pytest.approx(1e-6)
    assert found.doubt == ""


def test_a_reference_that_is_hardly_good_enough_is_doubted(search: Search) -> None:
    found, tried = search(lambda step: 50.0 * step, 1e-2)
    assert len(tried) == 11
    assert found.uncertainty["y"] == pytest.approx(50.0 * 0.1 / 2**10)
    assert found.doubt.startswith(
        "the reference itself (newton with a step of 9.77e-05 s) is good to about 0.49 % of y"
    )


def test_steps_that_fail_are_made_smaller_and_end_the_search_behind_those_that_succeed(search: Search) -> None:
    found, tried = search(lambda step: step**2, 1e-3, lambda halvings: halvings < 3)
    assert tried[:4] == [0, 1, 2, 3]
    assert found.doubt == ""
    found, tried = search(lambda step: step**2, 1e-9, lambda halvings: halvings > 4)
    assert (found.step, tried) == (0.1 / 2**4, [0, 1, 2, 3, 4, 5])
    with pytest.raises(CosimulationError, match="it diverges"):
        search(lambda step: step**2, 1e-9, lambda _: True)


def test_the_first_algorithm_without_doubts_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    def run(self: _Search, _: float) -> tuple[CoupledReference, SimpleNamespace]:
        asked.append(self._algorithm)
        doubt = "" if self._algorithm == "gauss-seidel-linear" else "it does not converge"
        return CoupledReference(self._algorithm, 0.1, {"y": 0.1}, doubt), SimpleNamespace(
            result=None, outputs=None, fmus=None
        )

    monkeypatch.setattr(_Search, "run", run)
    found, *_ = reference_run.coupled_reference(CoupledFmus([]), (0.1,), 1.0, 0.1, {}, InternalSteps())
    assert found.algorithm == "gauss-seidel-linear"
    assert asked == ["newton-linear", "gauss-seidel-linear"]


@pytest.mark.parametrize(("steps", "change"), [((0.2, 0.4), 0.0), ((0.2, 0.3), 0.2**2 / 4.0)])
def test_between_its_points_a_reference_is_a_line(steps: tuple[float, float], change: float) -> None:
    """y = t² at both steps: errors between points count where compared runs have times there."""
    runs = []
    for step in (0.1, 0.2):
        times = np.arange(round(1.0 / step) + 1) * step
        result = CosimulationResult(times, times[:, np.newaxis] ** 2, ("a.y",), ("m",))
        outputs = ReferenceRun.of(result, {"a.y": 1.0}, {"a.y": "a.y"})
        runs.append(_CoupledRun(CoupledFmus([]), {}, step, result, outputs, 0.0))
    search = _Search(CoupledFmus([]), "newton", steps, 1.0, 0.1, {"a.y": Variable("y")}, InternalSteps())
    found = search._changes(*runs)
    assert found["a.y"] == pytest.approx(change, abs=1e-12)


def test_fmus_that_end_the_run_have_no_reference(foreign: Callable[[str], Path]) -> None:
    with pytest.raises(SimulationError, match=r"there is no reference; .*an FMU ends the run at 0\.3 s"):
        mbsfmu.compare(
            [foreign("ticking"), foreign("dahlquist")], connections=["ticking.height=dahlquist.u"],
            parameters={"ticking.last": 0.3}, steps=(0.1,), algorithms=("jacobi",), stop=0.5, workers=1,
        )  # fmt: skip
