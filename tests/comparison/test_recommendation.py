"""Recommended settings: the map of coupled linear FMUs against one by hand and against runs; the step that is named."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from comparison.linear_pairs import linear
from cosim.coupled_pairs import Pair, force_and_velocity, masses
from cosim.linear_units import CONNECTIONS, LinearSystem, change_description, degrade, export_linear, halves
from cosim.oscillator_theory import spectral_radius

import mbsfmu
from mbsfmu.base.errors import InputError
from mbsfmu.comparison.recommendation import LinearCoupling, LinearFmu, _linear
from mbsfmu.comparison.run import CoupledFmus
from mbsfmu.compiling.compiler import host_platform
from mbsfmu.cosim.coupling.algorithms import parted
from mbsfmu.native.native_package import export_native
from mbsfmu.simulation.simulation import make_simulation

STOP = 2.0
ALGORITHMS = tuple(
    f"{name}{extrapolation}"
    for name in ("jacobi", "gauss-seidel", "newton")
    for extrapolation in ("", "-linear", "-quadratic")
)


def exported(systems: Sequence[LinearSystem], folder: Path) -> list[Path]:
    paths = []
    for system in systems:
        simulation = make_simulation(system, name=system.name, signals={}, solver="rk4", step=1e-3)
        path = folder / f"{system.name}.fmu"
        paths.append(export_native(simulation, path, platforms=[host_platform()], kind=("cs", "me")))
    return paths


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel", "jacobi-linear", "gauss-seidel-linear"])
def test_the_map_has_the_eigenvalues_of_theory(algorithm: str) -> None:
    coupling = linear(force_and_velocity())
    for step in (0.01, 0.05, 0.2):
        found = np.sort(np.abs(np.linalg.eigvals(coupling.step_map(algorithm, step, (0, 1)))))[::-1]
        expected = spectral_radius(*parted(algorithm), step)
        # The affine part and the second position, on which nothing acts back, have the eigenvalue 1.
        others = [each for each in found if abs(each - 1.0) > 1e-9]
        assert max(others) == pytest.approx(expected, rel=1e-9)


def test_the_exact_motion_is_that_of_the_matrix_exponential() -> None:
    pair = masses()
    found, times = linear(pair).exact(0.3, 0.1, 18), np.linspace(0.3, STOP, 18)
    for column, (name, values) in zip(found.T, pair.exact(times).items(), strict=True):
        np.testing.assert_allclose(column, values - pair.exact(np.zeros(1))[name], atol=1e-12)


@pytest.fixture(scope="module")
def damped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Pair, list[Path]]:
    """The oscillator with a damper across, so that the force depends directly on the velocity."""
    pair = force_and_velocity(damping=4.0)
    return pair, exported(pair.systems, tmp_path_factory.mktemp("damped"))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_predicted_errors_are_those_of_runs(damped: tuple[Pair, list[Path]], algorithm: str) -> None:
    pair, paths = damped
    name, extrapolation = parted(algorithm)
    step = 0.02
    result = mbsfmu.cosimulate(
        paths, connections=CONNECTIONS, algorithm=name, extrapolation=extrapolation, step=step, stop=STOP
    )
    coupling = linear(pair)
    scales = coupling.ranges(STOP)
    exact = pair.exact(result.time)
    truth = max(
        float(np.max(np.abs(result[each] - values))) / scale
        for (each, values), scale in zip(exact.items(), scales, strict=True)
    )
    predicted = coupling.error(algorithm, step, STOP, (0, 1), scales)
    assert predicted == pytest.approx(truth, rel=0.05)


def test_an_fmu_that_holds_its_inputs_gets_their_mean() -> None:
    """ẋ = u from a source y = t: the mean of a straight input is exact, a held one is late by half a step."""
    source = LinearFmu("source", np.zeros((1, 1)), np.zeros((1, 0)), np.eye(1), np.zeros((1, 0)), np.ones(1))
    sink = [np.zeros((1, 1)), np.eye(1), np.eye(1), np.zeros((1, 1))]
    gains = np.array([[1.0, 0.0]])
    for interpolates in (True, False):
        coupling = LinearCoupling((source, LinearFmu("sink", *sink, np.zeros(1), interpolates)), gains)
        assert coupling.error("newton-linear", 0.1, 1.0, (0, 1), np.ones(2)) < 1e-12
        assert coupling.error("jacobi", 0.1, 1.0, (0, 1), np.ones(2)) == pytest.approx(0.05, rel=1e-9)


def test_the_recommended_setting_is_accurate_in_a_run(damped: tuple[Pair, list[Path]]) -> None:
    pair, paths = damped
    advice = mbsfmu.recommend(paths, connections=CONNECTIONS, accuracy=0.01, stop=STOP)
    name, extrapolation = parted(advice.best.algorithm)
    options = {"order": advice.best.order} if advice.best.order else {}
    result = mbsfmu.cosimulate(
        paths, connections=CONNECTIONS, algorithm=name, extrapolation=extrapolation, step=advice.best.step, stop=STOP,
        **options,
    )  # fmt: skip
    for each, values in pair.exact(result.time).items():
        assert np.max(np.abs(result[each] - values)) <= 0.01 * np.ptp(values)
    assert [each.cost for each in advice.alternatives[1:]] == sorted(each.cost for each in advice.alternatives[1:])
    coupled = np.linalg.eigvals(pair._matrices()[0])
    assert advice.fastest == pytest.approx(np.max(np.abs(coupled)), rel=1e-6)
    assert len(str(advice).splitlines()) <= 8


def test_fmus_are_linearized_by_what_is_connected(tmp_path: Path) -> None:
    """Inputs in another order than the FMU's, and one by a factor; nothing moves until each is pushed by 1."""
    matrices = [[[-1.0]], [[1.0, 2.0]], [[1.0], [3.0]], [[0.0, 0.5], [0.0, 0.0]]]
    names = [dict.fromkeys((f"{letter}1", f"{letter}2"), "1") for letter in "uy"]
    (path,) = exported([LinearSystem("mixer", [np.array(each) for each in matrices], [0.0], *names)], tmp_path)
    holding = Path(shutil.copy(path, tmp_path / "holding.fmu"))
    degrade(holding, {"canInterpolateInputs": False})
    back = mbsfmu.Connection(("two", "y2"), ("one", "u2"), factor=-2.0)
    coupling, facts = _linear(
        CoupledFmus([f"one={path}", f"two={holding}"], ["one.y1=two.u2", "one.y2=two.u1", back]), 1.0
    )
    one, two = coupling.fmus
    np.testing.assert_allclose(coupling.gains, [[0, 0, 0, -2], [1, 0, 0, 0], [0, 1, 0, 0]])
    for fmu, inputs, pushed in ((one, [1], 2.0), (two, [1, 0], 3.0)):
        for found, wanted in zip((fmu.a, fmu.b.T, fmu.c, fmu.d.T), _columns(matrices, inputs), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)
        np.testing.assert_allclose(fmu.rates, [pushed], rtol=1e-9)
    assert (one.interpolates, two.interpolates) == (True, False)
    assert (facts.span, facts.excited, coupling.repeats) == (1.0, False, True)


def test_discrete_outputs_are_left_out_and_named(tmp_path: Path) -> None:
    """A connection from an output that the FMU calls discrete makes no part of the linear system."""
    matrices = [[[-1.0]], [[1.0, 2.0]], [[1.0], [3.0]], [[0.0, 0.5], [0.0, 0.0]]]
    names = [dict.fromkeys((f"{letter}1", f"{letter}2"), "1") for letter in "uy"]
    (path,) = exported([LinearSystem("mixer", [np.array(each) for each in matrices], [1.0], *names)], tmp_path)
    change_description(path, r'(name="y2"[^>]*variability=)"continuous"', r'\1"discrete"')
    fmus = CoupledFmus([f"one={path}", f"two={path}"], ["one.y1=two.u1", "two.y1=one.u1", "one.y2=two.u2"])
    coupling, facts = _linear(fmus, 1.0)
    assert facts.held == ("one.y2",)
    np.testing.assert_allclose(coupling.gains, [[0, 1], [1, 0]])
    advice = mbsfmu.recommend([f"one={path}", f"two={path}"], connections=fmus.connections, stop=1.0)
    assert "Discrete outputs (one.y2) are held between events and left out." in advice.reasons
    assert not any("Discrete" in each for each in mbsfmu.recommend(
        [f"one={path}", f"two={path}"], connections=fmus.connections[:2], stop=1.0
    ).reasons)  # fmt: skip


def _columns(matrices: list[list[list[float]]], inputs: list[int]) -> list[np.ndarray]:
    a, b, c, d = map(np.array, matrices)
    return [a, b.T[inputs], c, d.T[inputs]]


def test_fmus_that_cannot_be_linearized_are_refused(tmp_path: Path) -> None:
    paths = [export_linear(system, tmp_path, "rk4", 1e-3) for system in halves()]
    with pytest.raises(
        InputError, match=r"one is an FMU for co-simulation that lists no states: .* --layout separate --kind cs,me$"
    ):
        mbsfmu.recommend(paths, connections=CONNECTIONS, stop=STOP)
    with pytest.raises(InputError, match="nothing connects the FMUs"):
        mbsfmu.recommend(paths, stop=STOP)
    with pytest.raises(InputError, match="the accuracy is -1; it must be positive"):
        mbsfmu.recommend(paths, connections=CONNECTIONS, stop=STOP, accuracy=-1.0)


def test_fmus_without_saved_states_are_not_told_to_iterate(damped: tuple[Pair, list[Path]], tmp_path: Path) -> None:
    pair, _ = damped
    paths = exported(pair.systems, tmp_path)
    degrade(paths[0], {"canGetAndSetFMUstate": False})
    advice = mbsfmu.recommend(paths, connections=CONNECTIONS, stop=STOP)
    assert not any(each.algorithm.startswith("newton") for each in advice.alternatives)
    assert any("one cannot save the state" in reason for reason in advice.reasons)
