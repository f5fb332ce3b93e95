"""What volumes of oil take in, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hydraulics import Space
from hydraulics.equations import CONSERVATIONS, held_mass
from hydraulics.fluid import Fluid, Mixture

OIL = 1500e6
ATMOSPHERE = np.asarray(101325.0)
volumes = st.floats(1e-6, 1e-1)
moduli = st.floats(1e7, 1e12)
both = pytest.mark.parametrize("conserved", ["mass", "volume"])


def capacity(conserved: str, *spaces: tuple[float, float | None], pressure: float = float(ATMOSPHERE)) -> float:
    given = [Space("node", np.asarray(v), None if wall is None else np.asarray(wall)) for v, wall in spaces]
    return float(CONSERVATIONS[conserved].capacity(1.0 / OIL, np.asarray(pressure), given))


@both
@given(volumes, st.floats(0.0, 1e8))
def test_oil_in_rigid_walls_keeps_its_modulus(conserved: str, volume: float, pressure: float) -> None:
    assert capacity(conserved, (volume, None), pressure=pressure) == pytest.approx(volume / OIL, rel=1e-14)


@both
@given(volumes, moduli)
def test_one_elastic_wall_is_a_spring_in_series(conserved: str, volume: float, wall: float) -> None:
    series = OIL * wall / (OIL + wall)
    assert capacity(conserved, (volume, wall)) == pytest.approx(volume / series, rel=1e-13)


@both
@given(volumes, volumes, moduli, moduli)
def test_compliances_of_subvolumes_add_up(conserved: str, one: float, other: float, soft: float, hard: float) -> None:
    # dV = V dp / B of each part on its own, the oil of both parts together
    parts = [OIL * wall / (OIL + wall) for wall in (soft, hard)]
    together = capacity(conserved, (one, soft), (other, hard))
    assert together == pytest.approx(one / parts[0] + other / parts[1], rel=1e-12)


@both
@given(volumes, moduli, st.floats(0.01, 0.99), st.floats(0.0, 1e8))
def test_cutting_a_hose_in_two_changes_nothing(
    conserved: str, volume: float, wall: float, share: float, pressure: float
) -> None:
    whole = capacity(conserved, (volume, None), (volume, wall), pressure=pressure)
    parts = (share * volume, wall), ((1.0 - share) * volume, wall)
    assert capacity(conserved, (volume, None), *parts, pressure=pressure) == pytest.approx(whole, rel=1e-12)


def test_paper_s_walls_do_not_grow() -> None:
    """[Jaiswal2021, eq. 23] has the same modulus of oil and walls at any pressure."""
    assert capacity("volume", (2.0, 150e6), pressure=30e6) == pytest.approx(2.0 / OIL + 2.0 / 150e6, rel=1e-14)


@pytest.mark.parametrize("mixture", [None, Mixture(OIL, 0.01, None), Mixture(OIL, 0.01, 1.3)])
@given(st.floats(1e3, 5e7))
def test_capacity_is_what_the_mass_changes_by(mixture: Mixture | None, pressure: float) -> None:
    """A litre in walls of 150 MPa beside two in rigid ones, at a pressure of vapour of 200 Pa."""
    oil = Fluid(850.0, OIL, 200.0, mixture)
    spaces = [Space("node", np.asarray(1e-3), np.asarray(150e6)), Space("node", np.asarray(2e-3))]

    def mass(at: float) -> float:
        return float(held_mass(oil, np.asarray(at), np.asarray(at - 200.0), spaces))

    step = 1e-4 * pressure
    slope = (mass(pressure + step) - mass(pressure - step)) / (2.0 * step)
    taken = CONSERVATIONS["mass"].capacity(oil.compliance(np.asarray(pressure)), np.asarray(pressure), spaces)
    density = 850.0 / oil.relative_volume(np.asarray(pressure))
    assert density * taken == pytest.approx(slope, rel=1e-5)


def test_density_is_given_at_atmospheric_pressure() -> None:
    litre = [Space("node", np.asarray(1e-3), np.asarray(150e6))]
    assert held_mass(Fluid(850.0, OIL, 0.0, None), ATMOSPHERE, ATMOSPHERE, litre) == pytest.approx(0.85, rel=1e-15)
    airy = Fluid(850.0, OIL, 0.0, Mixture(OIL, 0.02, None))
    assert held_mass(airy, ATMOSPHERE, ATMOSPHERE, litre) == pytest.approx(0.85 / 1.02, rel=1e-15)
