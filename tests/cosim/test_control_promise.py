"""What the tolerance of error control promises, against closed forms: for FMUs that hide states, small, growing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from cosim.coupled_pairs import Pair, force_and_velocity, masses, pendulum

from mbsfmu import CosimulationResult, cosimulate
from mbsfmu.cosim.control.error_variables import Sample
from mbsfmu.cosim.control.richardson_control import Defects, Tried
from mbsfmu.cosim.coupling.graph import SystemGraph
from mbsfmu.cosim.runs.load_fmus import instantiate

LEAST, MOST = 0.05, 1.5
"""Bounds of the error as a share of the tolerance."""


def run(pair: Pair, units: list[Path], tolerance: float, **options: Any) -> CosimulationResult:
    call = {"step": 0.01, "stop": 2.0, "extrapolation": "linear", "smallest_step": 1e-7, **options}
    return cosimulate(units, connections=pair.connections, control="error", tolerance=tolerance, **call)


@pytest.mark.parametrize(
    ("algorithm", "named", "tolerance"),
    [
        ("jacobi", True, 1e-2),
        ("jacobi", False, 1e-5),
        ("gauss-seidel", True, 1e-5),
        ("gauss-seidel", False, 1e-2),
        ("newton", True, 1e-5),
        ("newton", False, 1e-2),
    ],
)
def test_units_that_give_positions_only(tmp_path: Path, algorithm: str, named: bool, tolerance: float) -> None:
    """Outputs alone see a power of the step less: 3 times the tolerance at 1e-2, 130 times at 1e-7."""
    pair = masses()
    result = run(pair, pair.export(tmp_path, named=named), tolerance, algorithm=algorithm)
    assert LEAST < pair.error(result) / tolerance < MOST
    assert result.notes == []


def test_gauss_seidel_at_the_smallest_tolerance(tmp_path: Path) -> None:
    pair = masses()
    result = run(pair, pair.export(tmp_path), 1e-7, stop=0.5)
    assert LEAST < pair.error(result) / 1e-7 < MOST


def test_the_defect_alone_holds_where_states_cannot_be_saved(tmp_path: Path) -> None:
    pair = masses()
    units = pair.export(tmp_path, saves=False)
    for tolerance in (1e-2, 1e-5):  # a first step that is as long for both would be too much for the second one
        result = run(pair, units, tolerance, algorithm="jacobi")
        assert LEAST < pair.error(result) / tolerance < MOST
        assert any("cannot save the state" in note for note in result.notes)


@pytest.mark.parametrize(("algorithm", "amplitude"), [("gauss-seidel", 1e-2), ("gauss-seidel", 1e-6), ("newton", 1e-4)])
def test_small_signals_are_held_to_their_magnitude(tmp_path: Path, algorithm: str, amplitude: float) -> None:
    pair = force_and_velocity(amplitude)
    result = run(pair, pair.export(tmp_path), 1e-4, algorithm=algorithm)
    assert LEAST < pair.error(result) / 1e-4 < MOST
    assert not any("absolute tolerance" in note for note in result.notes)


@pytest.mark.parametrize("given", [True, False])
def test_absolute_part_that_decides_is_told(tmp_path: Path, given: bool) -> None:
    """A nominal value of one that the FMU declares, or an absolute tolerance of the user's, lets 1e-4 be 2 % off."""
    pair = force_and_velocity(1e-4)
    options = {"absolute_tolerance": 1e-4} if given else {}
    result = run(pair, pair.export(tmp_path, declared=not given), 1e-4, **options)
    assert pair.error(result) > 10.0 * 1e-4
    assert any(note.startswith("the absolute tolerance decided for ") for note in result.notes)


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel", "newton"])
def test_growing_systems(tmp_path: Path, algorithm: str) -> None:
    """Where the motion grows with its errors, the tolerance holds; where errors alone grow, a sentence says how far."""
    pair = pendulum()
    result = run(pair, pair.export(tmp_path), 1e-3, algorithm=algorithm)
    assert LEAST < pair.error(result) / 1e-3 < MOST
    (tmp_path / "still").mkdir()
    still = pair.without_growth()
    units = still.export(tmp_path / "still")
    result = run(still, units, 1e-3, algorithm=algorithm, stop=3.0)
    share = still.error(result, dropped=1) / 1e-3
    assert share > MOST
    (note,) = result.notes
    told = float(note.partition("is estimated at ")[2].partition(" ")[0])
    assert told == pytest.approx(share, rel=0.2)


def test_states_that_a_model_structure_names(tmp_path: Path) -> None:
    units = dict(zip(("one", "two"), masses().export(tmp_path, named=True), strict=True))
    with instantiate(SystemGraph(units), isolated=["two"]) as instances:
        assert {name: instance.states for name, instance in instances.items()} == dict.fromkeys(units, ("x0", "x1"))


def test_defect_of_an_input() -> None:
    """Of y = t³, converted to 2 y + 1, the mean is 1/4, and 0.2 was given; of a signal 0.6 t² it is 0.2, and 0 was."""
    member = SimpleNamespace(
        instance=SimpleNamespace(name="a"), sources=np.array([0, 1]), factors=np.array([2.0, 1.0]),
        offsets=np.array([1.0, 0.0]),
    )  # fmt: skip
    exchange = SimpleNamespace(
        members=[member], columns={"y": 0, "s": 1}, names=["y"], held=[], entry_sources=member.sources
    )

    def defects(shows: bool, seen: set[str]) -> Defects:
        return Defects(cast("Any", SimpleNamespace(exchange=exchange, shows_inputs=np.array([shows]))), seen)

    points = np.array([0.0]), np.array([0.125]), np.array([1.0])
    sample, of_signals = Sample(0.6 * np.linspace(0.0, 1.0, 5)[:, np.newaxis] ** 2), np.array([0.8])
    each = defects(False, set())
    inputs = np.array([1.1, 0.0]), np.array([1.7, 0.0])
    assert each.largest(points, sample, inputs, np.array([0.1]), of_signals) == pytest.approx(0.05 / 0.1)
    assert each.largest(points, sample, inputs, np.array([9.0]), of_signals) == pytest.approx(0.2 / 0.8)
    shown = defects(True, set()).largest(points, sample, inputs, np.array([0.1]), of_signals)
    assert shown == pytest.approx(0.2 / 0.8), "the signal alone"
    assert defects(False, {"a"}).largest(points, sample, inputs, np.array([0.1]), of_signals) == 0.0


def test_deviation_of_signals_from_the_inputs_of_a_step() -> None:
    """A jump counts with its height, of which it is half off the chord; a parabola t² is off by 1/16 in either half.

    Deviations of either sign count; of a straight line held inputs alone miss what it rises.
    """
    time = np.linspace(0.0, 1.0, 5)
    late, early = np.maximum(time - 0.5, 0.0) ** 2, np.minimum(time - 0.5, 0.0) ** 2
    jumps = (time > 0.4) * 3.0, (time > 0.6) * -2.0
    sample = Sample(np.column_stack([*jumps, 7.0 - 3.0 * time, time**2, 5.0 + late, 5.0 - late, 5.0 + early]))
    np.testing.assert_allclose(sample.defect(held=False), [3.0, 2.0, 0.0, *[2.0 / 16.0] * 4], atol=1e-15)
    np.testing.assert_allclose(sample.defect(held=True), [3.0, 2.0, 1.5, 0.75, 0.25, 0.25, 0.25])


def test_what_does_not_fall_with_the_step_is_not_of_its_length() -> None:
    """Errors of steps fall with the length at least, as shares of what a step may do wrong."""
    tried = Tried(1.0, 0.1, 8.0)
    assert tried.stays(Tried(1.0, 0.05, 7.0))
    for other in (Tried(1.0, 0.05, 4.0), Tried(1.0, 0.05, 2.0), Tried(2.0, 0.05, 7.0), Tried(1.0, 0.2, 20.0)):
        assert not tried.stays(other)


def test_run_in_whole_steps_that_goes_unstable_begins_anew(tmp_path: Path) -> None:
    """A hard damper: halved steps are stable, whole ones are not, and would be 10^12 times the tolerance away."""
    pair = force_and_velocity(damping=60.0)
    result = run(pair, pair.export(tmp_path), 1e-1, algorithm="jacobi", smallest_step=1e-6)
    told = [note.partition("is estimated at ")[2].partition(" ")[0] for note in result.notes if "estimated at" in note]
    assert all(float(each) < 10.0 for each in told)
    assert told or pair.error(result) / 1e-1 < MOST


def test_feed_through_is_no_jump(tmp_path: Path) -> None:
    """An output that shows what its input was off by begins the next step with that, however short it is."""
    pair = force_and_velocity(damping=4.0)
    for algorithm in ("jacobi", "gauss-seidel"):
        units = pair.export(tmp_path)
        for tolerance in (1e-2, 1e-4):
            result = run(pair, units, tolerance, algorithm=algorithm)
            assert LEAST < pair.error(result) / tolerance < MOST
            assert result.smallest_step > 1e-5
            assert result.notes == []
