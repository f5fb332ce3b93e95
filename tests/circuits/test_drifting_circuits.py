"""Steps that do not resolve a circuit are told by its energy that drifts; steps that do are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from importer import Importer

from hydraulics import Circuit, Oil, PressureSource, Tank, Throttle, Volume
from mbsfmu import CoupledModel, export

NOT_RESOLVED = "the circuit is not resolved"
PUMP, TANK = 1e8, 1e5
REST = 0.5 * (PUMP + TANK)
"""Between two equal orifices, but for what the oil expands."""


def divided(volume: float) -> CoupledModel:
    """A volume between two equal orifices, which begins empty."""
    orifice = {"orifice_diameter": 1e-3, "discharge_coefficient": 0.7}
    circuit = Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0, air_content=0.0),
        components=(
            PressureSource(name="pump", node="P", pressure=PUMP),
            Throttle(name="first", inlet="P", outlet="A", **orifice),
            Volume(name="volume", node="A", volume=volume),
            Throttle(name="second", inlet="A", outlet="T", **orifice),
            Tank(name="tank", node="T", pressure=TANK),
        ),
        initial_pressures={"A": TANK},
    )
    return CoupledModel(name="divided", systems={"circuit": circuit})


@pytest.mark.parametrize("volume", [1e-9, 1e-7])
def test_a_volume_that_steps_pass_over_is_told(volume: float, caplog: pytest.LogCaptureFixture) -> None:
    """Trapezoidal steps far too long let its pressure swing about where it rests, here by some per cent."""
    result = divided(volume).simulation(compiled=False, step=1e-3).run(0.1)
    (sentence,) = [each.getMessage() for each in caplog.records if NOT_RESOLVED in each.getMessage()]
    drift = np.max(np.abs(result["hydraulic_energy.drift"]))
    assert f"hydraulic_energy.drift comes to {drift:.3g} J" in sentence
    assert sentence.endswith(
        "pressures may be off by far more than that: take smaller steps, or a solver that chooses them"
    )
    caplog.clear()
    exact = divided(volume).simulation(compiled=False, solver="rodas5p").run(0.1)
    assert exact["A.pressure"][-1] == pytest.approx(REST, rel=0.05)
    assert np.ptp(result["A.pressure"][50:]) > 1e-3 * REST > 1e5 * np.ptp(exact["A.pressure"][50:])
    assert not [each for each in caplog.records if NOT_RESOLVED in each.getMessage()]


def test_a_volume_that_steps_resolve_is_not(caplog: pytest.LogCaptureFixture) -> None:
    result = divided(1e-3).simulation(compiled=False, step=1e-3).run(2.0)
    exact = divided(1e-3).simulation(compiled=False, solver="rodas5p").run(2.0)
    expected = np.interp(result.time, exact.time, exact["A.pressure"])
    np.testing.assert_allclose(result["A.pressure"], expected, rtol=1e-3, atol=5e3)
    assert not [each for each in caplog.records if NOT_RESOLVED in each.getMessage()]


def test_a_unit_says_what_a_simulation_says(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (path,) = export(divided(1e-9), tmp_path, layout="monolithic", solver="trapezoidal")
    unit = Importer(path, tmp_path / "unpacked")
    slave = unit.running()
    simulation = divided(1e-9).simulation(compiled=False, solver="trapezoidal")
    simulation.initialize()
    for index in range(8):
        slave.doStep(index * 1e-3, 1e-3)
        simulation.step(index * 1e-3, 1e-3)
    said = [each for each in unit.messages if NOT_RESOLVED in str(each)]
    (sentence,) = [each.getMessage() for each in caplog.records if NOT_RESOLVED in each.getMessage()]
    assert len(said) == 1
    assert sentence in str(said[0]).replace("%%", "%")
    for name in ("stored", "supplied", "delivered", "dissipated", "start", "drift"):
        found = unit.get(slave, f"hydraulic_energy.{name}")
        assert found == pytest.approx(simulation.get(f"hydraulic_energy.{name}"), rel=1e-9, abs=1e-12)
