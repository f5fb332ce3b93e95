"""A coupled run whose residual energy is large beside the energy exchanged says so."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS

from mbsfmu import CosimulationResult, cosimulate


def run(units: list[Path], **options: object) -> CosimulationResult:
    return cosimulate(units, connections=CONNECTIONS, stop=2.0, **options)


def exchanged(result: CosimulationResult) -> float:
    """Integrate the magnitude of the power that the force of one unit gives at the speed of the other one."""
    power = np.abs(result["two.force"] * result["one.speed"])
    return float(np.sum(0.5 * (power[1:] + power[:-1]) * np.diff(result.time)))


def test_a_coarse_run_is_told_and_a_fine_one_is_not(halves_exact: list[Path], caplog: pytest.LogCaptureFixture) -> None:
    coarse = run(halves_exact, algorithm="jacobi", step=0.02)
    (note,) = coarse.notes
    assert note.startswith("the coupling (jacobi by steps of 0.02 s) brought in or took out up to ")
    assert "J exchanged there" in note
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [note]
    share = coarse.energy_residual_max / exchanged(coarse)
    assert coarse.energy_residual_share == pytest.approx(share, rel=0.05)
    assert f"{100.0 * coarse.energy_residual_share:.2g} % of" in note
    (note,) = run(halves_exact, algorithm="gauss-seidel", extrapolation="linear", step=0.1).notes
    assert note.startswith("the coupling (gauss-seidel, linear, by steps of 0.1 s) brought in")
    fine = run(halves_exact, algorithm="newton", extrapolation="linear", step=0.02)
    assert fine.notes == []
    assert fine.energy_residual_share < 2e-3
    (total,) = fine.energy_exchanged.values()
    assert total == pytest.approx(exchanged(fine), rel=1e-2)


def test_at_rest_there_is_nothing_to_tell(four_bar_package: Path) -> None:
    still = cosimulate(four_bar_package, step=1e-3, stop=0.05)
    assert not [note for note in still.notes if "brought in" in note]
