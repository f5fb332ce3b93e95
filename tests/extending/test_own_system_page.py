"""The code of docs/guides/own-system.md runs, and gives the closed form of a heated tank."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import mbsfmu

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "own-system.md").read_text(encoding="utf-8")


def test_a_heat_store_heats_up_as_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, use = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "heating.py").write_text(kind, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {}
    exec(use, names)  # the page is ours
    closed = 20.0 + 2000.0 / 50.0 * (1.0 - math.exp(-50.0 * 3600.0 / 2e5))
    assert capsys.readouterr().out == f"{closed:.2f} °C\n"
    assert f"here {closed:.2f} °C" in PAGE
    again = mbsfmu.CoupledModel.from_dict(json.loads(json.dumps(names["model"].to_dict())))
    result = again.simulation(compiled=False, solver="rodas5p").run(output_step=60.0)
    assert result["store.temperature"][-1] == pytest.approx(closed + 273.15, abs=1e-3)
    cold = {"tank": names["HeatStore"](capacity=2e5, loss=50.0, ambient=20.0)}
    assert [*cold["tank"].diagnostics()] == ["the surroundings have 20 K; is that in degrees Celsius?"]
