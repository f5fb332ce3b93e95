"""Measured columns are converted to the units of their variables."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from mbsfmu import InputError
from mbsfmu.analysis.residuals import Experiment, read_experiment
from mbsfmu.modelling.measurement_units import UnitOfMeasurement
from mbsfmu.modelling.variables import Causality, Variable

SPEED = Variable("speed", Causality.OUTPUT, unit="rad/s")
SET_SPEED = Variable("wanted", Causality.INPUT, unit="rad/s")
WARMING = Variable("warming", Causality.OUTPUT, unit="K", definition=UnitOfMeasurement("K", relative=True))


def read(folder: Path, columns: str) -> Experiment:
    path = folder / "log.csv"
    path.write_text(f"time [ms],{columns}\n0,1500,1500,5\n1000,3000,3000,6\n")
    return read_experiment(path, "log", [SET_SPEED], [SPEED, WARMING], lambda name: name, {})


def test_columns_are_converted(tmp_path: Path) -> None:
    found = read(tmp_path, "speed [1/min],wanted [rpm],warming [degC]")
    np.testing.assert_allclose(found.values[0], [50.0 * math.pi, 100.0 * math.pi], rtol=1e-14)
    np.testing.assert_allclose(found.values[1], [5.0, 6.0], rtol=1e-14)
    assert found.signals["wanted"].after(0.5) == pytest.approx(75.0 * math.pi, rel=1e-14)
    assert found.times[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("unit", ["1/s", "N", "what"])
def test_columns_of_other_quantities_are_refused(tmp_path: Path, unit: str) -> None:
    with pytest.raises(InputError, match=f"log.csv: 'speed' is in {unit}, and speed in rad/s"):
        read(tmp_path, f"speed [{unit}],wanted,warming")
