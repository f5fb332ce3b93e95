"""What a coupled run says of outputs that do not vary: their errors are no fractions of round-off."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from mbsfmu.cosim import CosimulationResult
from mbsfmu.cosim.runs.master import coupling_error


@dataclass
class Run:
    """Signals over time, with their units by the last words of names."""

    signals: dict[str, NDArray[np.float64]]
    time: NDArray[np.float64]

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self.signals[name]

    def unit(self, name: str) -> str:
        return "rad/s" if "velocity" in name else "N"

    statistics = SimpleNamespace(step=1e-3)


def error(first: dict[str, Any], second: dict[str, Any]) -> tuple[float | None, str]:
    times = np.linspace(0.0, 1.0, 11)
    runs = [Run({name: values + 0.0 * times for name, values in each.items()}, times) for each in (first, second)]
    found = coupling_error(cast("CosimulationResult", runs[0]), list(first), lambda _: cast("Any", runs[1]))
    return found.fraction, found.output


def test_a_steady_speed_is_held_against_itself_and_its_vector() -> None:
    """30 rad/s about z, off by 3e-5, and about x off by 3e-6 of nothing."""
    wave = np.sin(np.arange(11.0))
    steady = {"a.shaft.angular_velocity.x": 0.0, "a.shaft.angular_velocity.z": 30.0}
    off = {"a.shaft.angular_velocity.x": 3e-6 * wave, "a.shaft.angular_velocity.z": 30.0 + 3e-5 * wave}
    fraction, output = error(steady, off)
    assert fraction == pytest.approx(2.0 * 1e-6 * np.abs(wave).max(), rel=1e-4)
    assert output == "a.shaft.angular_velocity.z"


def test_a_true_error_of_what_varies_stays_one() -> None:
    wave = np.sin(np.arange(11.0))
    fraction, output = error({"a.velocity": 30.0 + 0.9 * wave}, {"a.velocity": 30.0 + wave})
    assert (fraction, output) == (pytest.approx(0.2 * np.abs(wave).max() / np.ptp(wave)), "a.velocity")
    fraction, _ = error({"a.angular_velocity.x": 0.0, "a.angular_velocity.z": 30.0},
                        {"a.angular_velocity.x": 15.0 * wave, "a.angular_velocity.z": 30.0})  # fmt: skip
    assert fraction == pytest.approx(2.0 * 15.0 * np.abs(wave).max() / np.ptp(15.0 * wave))
