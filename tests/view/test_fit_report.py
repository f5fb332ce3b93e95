"""The report of a fit: what it says of parameters, correlations and residuals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accessibility import findings
from chromium import Chromium
from pages import report_of

import mbsfmu
from mbsfmu import FitResult, FitSignal
from mbsfmu.analysis.fitting import StepErrors

TIMES = np.linspace(0.0, 4.0, 400)


def fitted(left: Any, **given: Any) -> FitResult:
    """Two parameters by a signal of 1 m whose residuals are these, and three values of a pressure without any."""
    signals = (
        FitSignal(
            "log.csv", "slider.displacement", "m", TIMES, np.sin(TIMES) + left, np.sin(TIMES), float(np.std(left))
        ),
        FitSignal("log.csv", "V1.pressure", "Pa", TIMES[:3], np.array([1e5, 2e5, 3e5]), np.array([1e5, 2e5, 3e5]), 1.0),
    )
    fields: dict[str, Any] = {
        "values": np.array([40.0, 0.5]), "deviations": np.array([2.0, np.inf]), "lower": np.array([36.1, -np.inf]),
        "upper": np.array([43.9, np.inf]), "covariance": np.diag([4.0, np.inf]),
        "correlation": np.array([[1.0, np.nan], [np.nan, 1.0]]),
        "sentences": ("the data say nothing of spring.damping",),
    }  # fmt: skip
    return FitResult(
        ("spring.stiffness", "spring.damping"),
        ("N/m", "N.s/m"),
        signals=signals,
        runs=7,
        step_errors=StepErrors(("steps of 1 ms",), np.zeros(2), (None,)),
        **{**fields, **given},
    )


def test_parameters_and_what_is_not_told(tmp_path: Path) -> None:
    page = report_of(fitted(1e-3 * np.random.default_rng(1).standard_normal(400)), tmp_path)
    first, second, last = page.answer
    assert first.startswith(
        "spring.stiffness = 40 N/m, between 36.1 N/m and 43.9 N/m with 95 %; spring.damping = 0.5 N·s/m, of"
    )
    assert second == "The data say nothing of spring.damping."
    assert last.startswith("Not known: whether another model would follow the data as well")
    rows = page.rows("parameter", "value")
    assert [row[2:] for row in rows] == [["36.1 N/m to 43.9 N/m", "5 %", "0 N/m"], ["none", "–", "0 N·s/m"]]
    assert page.rows("", "spring.stiffness") == [["spring.damping", "–"]]


def test_residuals_are_described(tmp_path: Path) -> None:
    """Of a sine of one period in 400 values, σ² is ½: none beyond 2 σ, and from value to value cos(2π/400)."""
    wave = 1e-3 * np.sin(2.0 * np.pi * np.arange(400) / 400.0)
    found = fitted(wave)
    assert found.signals[0].autocorrelation == pytest.approx(np.cos(2.0 * np.pi / 400.0), rel=1e-4)
    page = report_of(found, tmp_path)
    row, other = page.rows("experiment", "output")
    assert row[2:7] == ["400", "707 µm", "707 µm", "0 %", "1"]
    assert other[2:4] == ["3", "0 Pa"]
    measured, residual = page.plots["log.csv, slider.displacement"]
    assert [curve["label"] for curve in measured["curves"]] == ["measured", "fitted"]
    assert [curve["label"] for curve in residual["curves"]] == ["residual", "+2 σ", "−2 σ"]


def test_names_keep_their_letters(tmp_path: Path) -> None:
    page = report_of(fitted(TIMES, sentences=("boom.mass and link.mass are hardly told apart",)), tmp_path)
    assert page.answer[1] == "boom.mass and link.mass are hardly told apart."


@pytest.mark.parametrize(("width", "dark"), [(1280, True), (390, False)])
def test_the_page_is_quiet_reachable_and_alone(browser: Chromium, tmp_path: Path, width: int, dark: bool) -> None:
    found = fitted(1e-3 * np.random.default_rng(2).standard_normal(400))
    browser.open(mbsfmu.write_report(found, tmp_path / "fit.html"), width, dark=dark)
    browser.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    browser.evaluate("mbsfmuPlots.panels.forEach((each) => each.plot ?? each.draw())")
    assert browser.said == []
    assert browser.asked == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert findings(browser) == []


def test_paper_has_no_heading_above_buttons_alone(browser: Chromium, tmp_path: Path) -> None:
    browser.open(mbsfmu.write_report(fitted(1e-3 * np.sin(TIMES)), tmp_path / "fit.html"))
    headings = "[...document.querySelectorAll('h2')].filter((each) => each.checkVisibility())"
    told = browser.evaluate(f"{headings}.map((each) => each.textContent)")
    browser.call("Emulation.setEmulatedMedia", media="print")
    printed = browser.evaluate(f"{headings}.map((each) => [each.textContent, each.parentElement.innerText.trim()])")
    browser.call("Emulation.setEmulatedMedia", media="")
    assert [heading for heading, _ in printed] == [each for each in told if each != "Numbers"]
    assert all(len(text) > len(heading) for heading, text in printed)
