"""What volumes of oil take in, against closed forms."""

from __future__ import annotations

import pytest
from hydraulic_bench import untimed
from hypothesis import given
from hypothesis import strategies as st

from hydraulics.fluid import capacity

OIL = 1500e6
volumes = st.floats(1e-6, 1e-1)
moduli = st.floats(1e7, 1e12)


@untimed
@given(volumes)
def test_oil_in_rigid_walls_keeps_its_modulus(volume: float) -> None:
    assert capacity(1.0 / OIL, volume, []) == pytest.approx(volume / OIL, rel=1e-14)


@untimed
@given(volumes, moduli)
def test_one_elastic_wall_is_a_spring_in_series(volume: float, wall: float) -> None:
    series = OIL * wall / (OIL + wall)
    assert capacity(1.0 / OIL, volume, [(volume, wall)]) == pytest.approx(volume / series, rel=1e-13)


@untimed
@given(volumes, volumes, moduli, moduli)
def test_compliances_of_subvolumes_add_up(one: float, other: float, soft: float, hard: float) -> None:
    # dV = V dp / B of each part on its own, the oil of both parts together
    parts = [OIL * wall / (OIL + wall) for wall in (soft, hard)]
    together = capacity(1.0 / OIL, one + other, [(one, soft), (other, hard)])
    assert together == pytest.approx(one / parts[0] + other / parts[1], rel=1e-12)


@untimed
@given(volumes, moduli, st.floats(0.01, 0.99))
def test_cutting_a_hose_in_two_changes_nothing(volume: float, wall: float, share: float) -> None:
    whole = capacity(1.0 / OIL, 2.0 * volume, [(volume, wall)])
    cut = capacity(1.0 / OIL, 2.0 * volume, [(share * volume, wall), ((1.0 - share) * volume, wall)])
    assert cut == pytest.approx(whole, rel=1e-12)
