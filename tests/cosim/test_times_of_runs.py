"""Times of coupled runs: communication points and events, and work that cannot be done."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from communication import largest_change
from hypothesis import given
from hypothesis import strategies as st

import mbsfmu
from mbsfmu import InputError, StepSignal
from mbsfmu.base.times import tolerance
from mbsfmu.cosim.control.run_statistics import communication_points
from mbsfmu.cosim.coupling.coupling_data import DrivenInputs
from mbsfmu.modelling.variables import Causality

STEP = 1e-3


@given(
    st.sampled_from([0.0, -2.0, 1.7e9]),
    st.floats(0.5, 30.0),
    st.lists(st.tuples(st.integers(-1, 31), st.sampled_from([0.0, 1e-9, -1e-9, 5e-7, -5e-7, 1e-4, 0.3])), max_size=6),
)
def test_points_run_from_start_to_stop_whatever_the_events(
    start: float, length: float, events: list[tuple[int, float]]
) -> None:
    stop = start + length
    times = sorted({start + number + off for number, off in events})
    points = communication_points(start, stop, 1.0, times)
    assert (points[0], points[-1]) == (start, stop)
    assert np.all(np.diff(points) > 0.0)
    assert np.all(np.diff(points) <= 1.0 + 2.0 * tolerance(1.0, start, stop))
    for event in times:
        if start < event < stop:
            assert np.min(np.abs(np.array(points) - event)) <= tolerance(1.0, start, stop)


def test_an_event_never_moves_start_or_stop() -> None:
    points = communication_points(0.0, 1.0, 0.5, [1e-8, 0.5 + 1e-8, 1.0 - 1e-8])
    assert points == [0.0, 0.5 + 1e-8, 1.0]


def coupled(package: Path, jump: float, **options: object) -> np.ndarray:
    signal = StepSignal(times=(jump, jump + 0.05), values=(10.0, 0.0))
    result = mbsfmu.cosimulate(package, step=STEP, stop=0.15, inputs={"circuit.valve.command": signal}, **options)
    rows = np.isin(np.round(result.time / STEP, 6), np.arange(151))
    names = ("mechanism.boom.angle", "mechanism.cylinder.length", "circuit.cylinder.force")
    return np.column_stack([result[name][rows] for name in names])


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "gauss-seidel"},
        {"algorithm": "gauss-seidel", "extrapolation": "linear", "rates": {"circuit": 3}},
        {"algorithm": "newton", "extrapolation": "quadratic"},
    ],
    ids=["zero", "linear", "iterated"],
)
def test_round_off_of_a_signals_times_changes_nothing(four_bar_package: Path, options: dict[str, object]) -> None:
    reference = coupled(four_bar_package, 0.05, **options)
    for shift in (1e-12, -1e-12, 7e-18):
        assert largest_change((reference, coupled(four_bar_package, 0.05 + shift, **options))) < 1e-9


def test_signals_that_jump_at_one_time_but_for_round_off_have_one_event() -> None:
    """0.1 + 0.2 is not 0.3 in binary numbers; what is that near to the start or to the end is no event inside."""
    times = {"a": (0.3, 0.7), "b": (1e-17, 0.1 + 0.2, 0.5, 1.0 - 1e-16)}
    instance: Any = SimpleNamespace(variables={"u": SimpleNamespace(causality=Causality.INPUT)}, kinds={"u": "Real"})
    signals = {
        (name, "u"): StepSignal(times=each, values=tuple(range(1, 1 + len(each)))) for name, each in times.items()
    }
    driven = DrivenInputs(signals, dict.fromkeys(times, instance), (), 0.01)
    assert driven.events(0.0, 1.0) == [0.3, 0.5, 0.7]


def test_a_jump_at_the_start_is_seen_from_the_first_step_on(four_bar_package: Path) -> None:
    reference = coupled(four_bar_package, 0.0, algorithm="gauss-seidel")
    assert np.ptp(reference[:50, 1]) > 1e-5
    for shift in (1e-12, -1e-12):
        assert largest_change((reference, coupled(four_bar_package, shift, algorithm="gauss-seidel"))) < 1e-9


@pytest.mark.parametrize("shift", [0.0, 1e-13, -1e-13])
def test_steps_that_are_controlled_end_at_events(four_bar_package: Path, shift: float) -> None:
    signal = StepSignal(times=(shift, 0.05 + shift, 0.1 + shift), values=(1.0, 10.0, 0.0))
    result = mbsfmu.cosimulate(
        four_bar_package, step=STEP, stop=0.1, inputs={"circuit.valve.command": signal},
        control="error", extrapolation="linear", tolerance=1e-2,
    )  # fmt: skip
    assert result.time[-1] == 0.1
    assert np.min(np.abs(result.time - 0.05)) < 1e-9
    assert np.min(np.diff(result.time)) > 1e-7  # none is the round-off of an event


@pytest.mark.parametrize(
    ("step", "stop", "sentence"),
    [
        (1e-12, 1.0, "has 1e+12 steps"),
        (2.0, 1.0, "the step of 2 s is longer than the run from 0 s to 1 s"),
        (1e-20, 1.0, "the step of 1e-20 s is lost in the resolution of time at t = 1 s"),
    ],
)
def test_runs_that_cannot_be_made_are_refused(four_bar_package: Path, step: float, stop: float, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        mbsfmu.cosimulate(four_bar_package, step=step, stop=stop)
    assert sentence in str(caught.value)


def test_a_suggested_step_is_no_longer_than_the_run(four_bar_package: Path) -> None:
    assert mbsfmu.cosimulate(four_bar_package, stop=1e-4).time.tolist() == [0.0, 1e-4]


def test_a_run_may_end_where_a_unit_tells_an_event_but_for_round_off(four_bar_package: Path) -> None:
    """The valve's own jump at 1 s, and a stop time that an importer has added up."""
    stop = 1.0 + 1e-15
    result = mbsfmu.cosimulate(
        four_bar_package, step=0.01, stop=stop, largest_step=0.1, control="error", extrapolation="linear"
    )
    assert result.time[-1] == stop
    assert np.min(np.diff(result.time)) > 1e-6
