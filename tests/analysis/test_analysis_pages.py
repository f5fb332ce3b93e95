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
