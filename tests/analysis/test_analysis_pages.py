"""Python of the guides on sensitivities, fitting and optimization runs as it is printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from documented import ROOT


def run_page(name: str) -> dict[str, Any]:
    """Run the Python blocks of a page one after the other, and return their names."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(code, names)  # the page is ours
    return names


def test_sensitivities() -> None:
    """docs/guides/sensitivities.md: a heavier boom raises the peak of the pressure, and IDAS runs."""
    names = run_page("guides/sensitivities.md")
    assert names["peak"].parameters["boom.mass"] > 0.0
    assert names["end"].numel() == len(names["given"].x.names)


def test_fitting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guide on fitting: the values that made the log are found within their intervals, and the model is a file."""
    monkeypatch.chdir(tmp_path)
    found = run_page("guides/fitting.md")["found"]
    assert found["boom.mass"] == pytest.approx(225.0, abs=4.0 * found.deviations[1])
    assert (tmp_path / "fitted.json").is_file()


def test_optimization() -> None:
    """docs/guides/optimization.md: the constraint is what ends the search."""
    found = run_page("guides/optimization.md")["found"]
    assert found.converged
    assert found.limits["end(boom.angle)<=0.028"] == pytest.approx(0.028, rel=1e-5)


def test_a_controller() -> None:
    """docs/guides/controller.md: the numbers it tells, and a boom that goes where it is told, its oil damped."""
    names = run_page("guides/controller.md")
    plants, runs = names["opened"], names["runs"]
    fast = [pole for plant in plants.values() for pole in names["damped"](plant).poles() if pole.imag > 10.0]
    assert min(-pole.real / abs(pole) for pole in fast) == pytest.approx(0.49, abs=0.005)
    assert names["gain"] == pytest.approx(604.0, abs=1.0)
    for change, run in runs.items():
        share = (run["boom.angle"] - names["angle"]) / change
        assert share[-1] == pytest.approx(1.0, abs=2e-3)
        assert share.max() < 1.01
        # The oil is at rest a second after the step: what is left of pressure is that of the swinging load.
        late = run["lift.pressure_piston"][run.time > 1.5]
        assert max(abs(late[2:] - 2.0 * late[1:-1] + late[:-2])) < 2e-3 * (late.max() - late.min() + 1e4)
    off = [
        max(abs((runs[change]["boom.angle"][names["after"]] - names["angle"]) / change - expected))
        for change, volts in ((0.01, 4.0), (-0.01, -4.0))
        for _, expected in [names["control"].step_response(names["loops"][volts], names["times"])]
    ]
    assert off == pytest.approx([0.105, 0.367], abs=0.005)
