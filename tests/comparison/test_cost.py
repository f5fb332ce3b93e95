"""Observed orders, and which setting is the cheapest for an accuracy."""

from __future__ import annotations

import pytest

from mbsfmu.comparison import Run
from mbsfmu.comparison.comparison_runs import of_coupling
from mbsfmu.comparison.cost import cheapest_runs, observed_order, step_verdict, verdict
from mbsfmu.comparison.reference_run import TightRun

REFERENCE = {"cost": 0.5}


def run(algorithm: str, step: float, error: float, *costs: float, status: str = "ok") -> Run:
    errors = {"a.x": error, "a.y": error / 3}
    return Run(algorithm, step, status, errors, None, 10, 9.9, costs=costs, loading_seconds=0.03)


RUNS = [
    run("jacobi", 4e-3, 0.16, 1.0),
    run("jacobi", 2e-3, 0.08, 2.0),
    run("jacobi", 1e-3, 0.04, 4.0),
    run("newton", 4e-3, 0.05, 3.0),
    run("newton", 2e-3, 0.0125, 6.0),
    run("newton", 8e-3, 1e-9, 0.1, status="diverged"),
]


def test_order_is_the_slope_of_what_converged() -> None:
    assert observed_order(RUNS[:3]) == pytest.approx(1.0)
    assert observed_order(RUNS[3:]) == pytest.approx(2.0)
    assert observed_order(RUNS[4:]) is None


def test_round_off_has_no_order() -> None:
    """Errors that no step decides on are left out; where fewer than two others are left, there is no order."""
    errors = {4e-3: 4e-8, 2e-3: 1e-8, 1e-3: 6e-10, 5e-4: 7e-10}
    runs = [run("jacobi", step, error, 1.0) for step, error in errors.items()]
    assert observed_order(runs) == pytest.approx(2.0)
    assert observed_order(runs[1:]) is None
    assert observed_order([run("jacobi", step, 1.8e-21, 1.0) for step in errors]) is None


def test_what_the_reference_cannot_tell_has_no_order() -> None:
    """Errors that stay at its own error are left out of the slope of those that fall with the square of the step."""
    runs = [run("jacobi", step, max(step**2, 2e-6), 1.0) for step in (4e-3, 2e-3, 1e-3, 5e-4)]
    assert observed_order(runs, 3e-6) == pytest.approx(2.0)
    assert observed_order(runs) == pytest.approx(1.0), "by hand, of 16, 4, 2 and 2e-6"
    assert observed_order(runs, 5e-6) is None


@pytest.mark.parametrize(("accuracy", "index"), [(0.2, 0), (0.07, 3), (0.045, 2), (0.02, 4), (0.01, None)])
def test_cheapest_is_accurate_enough_and_costs_least(accuracy: float, index: int | None) -> None:
    assert cheapest_runs(RUNS, accuracy) == ([] if index is None else [RUNS[index]])


def test_sentence_names_setting_error_and_cost() -> None:
    assert verdict(RUNS, {}, 0.07, REFERENCE) == (
        "For an error of at most 7 % the cheapest is newton with a step of 0.004 s: 5 % for 3 s of processor time per "
        "simulated second, beside 500 ms of the monolithic run; loading the FMUs takes 30 ms once."
    )


def test_a_tie_is_named_the_most_exact_first() -> None:
    tied = [run("jacobi", 2e-3, 0.008, 2.0, 2.2, 2.1), run("newton", 2e-3, 0.002, 2.1, 2.0, 2.3), RUNS[2]]
    assert verdict(tied, {}, 0.05, REFERENCE) == (
        "For an error of at most 5 % the cheapest are newton with a step of 0.002 s (0.2 % for 2.1 s) and jacobi with "
        "a step of 0.002 s (0.8 % for 2.1 s) of processor time per simulated second, a tie: their costs differ by less "
        "than 10 %, or by less than repetitions tell, beside 500 ms of the monolithic run; loading the FMUs takes 30 "
        "ms once."
    )


def test_sentence_says_what_the_nearest_would_need() -> None:
    """Second order: a hundredth of the error takes a tenth of the step."""
    sentence = verdict(RUNS, {"newton": 2.0}, 0.000125, REFERENCE)
    assert sentence == (
        "No run reaches an error of at most 0.0125 %; nearest comes newton with a step of 0.002 s and 1.25 %; "
        "by its observed order it takes a step of about 0.0002 s."
    )
    assert verdict(RUNS, {"newton": None}, 0.000125, REFERENCE).endswith("0.002 s and 1.25 %.")
    nearly = verdict(RUNS, {"newton": 1.0}, 0.0121, REFERENCE)
    assert nearly.endswith("takes a step of about 0.0019 s."), "0.00194 s, and not the step that was just made"


def test_runs_are_judged_with_the_error_of_the_step() -> None:
    """Where that is known: the coupling alone says less than what a user of the result meets."""
    judged = [run("jacobi", 2e-3, 0.08, 2.0), run("jacobi", 1e-3, 0.04, 4.0)]
    for each, total in zip(judged, (0.03, 0.06), strict=True):
        each.error_total = {"a.x": total}
    assert cheapest_runs(judged, 0.05) == [judged[0]]
    reference = {**REFERENCE, "error": {"a.x": 0.02}}
    assert verdict(judged, {"jacobi": 1.0}, 0.01, reference) == (
        "No run reaches an error of at most 1 %; nearest comes jacobi with a step of 0.002 s and 3 %; the internal "
        "step alone costs 2 %, so that smaller ones are needed first."
    )


def test_sentence_where_everything_diverged() -> None:
    """What else there is to take is named: an algorithm that iterates, where none has been tried, and smaller steps."""
    told = "No run reaches an error of at most 1 %: all of them diverge; take "
    assert verdict(RUNS[5:], {}, 0.01, REFERENCE).startswith(f"{told}steps below 0.008 s; --stability")
    lost = [run("jacobi", step, 0.1, 1.0, status="diverged") for step in (2e-3, 5e-4)]
    sentence = verdict(lost, {}, 0.01, REFERENCE)
    assert sentence.startswith(f"{told}--algorithms newton-linear (algorithms=['newton-linear'])")
    assert sentence.endswith("or steps below 0.0005 s.")


def test_share_of_what_does_not_move_is_none_of_a_range() -> None:
    tight = TightRun("dca", "rodas5p", 1e-8)
    for still, told in (((), "(a.x)"), (["a.x"], "(a.x, of its magnitude, for it does not move)")):
        reference = {"step": 1e-3, "error": {"a.x": 1e-8, "a.y": 1e-9}, "still": still}
        assert f"costs 1e-06 % {told}, measured" in step_verdict(reference, tight)


def test_orders_of_iterated_algorithms_leave_the_units_own_step_out() -> None:
    """There they are the monolithic run to the iteration's tolerance; those of others differ by coupling there too."""
    for algorithm, kept in (("newton", [2e-3, 1e-3]), ("jacobi", [2e-3, 1e-3, 5e-4])):
        runs = [run(algorithm, step, 0.1, 1.0) for step in (2e-3, 1e-3, 5e-4)]
        others = [run("gauss-seidel", 2e-3, 0.1, 1.0)]
        assert [each.step for each in of_coupling([*runs, *others], algorithm, 5e-4)] == kept
