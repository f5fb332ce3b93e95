"""What a number with a unit means, by hand: one table of the unit of a variable, what is written, and the number."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbsfmu.analysis.gradient import Integral
from mbsfmu.base.errors import InputError
from mbsfmu.modelling.measurement_units import UnitOfMeasurement, conversion, number_in, with_common_unit

TURN = 2.0 * math.pi


def defined(name: str, relative: bool | None = False, **attributes: float) -> UnitOfMeasurement:
    """Return a unit as a model description defines it."""
    return replace(UnitOfMeasurement.of_attributes(name, attributes), relative=relative)


KELVIN, DIFFERENCE = defined("K", K=1), defined("K", relative=True, K=1)
CELSIUS, CELSIUS_DIFFERENCE = defined("degC", K=1, offset=273.15), defined("degC", relative=True, K=1, offset=273.15)
NONE = UnitOfMeasurement("")


@pytest.mark.parametrize(
    ("unit", "text", "number"),
    [
        ("Pa", "2e7", 2e7),
        ("Pa", "-200 bar", -2e7),
        ("Pa", "30 N/mm2", 3e7),
        ("Pa", "2 bar(a)", 2e5),
        ("Pa", "1 psi", 6894.757293168361),
        ("Pa", "1 at", 98066.5),
        ("Pa", "1 kp/cm2", 98066.5),
        ("Pa", "760 torr", 101325.0),
        ("Pa", "1 inHg", 25.4 * 133.322387415),
        ("Pa", "10 mH2O", 98066.5),
        ("Pa", "1 ksi", 6894757.293168361),
        ("N", "1 kip", 4448.2216152605),
        ("N.m", "1 lbf.ft", 1.3558179483314004),
        ("N.m", "1 ft-lbf", 1.3558179483314004),
        ("N.m", "1 daNm", 10.0),
        ("kg", "1 slug", 14.593902937206364),
        ("kg.m2", "1 kgcm2", 1e-4),
        ("m", "1 thou", 2.54e-5),
        ("rad", "60 arcmin", math.pi / 180.0),
        ("m3", "1 gal_us", 3.785411784e-3),
        ("m3", "1 gal_uk", 4.54609e-3),
        ("m3/s", "60 gal_us/min", 3.785411784e-3),
        ("bar", "7 bar", 7.0),
        ("bar", "700 kPa", 7.0),
        ("kg", "310kg", 310.0),
        ("kg", "1e3kg", 1e3),
        ("kg", ".5 t", 500.0),
        ("rad", "30 deg", math.pi / 6.0),
        ("rad", "-25°", -math.radians(25.0)),
        ("rad", "0.5 rev", math.pi),
        ("rad/s", "90deg/s", math.pi / 2.0),
        *(("rad/s", f"1500 {each}", 25.0 * TURN) for each in (
            "rpm", "1/min", "min-1", "min^-1", "min⁻¹", "/min", "U/min", "rev/min", "r/min", "tr/min", "RPM")),
        ("rad/s", "1500/min", 25.0 * TURN),
        ("rad/s", "25 rev/s", 25.0 * TURN),
        ("rad/s", "25 Hz", 25.0 * TURN),
        ("Hz", "60 rpm", 1.0),
        ("Hz", "60 1/min", 1.0),
        ("Hz", "6.283185307179586 rad/s", 1.0),
        ("Hz", "1.5 kHz", 1500.0),
        ("1/s", "60 1/min", 1.0),
        ("rpm", "25 Hz", 1500.0),
        ("1/min", "25 rev/s", 1500.0),
        ("1/min", "157.07963267948966 rad/s", 1500.0),
        *(("m3/rad", f"10 {each}", 1e-5 / TURN) for each in (
            "cm3/rev", "cc/rev", "cm³/U", "ccm/U", "ml/rev", "cm^3/rev", "cm**3/rev", "cm3/r")),
        ("m3/rad", "0.01 L/rev", 1e-5 / TURN),
        ("m3/rad", "1 in3/rev", 1.6387064e-5 / TURN),
        ("m3/rad", "10 cm3/rad", 1e-5),
        ("m3/s", "60 l/min", 1e-3),
        ("m3", "5 mm3", 5e-9),
        ("N.s/m", "2 kN.s/m", 2e3),
        ("N.s/m", "2 kN s / m", 2e3),
        ("N/m", "100 N/mm", 1e5),
        ("N.m", "5 Nm", 5.0),
        ("N.m/rad", "1 N.m/deg", 180.0 / math.pi),
        ("J", "2 N.m", 2.0),
        ("J", "1 kWh", 3.6e6),
        ("m3/(s.V)", "3 m3/(s.V)", 3.0),
        ("m2/s", "46 cSt", 46e-6),
        ("J/(kg.K)", "2 kJ/(kg degC)", 2e3),
        ("1", "50 %", 0.5),
        ("1", "5 ppm", 5e-6),
        ("K", "20 degC", 293.15),
        ("K", "20 °C", 293.15),
        ("K", "68 degF", 293.15),
        (KELVIN, "20 degC", 293.15),
        (DIFFERENCE, "5 degC", 5.0),
        (DIFFERENCE, "9 degF", 5.0),
        (DIFFERENCE, "5 delta_degC", 5.0),
        (CELSIUS, "293.15 K", 20.0),
        (CELSIUS_DIFFERENCE, "5 K", 5.0),
        (NONE, "5", 5.0),
        ("boxes", "7 boxes", 7.0),
        (defined("rpm", s=-1, factor=1.0 / 60.0), "25 Hz", 1500.0),
        (defined("Hz", s=-1), "60 rpm", 1.0),
        (defined("cm3/rev", m=3, factor=1e-6), "10 cm3/rev", 10.0),
        (defined("m3/rad", m=3), "10 cm3/rev", 1e-5 / TURN),
    ],
)  # fmt: skip
def test_what_is_written_is_converted(unit: str | UnitOfMeasurement, text: str, number: float) -> None:
    assert number_in(text, unit) == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize(
    ("unit", "text", "said"),
    [
        # Both readings, and what to write for each.
        ("m3/rad", "10 cm3", "write '10 cm3/rev' (1.59155e-06 m3/rad) or '10 cm3/rad' (1e-05 m3/rad)"),
        ("rad/s", "100 1/s", "write '100 rev/s' (628.319 rad/s) or '100 rad/s' (100 rad/s)"),
        ("Hz", "5 1/s", "write '5 rev/s' (5 Hz) or '5 rad/s' (0.795775 Hz)"),
        ("1/s", "60 rpm", "write 1 if they are revolutions, and 6.28319 if they are radians"),
        ("1/s", "5 Hz", "write 5 if they are revolutions, and 31.4159 if they are radians"),
        ("N.m/rad", "5 N.m", "write '5 N.m/rev' (0.795775 N.m/rad) or '5 N.m/rad' (5 N.m/rad)"),
        ("cm3", "10 cm3/rev", "write 10 if they are revolutions, and 1.59155 if they are radians"),
        (defined("m3/rad", m=3), "10 cm3", "write '10 cm3/rev'"),
        (defined("cm3", m=3, factor=1e-6), "10 cm3/rev", "write 10 if they are revolutions"),
        (CELSIUS, "5 delta_degC", "would be 5 degC as a difference"),
        (NONE, "50 %", "has no unit; write 50 if it counts in %, and 0.5 if it is a ratio"),
        (NONE, "200 bar", "has no unit to convert 'bar' to"),
        ("Pa", "200 barg", "counts from the pressure around"),
        ("m3/s", "5 gpm", "3.78541 l in the USA and 4.54609 l elsewhere"),
        ("m3/s", "5 gal/min", "3.78541 l in the USA and 4.54609 l elsewhere; write it in gal_us, gal_uk or l"),
        ("rad", "5 grad", "a degree in German, and a 400th of a turn elsewhere; write it in deg or gon"),
        ("N.m", "5 ft lb", "different quantities; lb is a unit of mass, and lbf one of force"),
        ("Pa", "5 Mpa", "'Mpa' is no unit that is known; write MPa or mPa"),
        ("W", "5 KW", "'KW' is no unit that is known; write kW"),
        ("kg", "1 ton", "907.185 kg"),
        # Other quantities.
        ("Pa", "5 m", "'m' and 'Pa' are units of different quantities"),
        ("N.m", "5 J", "'J' is a unit of energy, and 'N.m' one of torque"),
        ("rad", "50 %", "different quantities"),
        ("1", "5 N", "different quantities"),
        ("m", "5 ms", "different quantities"),
        # No units.
        ("Pa", "5 blah", "'blah' is no unit that is known; write it in Pa"),
        ("furlongs/ell", "5 bar", "the unit 'furlongs/ell' has no definition in SI base units"),
        ("J/(kg.K)", "2 J/kg.K", "'J/kg.K' is no unit that is known; write it in J/(kg.K)"),
        ("m", "5 m99", "no unit that is known"),
        ("Pa", "five bar", "must be a number, in Pa, or with a unit"),
        ("Pa", "1,5 bar", "must be a number"),
        *(("Pa", each, "must be a number") for each in ("1_000", "１２", "٣", "1_0 bar", "--1", "")),
        *(("1", each, "must be a number") for each in ("1 2", "10**10**10", "__import__('os')", "")),
    ],
)  # fmt: skip
def test_what_has_no_meaning_or_two_is_refused(unit: str | UnitOfMeasurement, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        number_in(text, unit)
    assert said in str(caught.value)
    assert f"'{text}' is refused" in str(caught.value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_stay_as_they_are(number: float) -> None:
    assert number_in(repr(number), "Pa") == number


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        (CELSIUS, KELVIN, 20.0, 293.15),
        (CELSIUS_DIFFERENCE, DIFFERENCE, 5.0, 5.0),
        (CELSIUS_DIFFERENCE, KELVIN, 5.0, 5.0),
        (defined("%", factor=0.01), defined("1"), 50.0, 0.5),
        (defined("1"), defined("%", factor=0.01), 0.5, 50.0),
        (UnitOfMeasurement("%"), UnitOfMeasurement("1"), 50.0, 0.5),
        (defined("%", factor=0.01), NONE, 50.0, 50.0),
        (NONE, defined("%", factor=0.01), 50.0, 50.0),
        (defined("1"), defined("bar", kg=1, m=-1, s=-2, factor=1e5), 3.0, 3.0),  # `1` of everything
        (defined("rpm", s=-1, factor=1.0 / 60.0), defined("rad/s", s=-1, rad=1), 60.0, TURN),
        (defined("rpm", s=-1, factor=TURN / 60.0), defined("Hz", s=-1), 60.0, 1.0),
        (defined("rpm", s=-1, rad=1, factor=TURN / 60.0), defined("rad/s", s=-1), 60.0, TURN),
        (defined("Hz", s=-1), defined("1/s", s=-1), 5.0, 5.0),  # as both define it
        (UnitOfMeasurement("bar"), UnitOfMeasurement("Pa"), 1.0, 1e5),
    ],
)
def test_what_variables_declare_is_converted(
    source: UnitOfMeasurement, target: UnitOfMeasurement, value: float, expected: float
) -> None:
    assert conversion(source, target)(value) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        (CELSIUS, DIFFERENCE, "one of them is a difference"),
        (DIFFERENCE, CELSIUS, "one of them is a difference"),
        (defined("1/s", s=-1), defined("rad/s", s=-1, rad=1), "write '1 rev/s' (6.28319 rad/s) or '1 rad/s'"),
        (defined("cm3", m=3, factor=1e-6), defined("m3/rad", m=3, rad=-1), "'1 cm3/rev'"),
        (defined("%", factor=0.01), defined("N", kg=1, m=1, s=-2), "different quantities"),
        (UnitOfMeasurement("boxes"), KELVIN, "'boxes' has no definition"),
    ],
)
def test_what_variables_declare_of_two_meanings_is_refused(
    source: UnitOfMeasurement, target: UnitOfMeasurement, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        conversion(source, target)
    assert said in str(caught.value)


def test_lists_have_one_unit() -> None:
    assert with_common_unit(["1", "2.5"]) == ([1.0, 2.5], "")
    assert with_common_unit(["1 bar", "2 bar"]) == ([1.0, 2.0], "bar")
    for texts in (["1 bar", "2"], ["1 bar", "2 Pa"]):
        with pytest.raises(ValueError, match="differ"):
            with_common_unit(texts)


@pytest.mark.parametrize(
    ("unit", "text"), [("Pa", "2e7 Pa.rad"), ("Pa", "1 bar/rev"), ("kg", "3 kg.rad"), ("rad", "3 %")]
)
def test_angles_where_nobody_counts_any_are_another_quantity(unit: str, text: str) -> None:
    with pytest.raises(InputError, match="are units of different quantities"):
        number_in(text, unit)


@pytest.mark.parametrize("text", ["1e400", " -1e999 ", "1e400 mm", "1e305 Mm"])
def test_numbers_beyond_the_largest_are_refused_as_they_are_written(text: str) -> None:
    with pytest.raises(InputError, match=rf"^'{text.strip()}' is refused: its magnitude is beyond the largest number"):
        number_in(text, "m")
    assert number_in("inf", "m") == math.inf


@pytest.mark.parametrize("value", [True, None, [1.0], 1j])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="is refused: it must be a number, or a text with a unit"):
        number_in(value, "m")


@pytest.mark.parametrize(
    ("power", "output_unit", "unit"),
    [
        (1, "Pa", "Pa.s"),
        (2, "m/s", "m2/s"),
        (2, "rad/s", "rad2/s"),
        (1, "1", "s"),
        (1, "bar", "(bar).s"),
        (2, "N", "N2.s"),
    ],
)
def test_integrals_have_the_unit_of_a_product(power: int, output_unit: str, unit: str) -> None:
    assert Integral("y", power).unit(output_unit) == unit
