"""The report of a linear system: what it says, what it draws, in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accessibility import findings
from chromium import Chromium
from pages import report_of

import mbsfmu
from mbsfmu import LinearSystem
from mbsfmu.analysis.linear_system import OperatingValue


@pytest.fixture(scope="module")
def analysis() -> Any:
    resting = mbsfmu.models.built_in("four-bar").equilibrium().model
    found = resting.modal_analysis(outputs=["boom.angle", "cylinder.pressure_piston"])
    locus = resting.root_locus("boom.mass", [200.0, 300.0, 400.0])
    return mbsfmu.ModalAnalysis(found.system, found.coordinates, found.machine, locus)


def _system(matrix: list[list[float]], **given: Any) -> LinearSystem:
    a = np.array(matrix)
    states = tuple(OperatingValue(f"x{k}", "m", 0.0) for k in range(len(a)))
    one = (OperatingValue("force", "N", 0.0),)
    return LinearSystem(
        "made", 0.0, a, np.ones((len(a), 1)), np.ones((1, len(a))), np.zeros((1, 1)), states, one,
        (OperatingValue("y", "m", 0.0),), rates=np.zeros(len(a)), **given,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([[0.5]], "Unstable: a mode grows with a time constant of 2 s (x0)."),
        ([[-0.5]], "Stable: all motions decay."),
        ([[0.0]], "No motion grows; one eigenvalue is zero: what moves so stays where it is put (x0)."),
        ([[0.0, 0.0], [0.0, 0.0]], "No motion grows; 2 eigenvalues are zero: what moves so stays where it is put"),
        (
            [[0.0, 1.0], [0.0, 0.0]],
            "Not stable: 2 eigenvalues are zero with fewer eigenvectors: a velocity persists, and positions drift (x",
        ),
        ([[0.0, 1.0], [-4.0, -0.04]], "The least damped mode oscillates at 0.3183 Hz with a damping ratio of 0.01 (x"),
        ([[0.0, 1.0], [-4.0, 0.04]], "Unstable: a mode oscillates at 0.3183 Hz with a damping ratio of -0.01 (x"),
    ],
)
def test_what_motions_do_is_said(tmp_path: Path, matrix: list[list[float]], sentence: str) -> None:
    page = report_of(_system(matrix), tmp_path)
    assert sentence in page.text
    assert "Modes in motion" not in page.text


def test_notes_are_said(tmp_path: Path) -> None:
    page = report_of(
        _system([[-1.0]], kinks=("valve.spool",), notes=("the derivatives are found by differences",)), tmp_path
    )
    assert "The derivatives are found by differences." in page.text
    assert "The equations have a kink at the values of valve.spool" in page.text


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_is_quiet_reachable_and_alone(
    browser: Chromium, analysis: Any, tmp_path: Path, width: int, dark: bool
) -> None:
    file = mbsfmu.write_report(analysis, tmp_path / "modes.html")
    browser.open(file, width, dark=dark)
    browser.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    browser.evaluate("mbsfmuPlots.panels.forEach((each) => each.plot ?? each.draw())")
    assert browser.said == []
    assert browser.asked == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert findings(browser) == []
    browser.until("document.querySelector('.mbsfmu-scene')?.scene?.runs.length === 1")
    ends = []
    for time in (0.0, 1.0):
        browser.evaluate(f"document.querySelector('.mbsfmu-scene').scene.seek({time})")
        ends.append(browser.evaluate("document.querySelector('.mbsfmu-scene').scene.point('boom.end', 0)"))
    # Half a period apart: twice ±0.1 rad at the end of a boom of a length from the model, on the chord.
    boom = analysis.machine.systems["mechanism"].bodies[0]
    apart = np.linalg.norm(np.subtract(*ends))
    assert apart == pytest.approx(2.0 * boom.length * np.sin(0.1), rel=1e-3)


def test_all_is_in_the_page(analysis: Any, tmp_path: Path) -> None:
    text = report_of(analysis, tmp_path).text
    for words in (
        "9.44 Hz",
        "Root locus over boom.mass",
        "Frequency responses",
        "after a step of valve.command by 1 V",
    ):
        assert words in text
    assert "Not drawn, as it is far away: −11630 1/s." in text
