"""Coupling algorithms on the two-mass oscillator: orders, stability limits, and the monolithic run of the same step."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS, NAMES, START, change_description, exact, export_linear, halves, whole
from cosim.oscillator_theory import stability_limit
from scipy.linalg import expm

import mbsfmu
import mbsfmu.comparison
from mbsfmu import CosimulationError, CosimulationResult, CouplingOptions, InputError, cosimulate
from mbsfmu.cosim.coupling.extrapolation import Extrapolation
from mbsfmu.cosim.runs.coupling_options import CouplingKeywords
from mbsfmu.io.signals import StepSignal

ALL = ("jacobi", "gauss-seidel", "fixed-point", "newton")
STOP = 1.0
NEWTON = {"algorithm": "newton"}


def run(units: list[Path], step: float, stop: float = STOP, **options: object) -> CosimulationResult:
    return cosimulate(units, connections=CONNECTIONS, step=step, stop=stop, **options)


def end(result: CosimulationResult) -> np.ndarray:
    return np.array([result[name][-1] for name in NAMES])


def observed_order(units: list[Path], **options: object) -> float:
    steps = (0.01, 0.005, 0.0025)
    errors = [np.max(np.abs(end(run(units, step, **options)) - exact(STOP))) for step in steps]
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


@pytest.mark.parametrize("algorithm", ALL)
@pytest.mark.parametrize(("extrapolation", "order"), [("zero", 1), ("linear", 2), ("quadratic", 3), ("derivatives", 2)])
def test_order(halves_exact: list[Path], algorithm: str, extrapolation: str, order: int) -> None:
    """Iterated, derivatives at the beginning and values at the end make parabolas: one order more."""
    if extrapolation == "derivatives" and algorithm in ("fixed-point", "newton"):
        order = 3
    options = {"algorithm": algorithm, "extrapolation": extrapolation}
    assert observed_order(halves_exact, **options) == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_adaptive_inputs_are_straight_where_steps_resolve_the_motion(halves_exact: list[Path], algorithm: str) -> None:
    """Of second order where they are, but for turning points: errors are near those of lines, far below held inputs."""
    errors = {}
    for extrapolation in ("zero", "linear", "adaptive"):
        options = {"algorithm": algorithm, "extrapolation": extrapolation}
        found = [run(halves_exact, step, **options) for step in (0.005, 0.0025)]
        errors[extrapolation] = [np.max(np.abs(end(result) - exact(STOP))) for result in found]
    assert errors["adaptive"][1] < 0.1 * errors["zero"][1]
    assert np.log2(errors["adaptive"][0] / errors["adaptive"][1]) > 1.5


def test_adaptive_inputs_are_held_where_lines_would_grow(tmp_path: Path) -> None:
    """Beyond the stability limit of lines and below that of held inputs the run decays."""
    units = [export_linear(system, tmp_path, "rk4", 1e-2) for system in halves(damping=0.1)]
    limits = [stability_limit("gauss-seidel", extrapolation, damping=0.1) for extrapolation in ("linear", "zero")]
    step, steps = float(np.mean(limits)), 400
    assert limits[0] < step < limits[1]
    grown = {}
    for extrapolation in ("linear", "adaptive"):
        result = run(units, step, steps * step, algorithm="gauss-seidel", extrapolation=extrapolation)
        speed = np.abs(result["two.speed"])
        grown[extrapolation] = speed[-steps // 4 :].max() / speed[: steps // 4].max()
    assert grown["linear"] > 1e3
    assert grown["adaptive"] < 1.0


def test_equal_steps_are_adaptive_where_nothing_is_named(halves_exact: list[Path]) -> None:
    taken = [
        CouplingOptions(),
        CouplingOptions(step=0.01),
        CouplingOptions.of(CouplingOptions(step=0.01), {"stop": 1.0}),
        CouplingOptions(energy_correction=False, linear_correction=False),
    ]
    assert all(options.extrapolation is Extrapolation.ADAPTIVE for options in taken)
    for control in ("error", "energy"):
        assert CouplingOptions(control=control).extrapolation is Extrapolation.LINEAR
    held = [{"algorithm": "gauss-seidel"}, {"energy_correction": True}, {"extrapolation": "zero"}]
    for given in held:
        assert CouplingOptions.of(CouplingOptions(step=0.01), given).extrapolation is Extrapolation.ZERO, given
    for given in ({"algorithm": "newton"}, {"control": "error"}):
        with pytest.raises(
            InputError, match="adaptive has no effect with iterated or controlled steps; it has with jac"
        ):
            CouplingOptions(extrapolation="adaptive", **given)
    assert run(halves_exact, 0.01).extrapolation == "adaptive"


@pytest.mark.parametrize("extrapolation", ["zero", "linear", "adaptive"])
def test_the_error_of_the_coupling_by_a_second_run(halves_exact: list[Path], extrapolation: str) -> None:
    """At least the true one, and at most 1.6 times, as first order takes one of second order for more."""
    result = run(halves_exact, 0.01, algorithm="gauss-seidel", extrapolation=extrapolation, check_error=True)
    times = np.array([exact(time) for time in result.time])
    errors = [
        np.max(np.abs(result[name] - times[:, place])) / np.ptp(times[:, place]) for place, name in enumerate(NAMES)
    ]
    assert 0.95 < result.coupling_error / max(errors) < 1.6
    with pytest.raises(InputError, match="leave out until"):
        run(halves_exact, 0.01, check_error=True, until=0.5)
    with pytest.raises(InputError, match="with the control 'error' a tolerance is kept"):
        run(halves_exact, 0.01, check_error=True, control="error")


def test_order_of_units_that_hold_their_inputs(halves_poor: list[Path]) -> None:
    """The mean of a parabola over a step is good for the second order; smaller steps of the FMUs do not help."""
    assert observed_order(halves_poor, algorithm="jacobi", extrapolation="linear") == pytest.approx(2, abs=0.1)
    assert observed_order(halves_poor, algorithm="jacobi", extrapolation="quadratic") == pytest.approx(2, abs=0.1)
    assert "hold" in run(halves_poor, 0.01, extrapolation="linear").notes[0]


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
@pytest.mark.parametrize("extrapolation", ["zero", "linear"])
def test_stability_limit(tmp_path: Path, algorithm: str, extrapolation: str) -> None:
    """Just below the step at which the map's spectral radius is 1, the run decays; just above, it grows."""
    units = [export_linear(system, tmp_path, "rk4", 1e-2) for system in halves(damping=4.0)]
    limit = stability_limit(algorithm, extrapolation, damping=4.0)
    steps = 800
    for step, grows in ((0.99 * limit, False), (1.01 * limit, True)):
        result = run(units, step, steps * step, algorithm=algorithm, extrapolation=extrapolation)
        speed = np.abs(result["two.speed"])
        assert (speed[-steps // 4 :].max() > speed[steps // 4 : steps // 2].max()) == grows


@pytest.mark.parametrize("algorithm", ["fixed-point", "newton"])
def test_iterated_is_monolithic(tmp_path: Path, algorithm: str) -> None:
    """One trapezoidal step in each FMU with inputs running straight to what they become: the rule of the whole."""
    step = 0.01
    units = [export_linear(system, tmp_path, "trapezoidal", step) for system in halves()]
    half = 0.5 * step * whole()
    states = [START]
    for _ in range(100):
        states.append(np.linalg.solve(np.eye(4) - half, (np.eye(4) + half) @ states[-1]))
    result = run(units, step, algorithm=algorithm, extrapolation="linear", iteration_tolerance=1e-10)
    coupled = np.column_stack([result[name] for name in NAMES])
    np.testing.assert_allclose(coupled, states, rtol=0, atol=1e-11)
    held = run(units, step, algorithm=algorithm, extrapolation="zero", iteration_tolerance=1e-10)
    assert np.max(np.abs(np.column_stack([held[name] for name in NAMES]) - states)) > 1e-3


@pytest.mark.parametrize("jacobian", ["differences", "directional"])
def test_newton_is_monolithic_on_four_bar(four_bar_package: Path, jacobian: str) -> None:
    reference = mbsfmu.models.four_bar().simulation(step=1e-3).run(1.1)
    errors = []
    for tolerance in (1e-5, 1e-9):
        result = cosimulate(
            four_bar_package, step=1e-3, stop=1.1, algorithm="newton", extrapolation="linear", jacobian=jacobian,
            iteration_tolerance=tolerance,
        )  # fmt: skip
        errors.append(np.max(np.abs(result["cylinder.force"] - reference["cylinder.force"])))
        # Forces are off by the tolerance's share at most, along the way that the cylinder goes.
        work = np.max(result["cylinder.force"]) * np.ptp(result["cylinder.length"])
        assert abs(result.energy_residual["cylinder"]) < tolerance * work
    # The force begins at 1e4 N: 1e-9 of it, gathered over 200 steps after the valve opens.
    assert errors[1] < 1e-3
    assert errors[0] > errors[1]


def test_more_steps_inside(tmp_path: Path) -> None:
    """Held inputs follow their parabola in four stairs instead of one."""
    units = [export_linear(system, tmp_path, "rk4", 1e-3, canInterpolateInputs=False) for system in halves()]
    errors = [
        np.max(
            np.abs(end(run(units, 0.02, algorithm="newton", extrapolation="derivatives", rates=rates)) - exact(STOP))
        )
        for rates in ({}, {"one": 4, "two": 4})
    ]
    assert errors[1] < 0.3 * errors[0]


def test_rates_are_counted(halves_exact: list[Path]) -> None:
    result = run(halves_exact, 0.01, rates={"one": 4})
    assert result.unit_steps == {"one": 4 * result.steps, "two": result.steps}


def test_threads_change_nothing(halves_exact: list[Path]) -> None:
    one, two = (
        run(halves_exact, 0.01, algorithm="jacobi", extrapolation="linear", threads=threads) for threads in (1, 2)
    )
    np.testing.assert_array_equal(one.values_by_column, two.values_by_column)


def test_no_convergence_is_loud(halves_exact: list[Path]) -> None:
    with pytest.raises(CosimulationError, match=r"does not converge in the step from t = 0.* still changes by .* 1 it"):
        run(halves_exact, 0.01, algorithm="newton", extrapolation="linear", maximum_iterations=1)
    with pytest.raises(CosimulationError, match="take a smaller step or another algorithm"):
        run(halves_exact, 0.5, algorithm="fixed-point", relaxation=2.0, maximum_iterations=10, stop=5.0)


def test_steps_end_at_events(halves_exact: list[Path]) -> None:
    """A jump between two points of the grid costs nothing: the unit's response to it is exact."""
    signal = StepSignal(times=(0.1234,), values=(1.0,))
    result = cosimulate([halves_exact[0]], step=0.05, stop=0.5, inputs={"one.force": signal})
    assert 0.1234 in result.time
    fine = cosimulate([halves_exact[0]], step=0.0001, stop=0.5, inputs={"one.force": signal})
    assert result["position"][-1] == pytest.approx(fine["position"][-1], abs=1e-9)
    held = {"inputs": {"one.force": signal.after}, "extrapolation": "zero"}
    late = cosimulate([halves_exact[0]], step=0.05, stop=0.5, **held)
    assert abs(late["position"][-1] - fine["position"][-1]) > 1e-3


def test_factor_and_offset(halves_exact: list[Path]) -> None:
    """What arrives is factor · source + offset: here a constant 4 N, which ends in its static deflection."""
    force = mbsfmu.cosim.Connection(("two", "force"), ("one", "force"), factor=0.0, offset=4.0)
    result = cosimulate(halves_exact, connections=[force, CONNECTIONS[1]], step=0.01, stop=20.0)
    assert result["one.position"][-1] == pytest.approx(4.0 / 40.0, abs=5e-3)


def test_units_get_a_tolerance(tmp_path: Path) -> None:
    """A unit alone, with a solver that chooses its steps: 1e-6 is what it suggests, and what counts by default."""
    one, _ = halves()
    unit = export_linear(one, tmp_path, "rk45", 1.0)
    exact = (expm(np.array([[0.0, 1.0], [-40.0, -0.4]]) * 5.0) @ START[:2])[0]
    errors = [
        abs(cosimulate(unit, step=1.0, stop=5.0, unit_tolerance=tolerance)["position"][-1] - exact)
        for tolerance in (1e-3, 1e-6, 1e-9, None)
    ]
    assert errors[0] > 10.0 * errors[1] > 100.0 * errors[2]
    assert errors[3] == errors[1]
    change_description(unit, 'tolerance="1e-06"', 'tolerance="1e-03"')
    suggested = cosimulate(unit, step=1.0, stop=5.0)
    assert abs(suggested["position"][-1] - exact) == errors[0]
    with pytest.raises(InputError, match="the tolerance of the FMUs is 0; it must be between 0 and 1"):
        cosimulate(unit, unit_tolerance=0.0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"algorithm": "newton"}, "one and two cannot save the state, which newton needs"),
        ({"jacobian": "exact", **NEWTON}, "there is no jacobian 'exact'"),
        ({"iteration_tolerance": 0.0, **NEWTON}, "the iteration tolerance is 0; it must be between 0 and 1"),
        ({"maximum_iterations": 0, **NEWTON}, "the maximum number of iterations is 0"),
        ({"relaxation": 3.0, "algorithm": "fixed-point"}, "the relaxation is 3"),
        ({"relaxation": "best", "algorithm": "fixed-point"}, "it must be 'aitken' or a number"),
        ({"threads": 0, "algorithm": "jacobi"}, "the number of threads is 0"),
        ({"rates": {"three": 2}}, "there is no FMU 'three' with a rate"),
        ({"rates": {"one": 0}}, "the rate of one is 0"),
        ({"control": "best"}, "there is no control 'best'"),
        ({"control": "error", "tolerance": 0.0}, "the tolerance is 0"),
        ({"control": "error", "smallest_step": 1.0, "largest_step": 0.1}, "0 < smallest <= largest"),
    ],
)
def test_refusals(halves_poor: list[Path], options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        run(halves_poor, 0.01, **options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"threads": 2}, "threads = 2 has no effect with the algorithm 'gauss-seidel'; it has with jacobi and newton"),
        ({"threads": 2, "algorithm": "fixed-point"}, "threads = 2 has no effect with the algorithm 'fixed-point'"),
        ({"tolerance": 1e-3}, "tolerance = 0.001 has no effect with the control 'fixed'; it has with error and energy"),
        ({"absolute_tolerance": 1e-3}, "absolute tolerance = 0.001 has no effect with the control 'fixed'"),
        ({"smallest_step": 1e-3}, "smallest step = 0.001 has no effect with the control 'fixed'"),
        ({"largest_step": 1e-3}, "largest step = 0.001 has no effect with the control 'fixed'"),
        ({"order": ["one", "two"], "algorithm": "jacobi"}, "has no effect with the algorithm 'jacobi'"),
        ({"iteration_tolerance": 1e-6}, "iteration tolerance = 1e-06 has no effect with the algorithm 'gauss-seidel'"),
        ({"maximum_iterations": 9}, "maximum number of iterations = 9 has no effect with the algorithm 'gauss-seidel'"),
        ({"relaxation": 0.5, **NEWTON}, "relaxation = 0.5 has no effect with the algorithm 'newton'"),
        ({"jacobian": "directional"}, "jacobian = directional has no effect with the algorithm 'gauss-seidel'"),
        ({"algorithm": "gauss-sidel"}, "there is no algorithm 'gauss-sidel'; did you mean 'gauss-seidel'?"),
    ],
)
def test_options_without_effect_are_refused(halves_exact: list[Path], options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        run(halves_exact, 0.01, **options)


def test_energy_correction_is_not_for_iterated(halves_exact: list[Path]) -> None:
    with pytest.raises(InputError, match="newton leaves nothing to correct"):
        run(halves_exact, 0.01, algorithm="newton", energy_correction=True)


def test_what_compare_names_is_what_cosim_takes(halves_exact: list[Path]) -> None:
    """An algorithm with its extrapolation in one word, and no other extrapolation beside it."""
    for choice in mbsfmu.comparison.CHOICES:
        taken = CouplingOptions(algorithm=choice)
        held = taken.extrapolation is Extrapolation.ZERO
        assert choice == (taken.algorithm if held else f"{taken.algorithm}-{taken.extrapolation}")
    apart = run(halves_exact, 0.01, algorithm="gauss-seidel", extrapolation="linear")
    joined = run(halves_exact, 0.01, algorithm="gauss-seidel-linear")
    for signal in apart.names:
        np.testing.assert_array_equal(apart[signal], joined[signal])
    assert CouplingOptions.of(CouplingOptions(), {"algorithm": "jacobi-linear"}).extrapolation is Extrapolation.LINEAR
    with pytest.raises(InputError, match="'gauss-seidel-linear' extrapolates linear; the extrapolation is 'zero'"):
        run(halves_exact, 0.01, algorithm="gauss-seidel-linear", extrapolation="zero")


def test_keywords_are_the_options() -> None:
    assert get_type_hints(CouplingKeywords).keys() == CouplingOptions.known().keys()


def test_an_object_says_the_same_as_its_keywords(halves_exact: list[Path]) -> None:
    options = CouplingOptions(algorithm="fixed-point", relaxation=0.5, order=["two", "one"])
    named = run(halves_exact, 0.01, algorithm="fixed-point", relaxation=0.5, order=["two", "one"])
    made = run(halves_exact, 0.01, options=options)
    assert made.algorithm == "fixed-point"
    assert np.array_equal(made["one.position"], named["one.position"])
    assert run(halves_exact, 0.01, options=options, relaxation="aitken").iterations != made.iterations


def test_unknown_options_are_told(halves_exact: list[Path]) -> None:
    for name, sentence in (
        ("algorithmus", "there is no option 'algorithmus' of a co-simulation; did you mean 'algorithm'"),
        ("input", "did you mean 'inputs'"),
    ):
        with pytest.raises(InputError, match=sentence):
            run(halves_exact, 0.01, **{name: 1})
