"""What a report shows first: signals that matter, found and laid over one another, at one time with the motion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from accessibility import findings
from chromium import Chromium

import mbsfmu
from mbsfmu import Trajectory
from mbsfmu.view.report.report_sections import main_signals

CHOSEN = "document.querySelector('.plot-chosen').chosen"
SCENE = "document.querySelector('.mbsfmu-scene').scene"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the crane, whose valve is open from 0.5 s on."""
    run = mbsfmu.models.built_in("crane").simulation(compiled=False, step=5e-3).run(1.0)
    return mbsfmu.write_report(run, tmp_path_factory.mktemp("chosen") / "crane.html")


def test_those_that_change_most_of_each_kind_come_first() -> None:
    time = np.linspace(0.0, 1.0, 11)
    signals = {
        **{f"arm_{k}.angle": ((k + 1.0) * time, "rad") for k in range(5)},
        "twin.angle": (5.0 * time, "rad"),
        "still.angle": (0.0 * time, "rad"),
        "A.pressure": (1e5 * time, "Pa"),
        "A.compression": (2e5 * time, "Pa"),
        "arm.force": (1e9 * time, "N"),
        "controller.error": (1e-6 * time, "1"),
        "quaternion.w": (time, "1"),
        "constraint.position": (9.0 * time, "rad"),
    }
    values = np.column_stack([each for each, _ in signals.values()])
    run = Trajectory(time, values, list(signals), [unit for _, unit in signals.values()])
    expected = ["arm_4.angle", "arm_3.angle", "arm_2.angle", "A.pressure", "controller.error"]
    assert main_signals(run) == expected


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_report_opens_on_them_quietly(browser: Chromium, report: Path, width: int, dark: bool) -> None:
    browser.open(report, width, dark=dark)
    shown = browser.evaluate(f"{CHOSEN}.panels.map((each) => each.curves.map(({{ label }}) => label))")
    assert ["boom.angle", "load.angle"] in [sorted(each) for each in shown]
    assert browser.evaluate("document.querySelectorAll('.plot-chosen ~ details[open]').length") == 0
    assert browser.evaluate(f"{CHOSEN}.panels.every((each) => each.plot)")
    assert browser.said == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert findings(browser) == []


def test_signals_are_found_added_and_taken_out(browser: Chromium, report: Path) -> None:
    browser.open(report)

    def type_in(text: str) -> None:
        browser.evaluate(
            f"{{ const f = document.querySelector('.plot-chosen .find'); f.value = '{text}';"
            "f.dispatchEvent(new Event('input')); }"
        )

    visible = (
        "[...document.querySelectorAll('.plot-chosen ~ details:not([hidden]) > summary')].map((s) => s.textContent)"
    )
    whole = browser.evaluate(visible)
    type_in("spool")
    assert browser.evaluate(visible) == ["valve (4 signals)"]
    type_in("valve.spool")
    assert browser.evaluate(visible) == whole
    labels = f"{CHOSEN}.panels.find((each) => each.unit === 'V').curves.map(({{ label }}) => label)"
    assert browser.evaluate(labels) == ["valve.command", "valve.spool"]
    drawn = f"{CHOSEN}.panels.find((each) => each.unit === 'V').plot.data[2].at(-1)"
    assert browser.evaluate(drawn) == pytest.approx(6.0, rel=1e-3)
    browser.evaluate("document.querySelector('[aria-label=\"remove valve.command\"]').click()")
    assert browser.evaluate(labels) == ["valve.spool"]
    browser.evaluate(f"{CHOSEN}.group.do('in')")
    type_in("lift.force")
    ranges = f"{CHOSEN}.panels.map(({{ plot }}) => [plot.scales.x.min, plot.scales.x.max])"
    assert all(each == pytest.approx([0.25, 0.75]) for each in browser.evaluate(ranges)), "what is zoomed stays so"


def test_plots_and_motion_are_at_one_place(browser: Chromium, report: Path) -> None:
    browser.open(report)
    browser.until(f"Boolean({SCENE})")
    browser.evaluate(f"{SCENE}.seek(0.75)")
    assert browser.evaluate(f"{CHOSEN}.group.place") == pytest.approx(0.75)
    assert browser.evaluate(f"{CHOSEN}.panels[0].plot.posToVal({CHOSEN}.panels[0].plot.cursor.left, 'x')") == (
        pytest.approx(0.75, abs=0.01)
    )
    browser.evaluate(f"{CHOSEN}.panels[0].root.scrollIntoView({{ block: 'center' }})")
    left, top, width, height = browser.evaluate(
        f"(({{ left, top, width, height }}) => [left, top, width, height])"
        f"({CHOSEN}.panels[0].plot.over.getBoundingClientRect())"
    )
    browser.mouse("mouseMoved", left + 0.25 * width, top + 0.5 * height)
    browser.until(f"Math.abs({SCENE}.time - 0.25) < 0.01")


def test_paper_has_all_that_is_unfolded(browser: Chromium, report: Path) -> None:
    """Panels far below what the window shows too, in its width, with legends; what is folded away is not there."""
    browser.open(report, height=300)
    browser.evaluate("document.querySelectorAll('.plot-chosen ~ details').forEach((d, k) => { d.open = k === 9; })")
    drawn = "mbsfmuPlots.panels.map((p) => [Boolean(p.root.closest('details[open]')), p.plot?.width ?? 0])"
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    for unfolded, width in browser.evaluate(drawn):
        assert width == (660 if unfolded else 0)
    browser.call("Emulation.setEmulatedMedia", media="print")
    display = "(each) => getComputedStyle(document.querySelector(each)).display"
    elements = [".plot-chosen .plot-legend button", ".plot-tools", ".choose", ".plot-chosen ~ details:not([open])"]
    shown = [each if each == "none" else "there" for each in browser.evaluate(f"{elements}.map({display})")]
    assert shown == ["there", "none", "none", "none"]
    browser.call("Emulation.setEmulatedMedia", media="")
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    assert browser.evaluate(f"{CHOSEN}.panels[0].plot.width === {CHOSEN}.panels[0].field.clientWidth")
