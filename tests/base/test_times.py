"""When two times are one, and work that cannot be done."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise, repeat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbsfmu.base.errors import InputError
from mbsfmu.base.times import check_grid, check_run, check_step, count_steps, counted, tolerance

starts = st.sampled_from([0.0, -3.0, 1.0, 86400.0, 1.7e9])
steps = st.floats(1e-4, 10.0)


@given(starts, steps, st.integers(1, 3000))
def test_counted_times_are_one_with_their_neighbours_plus_a_step(start: float, step: float, count: int) -> None:
    """What an importer counts as start + n h, and what an FMU has reached as t + h, must be taken as one."""
    before, now = start + (count - 1) * step, start + count * step
    assert abs(before + step - now) <= tolerance(step, before, now)


@given(steps, st.integers(1, 10_000))
def test_added_up_times_stay_one_with_counted_ones(step: float, count: int) -> None:
    added = list(accumulate(repeat(step, count)))[-1]
    assert abs(added - count * step) <= tolerance(step, added)
    assert count_steps(0.0, added, step) == count


@given(starts, steps, st.integers(1, 300))
def test_an_interval_of_a_step_is_one_step(start: float, step: float, count: int) -> None:
    begin = start + count * step
    assert count_steps(begin, begin + step, step) == 1.0
    assert count_steps(begin, begin + 3.0 * step, step) == 3.0
    assert count_steps(begin, begin + 1.5 * step, step) == 2.0


@given(starts, steps, st.floats(0.01, 300.0))
def test_grids_are_counted_from_start_to_stop(start: float, step: float, share: float) -> None:
    stop = start + share * step
    times = counted(start, stop, step)
    assert (times[0], times[-1]) == (start, stop)
    assert all(0.0 < later - earlier <= step + tolerance(step, stop) for earlier, later in pairwise(times))
    assert len(times) - 1 in (max(1, math.floor(share)), math.ceil(share))


def test_grids_keep_what_counting_gives() -> None:
    times = counted(0.0, 1.0, 1e-3)
    assert len(times) == 1001
    assert times[700] == 700 * 1e-3
    np.testing.assert_allclose(counted(0.0, 0.25, 0.1), [0.0, 0.1, 0.2, 0.25])


@pytest.mark.parametrize(
    ("time", "step", "sentence"),
    [
        (0.0, 0.0, "the step is 0 s; it must be positive"),
        (0.0, math.nan, "the step is nan s; it must be positive"),
        (1e15, 1e-3, "lost in the resolution of time at t = 1e+15 s; it must be at least 3.55 s there"),
        (0.0, 1e300, "the step of 1e+300 s is 1e+303 times the internal step of 0.001 s"),
    ],
)
def test_steps_that_cannot_be_made_are_refused(time: float, step: float, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        check_step(time, step, 1e-3)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("time", [0.0, 1e3, 1.7e9])
def test_steps_of_a_millisecond_can_be_made_at_any_date(time: float) -> None:
    check_step(time, 1e-3, 1e-3)


def test_work_that_no_machine_does_is_refused_before_it_begins() -> None:
    with pytest.raises(InputError) as caught:
        check_grid(0.0, 1.0, 1e-12, 50)
    for word in ("1e+12 steps", "50 columns", "4e+05 GB", "1e+09 steps"):
        assert word in str(caught.value)
    with pytest.raises(InputError, match=r"of 100000 columns takes 8e\+03 GB"):
        check_grid(0.0, 1.0, 1e-7, 100_000)  # not too many steps, but too much memory
    with pytest.raises(InputError, match=r"the run of 10 s is 1e\+13 times the internal step"):
        check_run(10.0, 0.1, 1e-12, 10)


def test_a_step_longer_than_the_run_is_refused() -> None:
    with pytest.raises(InputError, match="the step of 2 s is longer than the run from 0 s to 1 s"):
        check_run(1.0, 2.0, 1e-3, 10)
    check_run(1.0, 1.0 + 1e-12, 1e-3, 10)
