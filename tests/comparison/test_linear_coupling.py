"""The error of coupled linear FMUs in closed form, and the settings that are searched by it, without runs."""

from __future__ import annotations

import numpy as np
import pytest
from comparison.linear_pairs import linear
from cosim.coupled_pairs import force_and_velocity

from mbsfmu.comparison.cost import rounded_down
from mbsfmu.comparison.recommendation import LinearCoupling, LinearFmu, _Facts, _horizon, _search
from mbsfmu.cosim.coupling.algorithms import parted

STEP, STOP = 0.1, 1.0
ONLY = np.array([0.0, 1.0])
"""The source is exact, and does not count."""


def fmu(name: str, a: object, b: object = (), c: object = None, rates: object = None) -> LinearFmu:
    """An FMU of states alone, all of them outputs unless `c` says which."""
    states = np.atleast_2d(np.array(a, dtype=float))
    inputs = np.array(b, dtype=float).reshape(len(states), -1)
    outputs = np.eye(len(states)) if c is None else np.array(c, dtype=float)
    pushed = np.zeros(len(states)) if rates is None else np.array(rates, dtype=float)
    return LinearFmu(name, states, inputs, outputs, np.zeros((len(outputs), inputs.shape[1])), pushed)


def integrated(degree: int, *, repeats: bool = True) -> LinearCoupling:
    """ẋ = y for y = t or t²/2."""
    source = {
        1: fmu("source", 0.0, rates=[1.0]),
        2: fmu("source", [[0.0, 1.0], [0.0, 0.0]], c=[[1.0, 0.0]], rates=[0.0, 1.0]),
    }[degree]
    return LinearCoupling((source, fmu("sink", 0.0, [1.0])), np.array([[1.0, 0.0]]), repeats)


@pytest.mark.parametrize("algorithm", ["jacobi-linear", "jacobi-quadratic"])
@pytest.mark.parametrize(("repeats", "error"), [(True, 0.0), (False, 0.5 * STEP**2)])
def test_first_steps_are_repeated_where_states_are_saved(algorithm: str, repeats: bool, error: float) -> None:
    """y = t is straight from the second step on, and held at zero in the first one unless that is made again."""
    found = integrated(1, repeats=repeats).error(algorithm, STEP, STOP, (0, 1), ONLY)
    assert found == pytest.approx(error, abs=1e-14)


def test_errors_add_up_to_the_end() -> None:
    """Of y = t²/2 the first step takes h³/12 too much, each of the others 5 h³/12 too little."""
    found = integrated(2).error("jacobi-linear", STEP, STOP, (0, 1), ONLY)
    assert found == pytest.approx((9 * 5 - 1) * STEP**3 / 12, rel=1e-9)
    quadratic = integrated(2).error("jacobi-quadratic", STEP, STOP, (0, 1), ONLY)
    assert quadratic == pytest.approx(STEP**3 / 12, rel=1e-9)  # the parabola is exact from the second step on
    at_once = integrated(2, repeats=False).error("jacobi-quadratic", STEP, STOP, (0, 1), ONLY)
    assert at_once == pytest.approx((2 + 5) * STEP**3 / 12, rel=1e-9)  # a step that holds, one that runs straight


def test_errors_that_overflow_are_infinite() -> None:
    """Two integrators of gain −1e4 each, a step of which is far beyond what is stable."""
    pair = fmu("one", 0.0, [-1e4], rates=[1.0]), fmu("two", 0.0, [1e4])
    coupling = LinearCoupling(pair, np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert coupling.error("jacobi", STEP, 100.0, (0, 1), np.ones(2)) == np.inf


def test_ranges_are_those_of_the_whole_run() -> None:
    np.testing.assert_allclose(integrated(1).ranges(2.0), [2.0, 2.0], rtol=1e-12)


@pytest.mark.parametrize(("rate", "horizon"), [(2.0, np.log(1e3) / 2.0), (-2.0, 10.0), (1e-3, 10.0)])
def test_growing_motion_is_followed_to_a_thousand_times_its_start(rate: float, horizon: float) -> None:
    assert _horizon(LinearCoupling((fmu("one", rate),), np.zeros((0, 1))), 10.0) == pytest.approx(horizon)


def test_settings_are_the_largest_steps_that_stay_accurate() -> None:
    """Found here by all steps at once: the first one from which eight in a row keep 0.3 of the accuracy."""
    coupling, accuracy, span = linear(force_and_velocity(damping=4.0)), 0.1, 1.0
    advice = _search(coupling, _Facts(span, np.ones(len(coupling.gains.T)), (), (), True), accuracy)
    scales = coupling.ranges(span)
    steps = span / 20 / 2.0 ** (np.arange(32) / 4)
    expected: dict[str, tuple[float, float]] = {}
    for name in ("gauss-seidel", "jacobi", "newton"):
        for algorithm in (name, f"{name}-linear", f"{name}-quadratic"):
            for order in ((0, 1), (1, 0)) if name == "gauss-seidel" else ((0, 1),):
                kept = [coupling.error(algorithm, step, span, order, scales) <= 0.3 * accuracy for step in steps]
                first = next(place for place in range(32) if all(kept[place : place + 8]))
                step = rounded_down(steps[first])
                cost = (3.0 if name == "newton" else 1.0) / step
                expected[algorithm] = min((cost, step), expected.get(algorithm, (np.inf, 0.0)))
    assert {each.algorithm: (each.cost, each.step) for each in advice.alternatives} == expected
    cheapest = min(cost for cost, _ in expected.values())
    close = [name for name, (cost, _) in expected.items() if cost <= 1.02 * cheapest]
    assert advice.best.algorithm == close[0]
    others = [each.cost for each in advice.alternatives[1:]]
    assert others == sorted(others)
    without = _search(coupling, _Facts(span, np.ones(len(scales)), ("one",), (), True), accuracy)
    assert {parted(each.algorithm)[0] for each in without.alternatives} == {"gauss-seidel", "jacobi"}


def test_fmus_step_in_the_order_of_what_they_give() -> None:
    """c drives a, which drives b: in that order every input runs to a known end."""
    chain = fmu("a", -1.0, [1.0]), fmu("b", -2.0, [1.0]), fmu("c", [[0.0, 1.0], [-9.0, 0.0]], c=[[1, 0]], rates=[1, 0])
    coupling = LinearCoupling(chain, np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
    advice = _search(coupling, _Facts(4.0, np.ones(3), (), (), True), 0.01)
    by_turns = [each for each in advice.alternatives if each.algorithm.startswith("gauss-seidel-")]
    assert by_turns
    assert {each.order for each in by_turns} == {("c", "a", "b")}
    assert advice.best.order == ("c", "a", "b")
    assert "--order c,a,b" in str(advice)
    assert all(each.order == () for each in advice.alternatives if not each.algorithm.startswith("gauss-seidel"))
