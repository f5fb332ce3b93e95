"""Orifices of commanded area, capillaries and gaps, against their closed forms."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import pytest
from hydraulic_bench import Bench
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from valves import orifice, volumes

from hydraulics import AnnularGap, Capillary, VariableOrifice

pressures = st.floats(0.0, 5e7)
TABLE = ((0.1, 0.0), (0.4, 0.2), (1.0, 1.0))
ORIFICE = Bench(
    volumes(
        VariableOrifice(name="part", inlet="A", outlet="B", area=2e-5, discharge_coefficient=0.65, points=TABLE),
        A=1e6,
        B=1e6,
    )
)
CAPILLARY = Bench(
    volumes(Capillary(name="part", inlet="A", outlet="B", diameter=8e-4, length=0.05, viscosity=0.04), A=1e6, B=1e6)
)


def gap(eccentricity: float) -> Bench:
    part = AnnularGap(
        name="part", inlet="A", outlet="B", diameter=0.02, length=0.03, viscosity=0.04, clearance=1e-5,
        eccentricity=eccentricity,
    )  # fmt: skip
    return Bench(volumes(part, A=1e6, B=1e6))


@given(st.floats(-0.5, 1.5), pressures, pressures)
def test_commanded_area_is_that_of_the_table(command: float, a: float, b: float) -> None:
    flow = ORIFICE.outputs(part__command=command, A__pressure=a, B__pressure=b)["part.flow"]
    area = 2e-5 * float(np.interp(command, *zip(*TABLE, strict=True)))
    assert flow == pytest.approx(orifice(0.65 * area * sqrt(2.0 / 850.0), a - b, 2e5), rel=1e-12, abs=1e-18)
    assert flow * (a - b) >= 0.0


def test_shares_of_the_table_are_parameters_of_zero_or_more() -> None:
    shares = [each for each in ORIFICE.equations.parameters if "points" in each.name]
    assert [(each.start, each.minimum, each.unit) for each in shares] == [(share, 0.0, "1") for _, share in TABLE]
    changed = {"part.points_2": 0.5}
    flow = ORIFICE.outputs(changed, part__command=0.25, A__pressure=5e6, B__pressure=1e6)["part.flow"]
    assert flow == pytest.approx(0.65 * 2e-5 * 0.25 * sqrt(2.0 * 4e6 / 850.0), rel=1e-12)


def test_capillary_is_the_integral_of_its_parabola() -> None:
    """The velocity Δp (R² − r²) / (4 μ l) over the bore, and the Reynolds number of its mean."""
    drop, radius = 3e6, 4e-4
    flow, _ = quad(lambda r: drop * (radius**2 - r**2) / (4.0 * 0.04 * 0.05) * 2.0 * pi * r, 0.0, radius)
    outputs = CAPILLARY.outputs(A__pressure=4e6, B__pressure=1e6)
    assert outputs["part.flow"] == pytest.approx(flow, rel=1e-10)
    mean = flow / (pi * radius**2)
    assert outputs["part.reynolds"] == pytest.approx(850.0 * mean * 2.0 * radius / 0.04, rel=1e-10)
    back = CAPILLARY.outputs(A__pressure=1e6, B__pressure=4e6)
    assert back["part.flow"] == pytest.approx(-flow, rel=1e-10)
    assert back["part.reynolds"] == pytest.approx(outputs["part.reynolds"], rel=1e-12)


@pytest.mark.parametrize("eccentricity", [0.0, 0.5, 1.0])
def test_gap_is_the_integral_of_its_height_cubed(eccentricity: float) -> None:
    drop = 1e7
    flow, _ = quad(
        lambda angle: drop * (1e-5 * (1.0 + eccentricity * np.cos(angle))) ** 3 / (12.0 * 0.04 * 0.03) * 0.01,
        0.0,
        2.0 * pi,
    )
    outputs = gap(eccentricity).outputs(A__pressure=1.1e7, B__pressure=1e6)
    assert outputs["part.flow"] == pytest.approx(flow, rel=1e-9)
    assert outputs["part.reynolds"] == pytest.approx(850.0 * flow / (2.0 * pi * 0.02 / 4.0 * 0.04), rel=1e-9)
