"""The points of a study: values as they are given, their combinations, their keys."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbsfmu.base.errors import InputError
from mbsfmu.studies.points import make_points, parse_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", [3.0]),
        ("1,2.5,-4e-3", [1.0, 2.5, -4e-3]),
        ("1:2:5", [1.0, 1.25, 1.5, 1.75, 2.0]),
        ("2:-2:3", [2.0, 0.0, -2.0]),
        ("7:7:1", [7.0]),
        ("1e-3:1:4:log", [1e-3, 1e-2, 1e-1, 1.0]),
    ],
)
def test_values_read_as_they_are_written(text: str, values: list[float]) -> None:
    assert parse_values(text) == pytest.approx(values, rel=1e-14)


@pytest.mark.parametrize("text", ["", "a", "1,,2", "1:2", "1:2:0", "1:2:2.5", "0:1:3:log", "1:2:3:lin", "1:2:3:log:4"])
def test_what_is_no_list_of_values_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no list of values; give"):
        parse_values(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1,x", "'x' is no number"),
        ("1 bar,2 Pa", "the units of 1 bar, 2 Pa differ"),
        ("1 bar:2:3", "the units of 1 bar, 2 differ"),
        ("1:2:0", "'0' is no number of values, an integer of at least 1"),
        ("1:2:2.5", "'2.5' is no number of values, an integer of at least 1"),
        ("0:1:3:log", "the bounds of logarithms must be positive"),
        ("1:nan:3", "they must be finite"),
        ("1,1e400", "'1e400' is refused: its magnitude is beyond the largest number"),
    ],
)
def test_refused_values_are_told_why(text: str, why: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"'{text}' is no list of values; give values such as")) as error:
        parse_values(text)
    assert f": {why}" in str(error.value)


def test_all_combinations_in_order_settings_fastest() -> None:
    points = make_points({"a": [1, 2], "b": [3]}, {"step": [0.1, 0.2], "algorithm": ["x"]}, {})
    assert [(*point.values.values(), *point.settings.values()) for point in points] == [
        (1.0, 3.0, 0.1, "x"),
        (1.0, 3.0, 0.2, "x"),
        (2.0, 3.0, 0.1, "x"),
        (2.0, 3.0, 0.2, "x"),
    ]


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_key_is_that_of_the_content(first: float, second: float) -> None:
    keys = [make_points({"a": [value]}, {}, {"model": 1})[0].key for value in (first, second, first)]
    assert keys[0] == keys[2]
    assert (keys[0] == keys[1]) == (repr(first) == repr(second))
    assert make_points({"a": [first]}, {}, {"model": 2})[0].key != keys[0]
    assert make_points({"a": [first]}, {"step": [1]}, {"model": 1})[0].key != keys[0]


@pytest.mark.parametrize(
    ("vary", "sentence"),
    [
        ({"a": []}, "the parameter a has no values"),
        ({"a": [1.0, 2.0, 1.0]}, "a has a value twice: 1.0, 2.0, 1.0"),
        ({"a": [math.inf]}, "a is inf; it must be finite"),
        ({"a": [math.nan]}, "a is nan; it must be finite"),
    ],
)
def test_lists_that_make_no_study_are_refused(vary: dict[str, list[float]], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make_points(vary, {}, {})
