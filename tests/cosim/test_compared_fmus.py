"""`compare` of FMUs without a model, against closed forms: two masses and springs, and two lags, by C of the tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cosim import linear_units
from cosim.joined_mechanisms import HANDLE
from cosim.oscillator_theory import step_map
from scipy.linalg import expm

import mbsfmu
from mbsfmu import CoupledJoint
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.comparison import Comparison
from mbsfmu.comparison.reference_run import SHARE, InternalSteps, _is_step
from mbsfmu.comparison.run import CoupledFmus
from mbsfmu.cosim.coupling.algorithms import parted
from mbsfmu.cosim.ssp import write_ssp
from mbsfmu.modelling.variables import Causality
from mbsfmu.simulation.variable_table import STEP

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


def test_errors_that_cannot_be_told_apart_are_named(comparison: Comparison) -> None:
    assert "Errors inside one and two, which have no parameter solver.step, cannot be told" in comparison.step_verdict
    assert comparison.coupled_reference is not None
    assert comparison.coupled_reference.internal_steps == {}
    for run in comparison.runs:
        assert run.worst_total is None
        assert run.worst_inside is None
        assert run.judged == run.worst_error


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


def test_errors_inside_our_fmus_are_told_from_those_of_coupling(halves_exact: list[Path]) -> None:
    """Coupling alone is the linear map of FMUs that are exact between communication points; rk4 by 0.1 s is not."""
    steps, stop, places = (0.1, 0.05), 1.0, {"one.position": 0, "one.speed": 1, "two.speed": 2}
    given = {"connections": linear_units.CONNECTIONS, "parameters": {"one.solver.step": 0.1, "two.solver.step": 0.1}}
    made = mbsfmu.compare(
        halves_exact, steps=steps, stop=stop, algorithms=["jacobi", "gauss-seidel"], workers=1, **given
    )
    found = made.coupled_reference
    assert found is not None
    assert found.internal_steps == {"one": found.step, "two": found.step}
    rows = np.array([linear_units.exact(time) for time in made.reference_run.time])[:, [0, 1, 3]]
    for run in made.runs:
        result = mbsfmu.cosimulate(halves_exact, algorithm=run.algorithm, step=run.step, stop=stop, **given)
        states = [np.array([0.1, 0.0, 0.0, 0.0])]
        for _ in result.time[1:]:
            states.append(step_map(run.algorithm, "zero", run.step) @ states[-1])
        truth = np.array([linear_units.exact(time) for time in result.time])[:, [0, 1, 3]]
        for name, place in places.items():
            extent = float(np.ptp(rows[:, place]))
            coupled, own = np.array(states)[:, place], result[name]
            bound = 2.0 * found.worst_uncertainty
            assert run.error[name] == pytest.approx(np.max(np.abs(coupled - truth[:, place])) / extent, abs=bound)
            assert run.error_total[name] == pytest.approx(np.max(np.abs(own - truth[:, place])) / extent, abs=bound)
            assert run.error_inside[name] == pytest.approx(np.max(np.abs(own - coupled)) / extent, abs=bound)
        assert run.worst_inside is not None
        assert run.worst_inside > 10.0 * bound or run.step < 0.1, "it is something to be told"
        assert run.judged == run.worst_total
    assert "(0.00313 s in one and 0.00313 s in two)" in made.step_verdict
    assert "cannot be told" not in made.step_verdict


@pytest.mark.parametrize(("given", "tolerance"), [(None, 1e-8), (1e-3, 1e-5)])
def test_solvers_that_choose_their_steps_are_refined_by_tolerance(
    halves_exact: list[Path], given: float | None, tolerance: float
) -> None:
    """The FMUs suggest 1e-6."""
    fmus = CoupledFmus(halves_exact, linear_units.CONNECTIONS, coupling={"unit_tolerance": given})
    with fmus.run("jacobi", step=0.1, stop=1.0) as run:
        internal = InternalSteps.of(run)
    refined, steps = internal.refined(fmus, 0.1, 3)
    assert refined.coupling["unit_tolerance"] == pytest.approx(tolerance)
    assert steps == {"one": 1.25e-4, "two": 1.25e-4}
    assert refined.parameters == {"one.solver.step": 1.25e-4, "two.solver.step": 1.25e-4}


def test_a_step_is_a_parameter_in_seconds() -> None:
    assert _is_step(STEP)
    assert not _is_step(replace(STEP, unit="1"))
    assert not _is_step(replace(STEP, causality=Causality.OUTPUT))
    assert not _is_step(None)


def test_errors_inside_are_told_of_the_fmus_that_allow_it(halves_exact: list[Path], oscillators: list[Path]) -> None:
    made = mbsfmu.compare(
        [halves_exact[0], oscillators[1]], connections=("two.force=one.force", "one.velocity=two.velocity_in"),
        parameters={"one.solver.step": 0.05, "two.side": 2.0, "two.stiffness": 20.0}, steps=(0.05, 0.025), stop=0.5,
        algorithms=["gauss-seidel"], workers=1, accuracy=0.1,
    )  # fmt: skip
    assert made.coupled_reference is not None
    assert set(made.coupled_reference.internal_steps) == {"one"}
    assert made.coupled_reference.untold == ("two",)
    assert "Errors inside two, which has no parameter solver.step, cannot be told" in made.step_verdict
    assert all(run.worst_inside is not None and 0.0 < run.worst_inside < 1e-3 for run in made.runs)


def test_runs_that_joints_alone_couple_are_made_once(pinned: list[Path], tmp_path: Path) -> None:
    joint = CoupledJoint.parse(f"revolute:left.{HANDLE}=right.{HANDLE}:0,0,1")
    fmus = dict(zip(("left", "right"), pinned, strict=True))
    package = write_ssp(tmp_path / "pin.ssp", "pin", fmus, [], 0.1, joints=[joint])
    given = {"steps": (0.02, 0.01), "workers": 1, "outputs": ["*.angle"], "accuracy": 1e-6}  # which none reaches
    algorithms = ["gauss-seidel", "jacobi", "jacobi-linear", "gauss-seidel-linear"]
    made = mbsfmu.compare(package, algorithms=algorithms, **given)
    assert made.same_runs == {"jacobi": "gauss-seidel", "gauss-seidel-linear": "jacobi-linear"}
    assert [run.algorithm for run in made.runs] == ["gauss-seidel"] * 2 + ["jacobi-linear"] * 2
    sentence = "to the last bit, the run of jacobi that of gauss-seidel and gauss-seidel-linear that of jacobi-linear"
    assert sentence in made.same_runs_sentence
    assert made.to_dict()["same_runs"] == made.same_runs
    one, two = (
        mbsfmu.cosimulate(pinned, joints=[joint], algorithm=algorithm, extrapolation="linear", step=0.01, stop=0.1)
        for algorithm in ("jacobi", "gauss-seidel")
    )
    assert all(np.array_equal(one[name], two[name]) for name in one.names), "which is why"
