"""The near-energy-preserving correction lowers what the coupling brings in."""

from __future__ import annotations

from pathlib import Path

import pytest
from cosim.linear_units import CONNECTIONS

import mbsfmu
from mbsfmu import cosimulate


@pytest.mark.parametrize(("extrapolation", "share"), [("zero", 0.1), ("linear", 0.5)])
def test_correction_lowers_the_residual(halves_exact: list[Path], extrapolation: str, share: float) -> None:
    plain, corrected = (
        cosimulate(
            halves_exact, connections=CONNECTIONS, algorithm="jacobi", extrapolation=extrapolation, step=0.005,
            stop=2.0, energy_correction=correction,
        ).energy_residual_max
        for correction in (False, True)
    )  # fmt: skip
    assert corrected < share * plain


def test_correction_on_four_bar(tmp_path: Path) -> None:
    """Without friction: where it makes the force depend on velocity at once, the correction feeds back on itself."""
    package = mbsfmu.export(mbsfmu.models.four_bar(circuit="frictionless"), tmp_path, layout="separate")[-1]
    plain, corrected = (
        cosimulate(
            package, algorithm="gauss-seidel", extrapolation="linear", step=1e-3, stop=1.2,
            energy_correction=correction,
        ).energy_residual_max
        for correction in (False, True)
    )  # fmt: skip
    assert corrected < 0.6 * plain
