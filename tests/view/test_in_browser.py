"""Plots in a browser: they draw, zoom together, tell values with units, and say nothing on the console."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from accessibility import findings
from chromium import Chromium

from mbsfmu.base.physical_units import DISPLAY_UNITS
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.view.plots.plot import Axis, Curve, Kind, Panel, Plot

EVIL = "</script><script>window.broken = 1</script><!-- '\"& \N{CYRILLIC SMALL LETTER YA}"
RANGE = "mbsfmuPlots.panels.map((each) => [each.plot.scales.x.min, each.plot.scales.x.max])"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two panels of five thousand points each."""
    time = np.arange(5001) * 1e-3
    values = np.column_stack([4e6 * np.sin(2 * math.pi * time), 1e6 * time, 0.2 * np.cos(time)])
    run = Trajectory(time, values, ["cylinder.pressure", EVIL, "cylinder.length"], ["Pa", "Pa", "m"])
    return run.plot(title=EVIL).save(tmp_path_factory.mktemp("plot") / "plot.html")


def centre(browser: Chromium, panel: int, share: float = 0.5) -> tuple[float, float]:
    """A place on the field of a panel, in pixels of the window."""
    left, top, width, height = browser.evaluate(
        f"(() => {{ const r = mbsfmuPlots.panels[{panel}].plot.over.getBoundingClientRect();"
        "return [r.left, r.top, r.width, r.height]; })()"
    )
    return left + share * width, top + 0.5 * height


def drawn(browser: Chromium) -> None:
    browser.until("mbsfmuPlots.panels.every((each) => each.plot)")


def told(browser: Chromium) -> list[str]:
    return browser.evaluate("[...document.querySelectorAll('.plot-value')].map((each) => each.textContent)")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_plots_are_quiet_reachable_and_alone(browser: Chromium, page: Path, width: int, dark: bool) -> None:
    browser.open(page, width, dark=dark)
    drawn(browser)
    assert browser.said == []
    assert browser.asked == []
    assert browser.evaluate("window.broken") is None
    assert browser.evaluate("document.querySelector('h1').textContent") == EVIL
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert findings(browser) == []


def test_dragging_zooms_all_panels_and_a_double_click_shows_the_whole(browser: Chromium, page: Path) -> None:
    browser.open(page)
    drawn(browser)
    assert browser.evaluate(RANGE) == [[0, 5], [0, 5]]
    browser.drag(centre(browser, 0, 0.2), centre(browser, 0, 0.6))
    for low, high in browser.evaluate(RANGE):
        assert (low, high) == pytest.approx((1.0, 3.0), abs=0.03)
    browser.drag(centre(browser, 1, 0.75), centre(browser, 1, 0.25), modifiers=8)
    for low, high in browser.evaluate(RANGE):
        assert (low, high) == pytest.approx((2.0, 4.0), abs=0.05)
    at = centre(browser, 1)
    for count in (1, 2):
        for kind in ("mousePressed", "mouseReleased"):
            browser.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=count)
    assert browser.evaluate(RANGE) == [[0, 5], [0, 5]]


def test_values_stand_in_all_panels_with_their_units(browser: Chromium, page: Path) -> None:
    """At a quarter of the way: 1.25 s, where 40 bar sin 2πt is 40 bar, or 4 MPa."""
    browser.open(page)
    drawn(browser)
    browser.mouse("mouseMoved", *centre(browser, 1, 0.25))
    browser.until("document.querySelector('.plot-value').textContent !== ''")
    pressure, ramp, length = told(browser)
    assert [each.split()[1] for each in (pressure, ramp, length)] == ["bar", "bar", "mm"]
    assert float(pressure.split()[0]) == pytest.approx(40.0, rel=1e-3)
    assert float(ramp.split()[0]) == pytest.approx(12.5, abs=0.1)
    assert float(length.split()[0]) == pytest.approx(200 * math.cos(1.25), rel=0.03)
    browser.evaluate("document.querySelector('[data-do=units]').click()")
    assert told(browser)[0].split() == [f"{float(pressure.split()[0]) / 10:.5g}", "MPa"]
    assert browser.evaluate("mbsfmuPlots.panels[0].plot.scales.y.max") == pytest.approx(5.5, rel=0.2)
    assert browser.evaluate("document.querySelector('.plot-name').textContent") == "[MPa]"
    browser.evaluate("document.querySelector('[data-do=units]').click()")
    assert told(browser)[0] == pressure


def test_units_of_catalogues_are_display_units_where_they_say_something(browser: Chromium, page: Path) -> None:
    """One of each in SI; a micrometre is no thousandth of a millimetre."""
    browser.open(page)
    displayed = browser.evaluate("mbsfmuQuantities.DISPLAYED")
    for unit, (size, name) in displayed.items():
        if unit != "W":
            known = DISPLAY_UNITS[unit]
            assert size * known.factor == pytest.approx(1.0, rel=1e-12)
            assert name.lower().replace("°", "deg") == known.name.lower()
    assert displayed["W"] == [1e3, "kW"]
    asked = "[['m', 0.1], ['m', 1e-6], ['rad', 0.5], ['J', 2e3]].map((each) => mbsfmuQuantities.scaling(...each).unit)"
    assert browser.evaluate(asked) == ["mm", "µm", "°", "kJ"]


def test_the_keyboard_does_what_the_pointer_does(browser: Chromium, page: Path) -> None:
    browser.open(page)
    drawn(browser)
    browser.mouse("mouseMoved", 1, 1)
    browser.evaluate("mbsfmuPlots.panels[0].field.focus()")
    browser.key("+")
    assert browser.evaluate(RANGE) == [[1.25, 3.75]] * 2
    browser.key("ArrowRight", modifiers=8)
    for low, high in browser.evaluate(RANGE):
        assert (low, high) == pytest.approx((1.875, 4.375))
    browser.key("ArrowRight")
    before = told(browser)
    assert all(before)
    browser.key("+")
    line = "(({ plot }) => plot.posToVal(plot.cursor.left, 'x') - mbsfmuPlots.panels[0].group.place)"
    assert browser.evaluate(f"mbsfmuPlots.panels.map({line})") == pytest.approx([0, 0], abs=1e-9)
    assert told(browser) == before, "of the same place, wherever that stands now"
    browser.key("0")
    assert browser.evaluate(RANGE) == [[0, 5]] * 2


def test_curves_are_hidden_and_logarithms_drawn(browser: Chromium, page: Path) -> None:
    browser.open(page)
    drawn(browser)
    browser.evaluate("document.querySelector('.plot-legend button').click()")
    assert browser.evaluate("mbsfmuPlots.panels[0].plot.series.map((each) => each.show)") == [True, False, True]
    assert browser.evaluate("mbsfmuPlots.panels[0].plot.scales.y.max") == pytest.approx(50.0, rel=0.2)
    browser.evaluate("document.querySelector('[data-do=log]').click()")
    low, high = browser.evaluate("(({ min, max }) => [min, max])(mbsfmuPlots.panels[0].plot.scales.y)")
    assert 0 < low < 1e-1
    assert high >= 50.0


def test_a_curve_that_runs_away_leaves_the_panel(browser: Chromium, tmp_path: Path) -> None:
    """It is not scaled by, whose unit stays, and what is well below the limits fills the panel."""
    time = [0.0, 1.0, 2.0]
    curves = (Curve.of("kept", time, [0.0, 0.5, 0.2]), Curve.of("lost", time, [0.0, 0.1, 1e9]))
    small = (Curve.of("kept", time, [0.0, 0.01, -0.01]),)
    panels = (Panel("x", "m", curves, limits=(-2.0, 2.0)), Panel("y", "m", small, limits=(-2.0, 2.0)))
    browser.open(Plot("lost", panels).save(tmp_path / "plot.html"))
    drawn(browser)
    shown = browser.evaluate("mbsfmuPlots.panels.map(({ plot: { scales: { y } } }) => [y.min, y.max])")
    assert shown[0] == pytest.approx([-200, 2200], abs=300)
    assert shown[1] == pytest.approx([-10, 10], abs=5), "in mm"
    names = "[...document.querySelectorAll('.plot-name')].map((each) => each.textContent)"
    assert browser.evaluate(names) == ["x [mm]", "y [mm]"]


def test_ticks_stand_where_they_are_wanted(browser: Chromium, tmp_path: Path) -> None:
    steps = (5e-4, 1e-3, 4e-3)
    curves = (
        Curve.of("jacobi", steps, [0.01, 0.02, 0.08], Kind.MARKED),
        Curve.of("cost of the step", [5e-4, 4e-3], [0.005, 0.005], Kind.BOUND),
    )
    plot = Plot("error", (Panel("error", "%", curves, True),), Axis("step", "s", True, steps))
    browser.open(plot.save(tmp_path / "plot.html"))
    drawn(browser)
    assert browser.evaluate("mbsfmuPlots.panels[0].plot.axes[0]._values") == ["0.0005", "0.001", "0.004"]
    assert browser.said == []
