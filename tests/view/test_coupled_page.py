"""Pages in which the coupled FMUs of a model run beside it: as the master runs them, with the same inputs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accessibility import findings
from chromium import Chromium
from test_play_page import PLAYER, ask, begin, calls, give, hold, last, opened, pause, press, saved

import mbsfmu
from mbsfmu.cli import main

INNER = 5e-4  # s
STEPS = (20e-3, 2e-3, 1e-3)  # s; with the first one Jacobi is unstable
ALGORITHMS = ("jacobi", "gauss-seidel-linear")
ROUND_OFF = 1e-11
"""Sines and powers of the two C libraries differ in the last digit; 1.4e-12 was measured after a second."""


@pytest.fixture(scope="session")
def coupled_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the four-bar with its coupled FMUs."""
    page = mbsfmu.play(mbsfmu.models.four_bar(), step=INNER, algorithms=ALGORITHMS, communication_steps=STEPS)
    path = tmp_path_factory.mktemp("coupled") / "four-bar.html"
    page.save(path)
    return path


@pytest.fixture
def coupled(browser: Chromium, coupled_page: Path) -> Iterator[Chromium]:
    """The browser with this page."""
    with opened(browser, coupled_page):
        yield browser


def choose(browser: Chromium, algorithm: int, step: float) -> None:
    """Choose the algorithm and the communication step in s."""
    for name, value in (("algorithm", algorithm), ("communication", step)):
        browser.evaluate(
            f"{{ const s = document.querySelector('.{name}'); s.value = {value};"
            "s.dispatchEvent(new Event('change')); }"
        )
    assert browser.evaluate("document.querySelector('.communication').value") == f"{step:g}"
    ask(browser)
    browser.until(f"{PLAYER}.latest.time === 0")


@pytest.mark.parametrize(("algorithm", "step"), [(0, 2e-3), (1, 1e-3)])
def test_it_runs_as_the_master_runs_it(
    coupled: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: int, step: float
) -> None:
    """The recorded inputs, given to the master with native FMUs."""
    monkeypatch.chdir(tmp_path)
    choose(coupled, algorithm, step)
    coupled.key(" ")
    coupled.until(f"{PLAYER}.time > 0.1")
    hold(
        coupled, "q", f"{PLAYER}.inputs.all[0].value === 10 && {PLAYER}.time > (window.opened ??= {PLAYER}.time) + 0.2"
    )
    coupled.until(f"{PLAYER}.inputs.all[0].value === 0")
    stop = pause(coupled)
    found = {name: value for name, value in last(coupled).items() if name.endswith(", coupled")}
    assert np.loadtxt(saved(coupled, tmp_path, "four-bar"), delimiter=",", skiprows=1)[:, 1].max() == 10.0
    alone, exported = calls(coupled)
    export, together = exported.split("; ")
    names: dict[str, Any] = {"model": mbsfmu.models.four_bar(), "mbsfmu": mbsfmu}
    exec(export, names)  # the page is ours
    run, whole = eval(together, names), eval(alone, names)
    assert (run.time[-1], run.statistics.step) == (pytest.approx(stop), step)
    assert run.statistics.algorithm == ALGORITHMS[algorithm].removesuffix("-linear")
    assert run.statistics.extrapolation == ("linear" if algorithm else "zero")
    assert len(found) == 5
    costs = []
    for label, value in found.items():
        own = label.removesuffix(", coupled")
        full = ("circuit." if "pressure" in own else "mechanism.") + own
        assert value == pytest.approx(run[full][-1], rel=ROUND_OFF, abs=ROUND_OFF * np.ptp(run[full])), label
        costs.append(abs(value - whole[own][-1]) / np.ptp(whole[own]))
    assert max(costs) > 1e-6  # coupling costs something


def test_the_distance_of_a_point_is_that_of_its_angles(coupled: Chromium) -> None:
    """The end of a boom of length L hinged to the ground: 2 L sin(difference / 2)."""
    choose(coupled, 0, 2e-3)
    coupled.evaluate(f"{PLAYER}.scene().traceOf('boom.end'); {PLAYER}.inputs.all[0].take(10)")
    coupled.key(" ")
    coupled.until(f"{PLAYER}.time > 0.3")
    pause(coupled)
    found = last(coupled)
    length = coupled.evaluate(f"{PLAYER}.data.parameters.find((p) => p.name === 'boom.length').start")
    expected = 2.0 * length * abs(np.sin(0.5 * (found["boom.angle, coupled"] - found["boom.angle"])))
    assert expected > 1e-4
    told = coupled.evaluate("document.querySelector('.apart').textContent")
    value, unit = re.findall(r"is ([\d.]+) (mm|m) off now", told)[0]
    assert float(value) * {"mm": 1e-3, "m": 1.0}[unit] == pytest.approx(expected, rel=5e-3)
    coupled.until("document.querySelectorAll('.coupling tbody tr').length === 5")
    row = "[...document.querySelectorAll('.coupling tbody tr')].find((r) => r.innerText.startsWith('boom.angle'))"
    coupled.until(f"{row}.children[1].textContent !== '–'")
    degrees = np.degrees(found["boom.angle, coupled"] - found["boom.angle"])
    coupled.until(
        f"Math.abs(parseFloat({row}.children[1].textContent.replace('−', '-')) - {degrees}) < {0.01 * abs(degrees)}"
    )


def test_a_signal_is_taken_out_with_both_of_its_curves(coupled: Chromium) -> None:
    buttons = "[...document.querySelectorAll('.plot-legend .remove')].map((button) => button.ariaLabel)"
    curves = f"{PLAYER}.signals.group.panels.flatMap((panel) => panel.curves.map((curve) => curve.label))"
    labels = coupled.evaluate(curves)
    name, *others = [label for label in labels if f"{label}, coupled" in labels]
    assert len(others) == 4
    alone = [label for label in labels if not label.endswith(", coupled")]
    assert sorted(coupled.evaluate(buttons)) == sorted(f"remove {label}" for label in alone)
    coupled.evaluate(f"document.querySelector('[aria-label=\"remove {name}\"]').click()")
    assert set(labels) - set(coupled.evaluate(curves)) == {name, f"{name}, coupled"}


def test_a_coupled_run_that_ends_leaves_the_other_one(coupled: Chromium) -> None:
    """Jacobi at 20 ms is unstable, which the master finds as well; another step begins anew."""
    choose(coupled, 0, 20e-3)
    coupled.evaluate(f"{PLAYER}.inputs.all[0].take(10)")
    press(coupled, "save")
    coupled.until("document.querySelectorAll('.states button').length === 2")
    coupled.evaluate(f"{PLAYER}.speed.value = 'Infinity'")
    press(coupled, "toggle")
    coupled.until("!document.querySelector('.lost').hidden")
    coupled.until(f"{PLAYER}.time > 2 + (window.lostAt ??= {PLAYER}.time)")
    pause(coupled)
    assert "The coupled run has ended:" in coupled.evaluate("document.querySelector('.lost').textContent")
    assert not coupled.evaluate("document.querySelector('.mbsfmu-scene').scene.runs[1].object.visible")
    assert last(coupled)["boom.angle, coupled"] is None
    assert last(coupled)["boom.angle"] is not None
    press(coupled, "reset")
    coupled.until("document.querySelector('.lost').hidden")
    press(coupled, "toggle")
    coupled.until("!document.querySelector('.lost').hidden")
    pause(coupled)
    coupled.evaluate("document.querySelectorAll('.states button')[1].click()")
    coupled.until("document.querySelector('.lost').hidden")
    assert coupled.evaluate("document.querySelector('.mbsfmu-scene').scene.runs[1].object.visible")
    choose(coupled, 0, 1e-3)
    assert coupled.evaluate("document.querySelector('.lost').hidden")


def test_states_lead_to_the_same_end_in_both_runs(coupled: Chromium) -> None:
    """Also after a reset, when the instance that the state is of is no longer the present one."""
    choose(coupled, 1, 2e-3)
    coupled.evaluate(f"{PLAYER}.inputs.all[0].take(5)")
    press(coupled, "toggle")
    coupled.until(f"{PLAYER}.time > 0.1")
    at = pause(coupled)
    press(coupled, "save")
    coupled.until("document.querySelectorAll('.states button').length === 2")
    ends = []
    for between in ("", "reset", "choose"):
        if between == "reset":
            press(coupled, "reset")
            ask(coupled)
        if between == "choose":
            choose(coupled, 0, 1e-3)
        coupled.evaluate("document.querySelectorAll('.states button')[1].click()")
        coupled.until(f"{PLAYER}.time === {at!r}")
        assert coupled.evaluate("document.querySelector('.algorithm').value") == "1"
        for _ in range(20):
            press(coupled, "step")
        coupled.until(f"{PLAYER}.time > {at + 19.5 * 2e-3} && {PLAYER}.drawn === {PLAYER}.latest")
        ends.append(last(coupled))
    assert ends[0] == ends[1] == ends[2]
    assert ends[0]["boom.angle, coupled"] not in (None, ends[0]["boom.angle"])


def test_parameters_count_in_both_runs(coupled: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixed ones from a reset on, tunable ones at once, as the master takes them with native FMUs."""
    monkeypatch.chdir(tmp_path)
    step, steps, opening = 2e-3, 20, 3e-8

    def advance(until: int) -> None:
        for _ in range(steps):
            press(coupled, "step")
        coupled.until(f"{PLAYER}.time > {(until - 0.5) * step} && {PLAYER}.drawn === {PLAYER}.latest")

    choose(coupled, 1, step)
    give(coupled, "boom.mass", "250")
    press(coupled, "reset")
    coupled.evaluate(f"{PLAYER}.inputs.all[0].take(10)")
    advance(steps)
    give(coupled, "valve.flow_coefficient", str(opening))
    advance(2 * steps)
    found = {name: value for name, value in last(coupled).items() if name.endswith(", coupled")}
    export, together = calls(coupled)[1].split("; ")
    assert '"mechanism.boom.mass": 250' in together
    assert "when valve.flow_coefficient was changed" in coupled.evaluate(
        "document.querySelector('.recorded').textContent"
    )
    names: dict[str, Any] = {"model": mbsfmu.models.four_bar(), "mbsfmu": mbsfmu}
    exec(export, names)  # the page is ours
    start = {"mechanism.boom.mass": 250.0, "circuit.valve.command": 10.0}
    with mbsfmu.Cosimulation(
        names["package"], algorithm=ALGORITHMS[1], step=step, stop=2 * steps * step, parameters=start
    ) as run:
        run.run(steps * step)
        run["circuit.valve.flow_coefficient"] = opening
        run.run()
        expected = run.result()
    for label, value in found.items():
        full = ("circuit." if "pressure" in label else "mechanism.") + label.removesuffix(", coupled")
        assert value == pytest.approx(expected[full][-1], rel=ROUND_OFF, abs=ROUND_OFF * np.ptp(expected[full])), label


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_pages_are_reachable_and_narrow_enough(browser: Chromium, coupled_page: Path, width: int, dark: bool) -> None:
    begin(browser, coupled_page, width, dark=dark)
    beside = (
        "[...document.querySelectorAll('label')].find((e) => e.textContent === 'side by side').querySelector('input')"
    )
    browser.evaluate(f"{beside}.click()")
    ghost = "document.querySelector('.mbsfmu-scene').scene.runs[1].object.position.length()"
    assert browser.evaluate(ghost) > 1.0  # m, the size of the machine
    browser.evaluate(f"{beside}.click()")
    assert browser.evaluate(ghost) == 0.0
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert findings(browser) == []
    assert browser.said == []
    assert browser.asked == []


def test_a_comparison_has_both_machines(browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By one command, with the algorithms and steps that were compared."""
    monkeypatch.chdir(tmp_path)
    words = "compare four-bar --stop 1.2 --steps 2e-3,1e-3 --algorithms jacobi,newton --accuracy 1e-6"
    monkeypatch.setattr(sys, "argv", ["mbsfmu", *words.split(), "--report", "page.html", "--live", "--quiet"])
    main()
    begin(browser, tmp_path / "page.html")
    offered = json.loads(
        browser.evaluate("JSON.stringify([...document.querySelectorAll('.coupling option')].map((o) => o.text))")
    )
    assert offered == ["jacobi", "2 ms", "1 ms"]
    # No setting is accurate enough: it begins with the most accurate one that runs in a page.
    assert browser.evaluate("document.querySelector('.communication').value") == "0.001"
    press(browser, "toggle")
    browser.until(f"{PLAYER}.time > 0.1")
    pause(browser)
    assert last(browser)["boom.angle, coupled"] is not None
    assert json.loads(browser.evaluate(f"JSON.stringify({PLAYER}.latest.steps)")) == round(
        browser.evaluate(f"{PLAYER}.latest.time") / 1e-3
    )
    alone, coupled = calls(browser)
    assert alone.startswith("mbsfmu simulate four-bar --")
    assert " --input four-bar-inputs.csv:steps --stop" in alone
    assert "mbsfmu cosim fmus/four-bar.ssp --algorithm jacobi --extrapolation zero --step 0.001 --scenario" in coupled
    assert browser.said == []
    assert browser.asked == []


def test_what_cannot_be_coupled_in_a_page_is_refused() -> None:
    with pytest.raises(mbsfmu.InputError, match=r"pendulum-1 has one system; there is nothing to couple"):
        mbsfmu.play(mbsfmu.models.pendulum(1), algorithms=["jacobi"])
    with pytest.raises(mbsfmu.InputError, match=r"coupled FMUs in a page run by jacobi, .*, not by 'newton'"):
        mbsfmu.play(mbsfmu.models.four_bar(), algorithms=["newton"])
    with pytest.raises(mbsfmu.InputError, match=r"the communication steps are \[0\.0\]; they must be positive"):
        mbsfmu.play(mbsfmu.models.four_bar(), algorithms=["jacobi"], communication_steps=[0.0])
