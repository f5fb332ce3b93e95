"""Energy that coupling brings in against what the units then have; what a correction makes up for."""

from __future__ import annotations

from math import exp
from pathlib import Path

import numpy as np
import pytest
from cosim.linear_units import CONNECTIONS, MASSES, START, STIFFNESSES, LinearSystem, export_linear, halves
from cosim.oscillator_theory import step_map

import mbsfmu
from mbsfmu import CosimulationResult, cosimulate

STOP = 1.5


def energy(result: CosimulationResult) -> np.ndarray:
    """Energy of both masses and all three springs in J; the coupling's force tells its spring's stretch."""
    kinetic = sum(0.5 * mass * result[f"{unit}.speed"] ** 2 for unit, mass in zip(("one", "two"), MASSES, strict=True))
    springs = 0.5 * STIFFNESSES[0] * result["one.position"] ** 2 + 0.5 * result["two.force"] ** 2 / STIFFNESSES[1]
    whole: np.ndarray = kinetic + springs
    return whole


@pytest.fixture(scope="module")
def undamped(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("undamped")
    return [export_linear(system, folder, "rk4", 1e-3) for system in halves(damping=0.0)]


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_residual_energy_is_what_the_units_gain(undamped: list[Path], algorithm: str) -> None:
    """Nothing is lost inside the units: what they have more at the end is what the bond says was brought in."""
    result = cosimulate(
        undamped, connections=CONNECTIONS, algorithm=algorithm, extrapolation="zero", step=2e-3, stop=STOP
    )
    (residual,) = result.energy_residual.values()
    gained = energy(result)
    assert abs(gained[-1] - gained[0]) > 1e-4 * gained[0]
    assert residual == pytest.approx(gained[-1] - gained[0], rel=0.02)


@pytest.mark.parametrize("algorithm", ["jacobi", "gauss-seidel"])
def test_a_comparison_tells_the_energy_of_each_bond(undamped: list[Path], algorithm: str) -> None:
    """The drift of the total energy follows from powers of the exact map from one communication point to the next."""
    steps = (4e-3, 2e-3)
    made = mbsfmu.compare(undamped, connections=CONNECTIONS, steps=steps, algorithms=[algorithm], stop=STOP, workers=1)
    (m1, m2), (k1, k2) = MASSES, STIFFNESSES
    weights = 0.5 * np.array([k1, m1, m2, k2])
    start = np.array([START[0], START[1], START[3], 0.0])
    for run in made.runs:
        end = np.linalg.matrix_power(step_map(algorithm, "zero", run.step, damping=0.0), round(STOP / run.step)) @ start
        drift = weights @ (end**2 - start**2)
        ((bond, energy),) = run.bonds.items()
        assert energy.residual == pytest.approx(drift, rel=0.03)
        assert energy.largest >= abs(energy.residual)
        assert energy.share == pytest.approx(energy.largest / energy.exchanged)
        assert run.to_dict()["bonds"][bond]["residual"] == energy.residual


def test_correction_makes_up_for_whole_integrals(tmp_path: Path) -> None:
    """∫ exp(−t) dt from held values is of first order; with what was missed made up for, one step's part is left."""
    source = LinearSystem(
        "source", [np.array([[-1.0]]), np.zeros((1, 0)), np.eye(1), np.zeros((1, 0))], [1.0], {}, {"y": "m/s"}
    )
    integral = LinearSystem(
        "integral", [np.zeros((1, 1)), np.eye(1), np.eye(1), np.zeros((1, 1))], [0.0], {"u": "m/s"}, {"x": "m"}
    )
    units = [export_linear(system, tmp_path, "rk4", 1e-3) for system in (source, integral)]
    errors = {
        correction: [
            cosimulate(
                units, connections=("source.y=integral.u",), algorithm="jacobi", extrapolation="zero", step=step,
                stop=STOP, energy_correction=correction,
            )["x"][-1] - (1.0 - exp(-STOP))
            for step in (0.02, 0.01)
        ]
        for correction in (False, True)
    }  # fmt: skip
    assert errors[False][0] / errors[False][1] == pytest.approx(2.0, abs=0.1)
    assert errors[True][0] / errors[True][1] == pytest.approx(4.0, abs=0.4)
