"""Numbers with units of their own."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbsfmu.base.errors import InputError
from mbsfmu.base.measured import number_in


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("2e7", "Pa", 2e7),
        ("-200 bar", "Pa", -2e7),
        ("310kg", "kg", 310.0),
        ("1e3kg", "kg", 1e3),
        (".5 t", "kg", 500.0),
        ("30 deg", "rad", math.pi / 6.0),
        ("90deg/s", "rad/s", math.pi / 2.0),
        ("60 rpm", "rad/s", 2.0 * math.pi),
        ("60 l/min", "m3/s", 1e-3),
        ("5 mm3", "m3", 5e-9),
        ("2 kN.s/m", "N.s/m", 2e3),
        ("100 N/mm", "N/m", 1e5),
        ("3 m3/(s.V)", "m3/(s.V)", 3.0),
        ("50 %", "1", 0.5),
        ("7 bar", "bar", 7.0),
    ],
)
def test_units_are_converted(text: str, unit: str, number: float) -> None:
    assert number_in(text, unit) == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize("text", ["1_000", "１２", "٣", "1_0 bar", "--1", "0x10", ""])
def test_numbers_of_other_notations_are_refused(text: str) -> None:
    """Python reads the first three; a table or another program does not."""
    with pytest.raises(InputError, match="is refused"):
        number_in(text, "Pa")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_stay_as_they_are(number: float) -> None:
    assert number_in(repr(number), "Pa") == number


@pytest.mark.parametrize(
    ("text", "unit", "said"),
    [
        ("5 m", "Pa", "must be a number in Pa, or in a unit like it"),
        ("50 Hz", "rad/s", "must be a number in rad/s"),
        ("5 blah", "Pa", "'blah' is no unit that is known; write it in Pa"),
        ("5 bar", "furlongs/ell", "nothing is converted to the unit furlongs/ell"),
        ("five bar", "Pa", "must be a number, in Pa, or with a unit"),
        ("1 2", "1", "must be a number"),
        ("10**10**10", "1", "must be a number"),
        ("__import__('os')", "1", "must be a number"),
        ("", "1", "must be a number"),
    ],
)
def test_others_are_refused(text: str, unit: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        number_in(text, unit)
    assert said in str(caught.value)
    assert f"'{text}' is refused" in str(caught.value)
