"""`compare` of FMUs without a model, against closed forms: two masses and springs, and two lags, by C of the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

import mbsfmu
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.comparison import Comparison
from mbsfmu.comparison.coupled_reference import SHARE
from mbsfmu.cosim.coupling.choices import parted

GROUND, SPRING, START, STOP, STEPS = (30.0, 50.0), (10.0, 20.0), 0.1, 2.0, (0.02, 0.01, 5e-3)
CROSSED = ("one.x=two.u", "two.x=one.u")
PARAMETERS = {
    "one.ground": GROUND[0],
    "one.spring": SPRING[0],
    "two.ground": GROUND[1],
    "two.spring": SPRING[1],
    "one.x": START,
}
OUTPUTS = ("one.x", "one.v", "two.x", "two.v")


def exact(times: np.ndarray) -> dict[str, np.ndarray]:
    """Positions and speeds of both masses of 1 kg, each pulled by a spring to where the other one is."""
    matrix = np.zeros((4, 4))
    matrix[0, 1] = matrix[2, 3] = 1.0
    matrix[1, [0, 2]] = -GROUND[0] - SPRING[0], SPRING[0]
    matrix[3, [2, 0]] = -GROUND[1] - SPRING[1], SPRING[1]
    states = np.array([expm(matrix * time) @ [START, 0.0, 0.0, 0.0] for time in times])
    return dict(zip(OUTPUTS, states.T, strict=True))


@pytest.fixture(scope="session")
def masses(foreign: Callable[[str], Path]) -> list[str]:
    path = foreign("sprung")
    return [f"one={path}", f"two={path}"]


def compared(masses: list[str], **given: object) -> Comparison:
    options = {"connections": CROSSED, "parameters": PARAMETERS, "steps": STEPS, "stop": STOP, "workers": 1, **given}
    return mbsfmu.compare(masses, **options)


@pytest.fixture(scope="module")
def comparison(masses: list[str]) -> Comparison:
    return compared(masses, algorithms=("jacobi", "gauss-seidel-linear", "newton"))


def true_errors(masses: list[str], algorithm: str, extrapolation: str, step: float) -> dict[str, float]:
    """Errors of a coupled run against the closed form, in shares of the exact ranges."""
    run = mbsfmu.cosimulate(
        masses, connections=CROSSED, parameters=PARAMETERS, algorithm=algorithm, extrapolation=extrapolation,
        step=step, stop=STOP,
    )  # fmt: skip
    truth, fine = exact(run.time), exact(np.linspace(0.0, STOP, 4001))
    return {name: float(np.max(np.abs(run[name] - truth[name])) / np.ptp(fine[name])) for name in OUTPUTS}


def test_the_reference_is_as_good_as_it_says(comparison: Comparison) -> None:
    found = comparison.coupled_reference
    assert found is not None
    assert found.algorithm == "newton-linear"
    assert found.doubt == ""
    run = comparison.reference_run
    truth = exact(run.time)
    for name in OUTPUTS:
        true = float(np.max(np.abs(run[name] - truth[name])) / np.ptp(truth[name]))
        assert true < 1.3 * found.uncertainty[name], "an upper bound, about"
        assert true > 0.3 * found.uncertainty[name], "which says something"
    assert found.worst_uncertainty <= SHARE * comparison.accuracy


def test_errors_and_orders_are_those_against_the_closed_form(comparison: Comparison, masses: list[str]) -> None:
    assert comparison.coupled_reference is not None
    bound = 2.0 * comparison.coupled_reference.worst_uncertainty
    assert set(comparison.outputs) == set(OUTPUTS)
    for run in comparison.runs:
        algorithm, extrapolation = parted(run.algorithm)
        truth = true_errors(masses, algorithm, extrapolation, run.step)
        for name in OUTPUTS:
            assert run.error[name] == pytest.approx(truth[name], abs=bound, rel=0.01)
    assert comparison.order["jacobi"] == pytest.approx(1.0, abs=0.15)
    assert comparison.order["newton"] == pytest.approx(1.0, abs=0.15)


def test_what_is_discrete_is_named_and_not_compared(comparison: Comparison) -> None:
    assert set(comparison.left_out) == {"one.side", "one.right", "two.side", "two.right"}


def test_the_verdict_is_of_the_cheapest_run_that_is_accurate(comparison: Comparison) -> None:
    good = [run for run in comparison.runs if max(run.error.values()) <= comparison.accuracy]
    assert good
    assert comparison.cheapest
    assert all(run in good for run in comparison.cheapest)
    assert comparison.verdict.startswith("For an error of at most 1 % the cheapest")
    assert "monolithic" not in comparison.verdict
    assert "it is itself good to about" in comparison.step_verdict


def test_steps_are_those_that_fmus_suggest(masses: list[str]) -> None:
    made = mbsfmu.compare(
        masses, connections=CROSSED, parameters=PARAMETERS, algorithms=["gauss-seidel"], outputs=["one.*"], workers=1
    )
    assert [run.step for run in made.runs] == pytest.approx([0.04, 0.02, 0.01])
    assert set(made.outputs) == {"one.x", "one.v"}
    assert made.left_out == (), "what is not asked for is not missed"
    assert made.reference["stop"] == pytest.approx(2.0)


def test_steps_that_do_not_divide_each_other_are_compared_between_points_of_the_reference(masses: list[str]) -> None:
    made = compared(masses, steps=(0.007, 0.005), algorithms=("jacobi",), accuracy=0.05)
    assert made.coupled_reference is not None
    for run in made.runs:
        truth = true_errors(masses, "jacobi", "zero", run.step)
        for name in OUTPUTS:
            assert run.error[name] == pytest.approx(truth[name], abs=2.0 * made.coupled_reference.worst_uncertainty)


def test_a_reference_that_does_not_converge_gives_no_verdict(masses: list[str]) -> None:
    """The output shakes by 0.01 m in every third step, however small steps are."""
    made = compared(masses, parameters={**PARAMETERS, "one.shake": 0.01}, algorithms=("jacobi",), stop=0.5)
    assert made.verdict.startswith("No verdict: the reference does not converge: with ")
    assert made.cheapest == []
    assert made.step_verdict == ""
    assert made.to_dict()["coupled_reference"]["doubt"] in made.verdict


def test_fmus_with_steps_of_one_length_have_no_reference(masses: list[str]) -> None:
    with pytest.raises(
        SimulationError, match=r"no reference; .*step of 0\.005 s is refused: it takes steps of 0\.01 s"
    ):
        compared(masses, parameters={**PARAMETERS, "one.only": 0.01}, steps=(0.01,))


def test_fmus_of_fmi_1_without_saved_states_are_compared(foreign: Callable[[str], Path]) -> None:
    """Two lags that follow each other: ẋ₁ = x₂ − x₁, ẋ₂ = 4 (x₁ − x₂)."""
    path = foreign("lag")
    given = {"connections": ("one.x=two.u", "two.x=one.u"), "parameters": {"one.x_start": 3.0, "two.rate": 4.0}}
    made = mbsfmu.compare(
        [f"one={path}", f"two={path}"], steps=(0.02, 0.01), stop=1.0, algorithms=["jacobi"], workers=1, **given
    )
    assert made.coupled_reference is not None
    assert made.coupled_reference.algorithm == "gauss-seidel-linear"
    matrix, start = np.array([[-1.0, 1.0], [4.0, -4.0]]), np.array([3.0, 1.0])
    times = np.linspace(0.0, 1.0, 1001)
    truth = np.array([expm(matrix * time) @ start for time in times]).T
    for run in made.runs:
        result = mbsfmu.cosimulate([f"one={path}", f"two={path}"], algorithm="jacobi", step=run.step, stop=1.0, **given)
        for name, values in zip(("one.x", "two.x"), truth, strict=True):
            true = np.max(np.abs(result[name] - np.interp(result.time, times, values))) / np.ptp(values)
            assert run.error[name] == pytest.approx(true, rel=0.01)
    assert "one.steps" in made.left_out
    with pytest.raises(InputError, match="cannot save the state, which newton needs"):
        mbsfmu.compare([f"one={path}", f"two={path}"], steps=(0.02,), stop=1.0, algorithms=["newton"], **given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"formulation": "dca"}, "formulation = dca has no effect with FMUs"),
        ({"backend": "python"}, "backend = python has no effect with FMUs"),
        ({"outputs": ["one.side"]}, r"no continuous output is called 'one\.side'; discrete outputs are not compared"),
        ({"outputs": ["one.y"]}, r"no continuous output is called 'one\.y'; .*one\.x"),
        ({"connections": ()}, "nothing connects the FMUs"),
        ({"coupling": {"step": 1.0}}, "there is no option 'step' of all coupled runs"),
    ],
)
def test_what_has_no_effect_is_refused(masses: list[str], given: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        compared(masses, **given)


def test_models_take_no_connections_of_fmus() -> None:
    with pytest.raises(InputError, match="has no effect with the model four-bar; it has with FMUs"):
        mbsfmu.compare(mbsfmu.models.four_bar(), connections=CROSSED)
