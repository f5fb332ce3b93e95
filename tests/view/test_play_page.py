"""Pages in which a model runs: driven by keys, replayed from what they save, and quiet."""

from __future__ import annotations

import base64
import contextlib
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
from mechanisms import ball_pendulum
from sampled_control import controlled

import mbsfmu
from mbsfmu import CoupledModel
from mbsfmu.cli import main
from mbsfmu.compiling import compiler, kept

PLAYER = "document.querySelector('.mbsfmu-play').player"
STEP = 1e-3  # s, as in the guide
GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "play.md").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def four_bar_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the four-bar as the code of the guide makes it."""
    folder = tmp_path_factory.mktemp("play")
    (code,) = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    with contextlib.chdir(folder):
        exec(code, {})  # the guide is ours
    return folder / "four-bar.html"


@pytest.fixture
def driven(browser: Chromium, four_bar_page: Path) -> Iterator[Chromium]:
    """The browser with the four-bar at its start."""
    with opened(browser, four_bar_page):
        yield browser


@contextlib.contextmanager
def opened(browser: Chromium, page: Path) -> Iterator[None]:
    """Open a machine's page, and keep what it saves as files; it says nothing and asks for nothing."""
    kept = "window.files = []; const make = URL.createObjectURL; URL.createObjectURL = (b) => (files.push(b), make(b))"
    made = browser.call("Page.addScriptToEvaluateOnNewDocument", source=kept)
    begin(browser, page)
    yield
    assert browser.said == []
    assert browser.asked == []
    browser.call("Page.removeScriptToEvaluateOnNewDocument", **made)


def begin(browser: Chromium, page: Path, width: int = 1280, *, dark: bool = False) -> None:
    browser.open(page, width, dark=dark)
    browser.until(f"Boolean({PLAYER}?.latest && {PLAYER}.signals)")


def press(browser: Chromium, button: str) -> None:
    browser.evaluate(f"document.querySelector('.mbsfmu-play [data-do={button}]').click()")


def hold(browser: Chromium, key: str, until: str) -> None:
    """Hold a key until something is so."""
    browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
    browser.until(until)
    browser.call("Input.dispatchKeyEvent", type="keyUp", key=key)


def pause(browser: Chromium) -> float:
    """Pause, and return the time in s."""
    press(browser, "toggle")
    told = ask(browser)
    browser.until(f"{PLAYER}.time === {told['time']!r} && {PLAYER}.drawn === {PLAYER}.latest")
    return told["time"]


def ask(browser: Chromium) -> dict[str, Any]:
    """Return what the worker has recorded."""
    heard = f"{PLAYER}.worker.addEventListener('message', (e) => e.data.kind === 'record' && done(e.data))"
    text = browser.evaluate(
        f"new Promise((done) => {{ {heard}; {PLAYER}.tell('record', {{ for: 'words' }}); }}).then(JSON.stringify)"
    )
    return json.loads(text)


def saved(browser: Chromium, folder: Path, name: str) -> Path:
    """Save what was done as CSV, and return its file in a folder, called as the page calls it."""
    press(browser, "csv")
    browser.until("files.length > 1 && files[files.length - 1].type === 'text/csv'")
    path = folder / f"{name}-inputs.csv"
    path.write_text(browser.evaluate("files[files.length - 1].text()"), encoding="utf-8")
    return path


def calls(browser: Chromium) -> list[str]:
    """Return the calls that the page says repeat what was done."""
    return browser.evaluate("[...document.querySelectorAll('.recorded code')].map((each) => each.textContent)")


def give(browser: Chromium, name: str, value: str) -> None:
    """Type a value into the field of a parameter."""
    field = f"{PLAYER}.parameters.fields.get({PLAYER}.data.parameters.find((p) => p.name === '{name}').reference)"
    browser.evaluate(f"{{ const f = {field}; f.value = '{value}'; f.dispatchEvent(new Event('change')); }}")


def last(browser: Chromium) -> dict[str, float]:
    """Return the values of the plotted signals at the present time."""
    entries = f"[...{PLAYER}.signals.histories].map(([name, {{ y }}]) => [name, y[y.length - 1]])"
    return dict(browser.evaluate(entries))


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_pages_are_quiet_reachable_and_alone(browser: Chromium, four_bar_page: Path, width: int, dark: bool) -> None:
    begin(browser, four_bar_page, width, dark=dark)
    press(browser, "toggle")
    browser.until(f"{PLAYER}.time > 0.1")
    assert browser.said == []
    assert browser.asked == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("document.querySelector('.mbsfmu-scene').dataset.theme") == ("dark" if dark else "light")
    press(browser, "toggle")
    assert findings(browser) == []
    plot = f"{PLAYER}.signals.group.panels[0]"
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert browser.evaluate(f"{plot}.plot.width") == 660  # pixels, the width of paper
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    assert browser.evaluate(f"{plot}.plot.width === {plot}.field.clientWidth")


def test_keys_drive_it_and_what_was_done_is_replayed(
    driven: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps of the replay are the same; sines and powers of the two C libraries may differ in the last digit."""
    monkeypatch.chdir(tmp_path)
    angle = f"{PLAYER}.signals.histories.get('boom.angle').y"
    driven.key(" ")
    driven.until(f"{PLAYER}.time > 0.2")
    # Until steps have been made with the valve open as far as it goes, however few pictures a second there are.
    opened = f"{PLAYER}.inputs.all[0].value === 10 && {PLAYER}.time > (window.opened ??= {PLAYER}.time) + 0.05"
    hold(driven, "q", f"{opened} && {angle}[{angle}.length - 1] > 0.02")
    driven.until(f"{PLAYER}.inputs.all[0].value === 0")
    stop = pause(driven)
    found = last(driven)
    assert found["boom.angle"] > 0.02
    rows = np.loadtxt(saved(driven, tmp_path, "four-bar"), delimiter=",", skiprows=1)
    assert rows[:, 1].max() == 10.0  # V, as far as the valve goes
    assert rows[-1, 1] == 0.0
    (call,) = calls(driven)
    assert f'solver="trapezoidal", step={STEP})' in call
    replay = eval(call, {"model": mbsfmu.models.four_bar()})  # the page is ours
    assert replay.time[-1] == pytest.approx(stop, abs=0.5 * STEP)
    for name, value in found.items():
        assert value == pytest.approx(replay[name][-1], rel=0.0, abs=1e-10 * np.ptp(replay[name])), name


def test_what_is_set_before_the_first_step_is_what_a_run_begins_with(
    browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sampled controller of a user's, which reads its inputs and gains at the start, and holds what comes of them."""
    monkeypatch.chdir(tmp_path)
    model = controlled(sample=0.1, offset=0.0)
    mbsfmu.play(model, step=1e-2, values={"controller.integral": 0.0}).save("page.html")
    with opened(browser, tmp_path / "page.html"):
        for name in ("proportional", "integral"):
            give(browser, f"controller.{name}", "30")
        setpoint = f"{PLAYER}.inputs.all.find((each) => each.data.name === 'controller.setpoint')"
        for count, value in enumerate((0.5, 0.7)):
            browser.evaluate(f"{setpoint}.take({value})")
            press(browser, "step")
            browser.until(f"{PLAYER}.drawn === {PLAYER}.latest && {PLAYER}.time > {0.01 * (count + 0.5)}")
        shown = last(browser)
        table = np.loadtxt(saved(browser, tmp_path, "sampled"), delimiter=",", skiprows=1)
        (call,) = calls(browser)
    assert table[:, 0].tolist() == [0.0, 0.01]
    assert '"controller.proportional": 30' in call
    assert call.count("controller.integral") == 1  # in place of the value that the page was made with
    replay = eval(call, {"model": model})  # the page is ours
    assert shown
    for name, value in shown.items():
        assert value == pytest.approx(replay[name][-1], rel=1e-12), name


def test_the_circuit_shows_the_pressures_of_the_run(driven: Chromium) -> None:
    """They come to it by another way than to the plots."""
    names = ["V1.pressure", "V2.pressure", "V3.pressure"]
    driven.evaluate(f"{PLAYER}.signals.choose({json.dumps(names)})")
    driven.key(" ")
    hold(driven, "q", f"{PLAYER}.time > 0.3")
    pause(driven)
    labels = driven.evaluate("[...document.querySelectorAll('.pressure')].map((each) => each.textContent)")
    shown = {label[:2]: float(label[2:].split("\N{NO-BREAK SPACE}")[0]) for label in labels if label[0] == "V"}
    found = last(driven)
    assert shown == {name[:2]: pytest.approx(found[name] / 1e5, rel=5e-3) for name in names}
    assert len(set(shown.values())) == 3


def test_states_lead_to_the_same_end(driven: Chromium) -> None:
    press(driven, "toggle")
    driven.until(f"{PLAYER}.time > 0.1")
    at = pause(driven)
    press(driven, "save")
    driven.until("document.querySelectorAll('.states button').length === 2")
    ends = []
    for value in (3.0, 3.0, -3.0):
        driven.evaluate("document.querySelectorAll('.states button')[1].click()")
        driven.until(f"{PLAYER}.time === {at!r}")
        driven.evaluate(f"{PLAYER}.inputs.all[0].take({value})")
        for _ in range(20):
            press(driven, "step")
        driven.until(f"{PLAYER}.time > {at + 19.5 * STEP} && {PLAYER}.drawn === {PLAYER}.latest")
        ends.append(last(driven))
    assert ends[0] == ends[1]
    assert ends[0] != ends[2]


def test_a_fault_says_its_sentence_and_offers_reset(driven: Chromium) -> None:
    """A boom of 100 m closes no loop; what is refused by its bounds never reaches the run."""

    fault = "document.querySelector('.mbsfmu-play .fault')"
    start = driven.evaluate(f"{PLAYER}.data.parameters.find((p) => p.name === 'boom.length').start")
    give(driven, "boom.length", "-1")
    assert driven.evaluate("document.querySelectorAll('[aria-invalid=true]').length") == 1
    give(driven, "boom.length", "100")
    press(driven, "reset")
    driven.until(f"!{fault}.hidden")
    assert "loop" in driven.evaluate(f"{fault}.textContent")
    give(driven, "boom.length", str(start))
    driven.evaluate(f"{fault}.querySelector('button').click()")
    driven.until(f"{fault}.hidden")
    press(driven, "toggle")
    driven.until(f"{PLAYER}.time > 0.05")
    pause(driven)


def test_a_report_has_the_running_machine(browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the recorded motion, by one command; keys drive it while the pointer is there, and nowhere else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["mbsfmu", "simulate", "four-bar", "--stop", "0.5", "--report", "run.html", "--live", "--quiet"]
    )
    main()
    begin(browser, tmp_path / "run.html")
    assert browser.evaluate("document.querySelectorAll('h1').length") == 1
    assert browser.evaluate("document.querySelectorAll('.mbsfmu-scene').length") == 2
    browser.mouse("mouseMoved", 5, 5)
    press(browser, "toggle")
    browser.evaluate("document.activeElement.blur()")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="q", text="q")
    browser.until(f"{PLAYER}.time > 0.2")
    assert browser.evaluate(f"{PLAYER}.inputs.all[0].value") == 0.0
    browser.call("Input.dispatchKeyEvent", type="keyUp", key="q")
    browser.evaluate("document.querySelector('.mbsfmu-play .transport').scrollIntoView()")
    box = browser.evaluate(
        "(({ left, top }) => [left, top])(document.querySelector('.mbsfmu-play .controls').getBoundingClientRect())"
    )
    browser.mouse("mouseMoved", box[0] + 5, box[1] + 40)
    hold(browser, "q", f"{PLAYER}.inputs.all[0].value === 10")
    assert browser.said == []
    assert browser.asked == []
    press(browser, "toggle")
    assert findings(browser) == []


@pytest.mark.parametrize(
    "model", [ball_pendulum(), mbsfmu.models.slewing_four_bar(speed=4.0)], ids=lambda each: each.name
)
def test_poses_are_those_of_animations(browser: Chromium, tmp_path: Path, model: CoupledModel) -> None:
    """The traced kinematics, from variables of the FMU, against poses in Python from a run in process."""
    model = model.model_copy(update={"stop_time": 1.2})
    page = mbsfmu.play(model, solver="trapezoidal", step=1e-2)
    page.save(tmp_path / "page.html")
    begin(browser, tmp_path / "page.html")
    expected = model.simulation(solver="trapezoidal", step=1e-2).run(1.2).animate().payload
    poses = np.frombuffer(base64.b64decode(expected["runs"][0]["poses"]), "<f4")
    frames = poses.reshape(expected["time"]["count"], len(expected["bodies"]), 7)
    step = 1.2 / (expected["time"]["count"] - 1)
    for _ in range(50):
        press(browser, "step")
    browser.until(f"{PLAYER}.time > 0.495 && {PLAYER}.drawn === {PLAYER}.latest")
    found = browser.evaluate("Array.from(document.querySelector('.mbsfmu-scene').scene.runs[0].poses)")
    here = frames[round(0.5 / step)]
    signs = np.where(np.sum(np.reshape(found, (-1, 7))[:, 3:] * here[:, 3:], axis=1) < 0.0, -1.0, 1.0)
    here = np.concatenate([here[:, :3], here[:, 3:] * signs[:, None]], axis=1)
    np.testing.assert_allclose(np.reshape(found, (-1, 7)), here, atol=1e-6)
    assert np.ptp(frames, axis=0).max() > 0.1
    assert browser.said == []


def test_a_machine_is_followed_where_it_goes_and_so_is_its_pressure(driven: Chromium) -> None:
    """Until somebody has chosen a view."""
    scene = f"{PLAYER}.scene()"

    def height(up: float) -> float:
        """Return the height of the machine in the picture, from -1 to 1, as it is so many m higher."""
        raised = f"for (let k = 1; k < poses.length; k += 12) poses[k] += {up};"
        shown = "scene.lookedAt = 0; scene.show(0, [poses], { [Object.keys(scene.runs[0].pressures)[0]]: 512 });"
        box = "new THREE.Box3().setFromObject(scene.runs[0].object).getCenter(new THREE.Vector3())"
        place = f"scene.camera.updateMatrixWorld(); return {box}.project(scene.camera).y;"
        return driven.evaluate(
            f"(() => {{ const scene = {scene}, poses = {PLAYER}.latest.poses.slice(); {raised} {shown} {place} }})()"
        )

    assert abs(height(3.0)) < 1.0
    assert "512 bar, grid" in driven.evaluate(f"{scene}.legend.textContent")
    driven.evaluate(f"{scene}.zoom(1.0)")
    assert height(15.0) > 1.0
    driven.evaluate(f"{scene}.panel.fit.click()")
    assert abs(height(15.0)) < 1.0


HOST = """<!doctype html><meta charset="utf-8"><div id="cell"></div><script type="module">
const state = {page}, heard = {{}};
window.model = {{
  get: (name) => state[name],
  set: (name, value) => (state[name] = value),
  save_changes: () => (window.saved = (window.saved ?? 0) + 1),
  on: (name, call) => (heard[name] = call),
  off: (name) => delete heard[name],
  change: (name, value) => {{ state[name] = value; heard[`change:${{name}}`]?.(); }},
}};
{esm}
window.clean = widget.render({{ model, el: document.getElementById("cell") }});
</script>"""


def test_a_notebook_reads_and_sets_what_the_machine_does(browser: Chromium, tmp_path: Path) -> None:
    """The script of the widget in a page that has, as notebooks have, a model with the widget's values."""
    pytest.importorskip("anywidget")
    widget = mbsfmu.play(mbsfmu.models.four_bar(), step=1e-3).widget()
    state = {name: getattr(widget, name) for name in ("title", "page", "height", "wanted", "signals")}
    text = json.dumps(state).replace("<", "\\u003c")
    esm = widget._esm
    host = HOST.format(page=text, esm=str(esm).replace("export default", "const widget ="))
    (tmp_path / "cell.html").write_text(host, encoding="utf-8")
    browser.open(tmp_path / "cell.html")
    browser.until("window.saved > 0 && model.get('values') !== undefined")
    browser.until("Object.keys(model.get('values')).length > 0")
    player = "document.querySelector('iframe').contentDocument.querySelector('.mbsfmu-play').player"
    browser.evaluate("model.change('wanted', {'valve.command': 4})")
    browser.evaluate("model.change('signals', ['valve.spool', 'no.such'])")
    browser.evaluate(f"{player}.run()")
    browser.until("model.get('values')['valve.spool'] > 3.9")
    assert browser.evaluate("Object.keys(model.get('values'))") == ["valve.spool"]
    assert browser.evaluate("model.get('inputs')['valve.command']") == 4
    assert browser.evaluate("model.get('time')") > 0.05
    browser.evaluate("clean(); window.saved = 0")
    browser.evaluate("new Promise((done) => setTimeout(done, 500))")
    assert browser.evaluate("window.saved") == 0
    assert browser.said == []
    with pytest.raises(mbsfmu.InputError, match=r"there is no input 'valve\.comand' in the page; did you mean"):
        widget.set({"valve.comand": 1.0})
    with pytest.raises(mbsfmu.InputError, match=r"there is no signal 'boom\.angel' in the page"):
        widget.plot("boom.angel")
    widget.plot("boom.angle")
    assert widget.signals == ["boom.angle"]
    wanted: list[object] = []
    widget.observe(lambda change: wanted.append(change["new"]), "wanted")
    widget.set({"valve.command": 2})
    assert wanted[0] == {"valve.command": 2.0}


def test_reports_without_a_machine_refuse_a_running_one(tmp_path: Path) -> None:
    live = mbsfmu.play(mbsfmu.models.four_bar(), step=1e-3)
    study = mbsfmu.models.pendulum(1).linearize()
    with pytest.raises(
        mbsfmu.InputError, match="the report of a LinearSystem has no running machine; those of Result and"
    ):
        mbsfmu.write_report(study, tmp_path / "x.html", mbsfmu.Circumstances(live=live))


def test_what_cannot_be_played_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = mbsfmu.models.pendulum(1)
    with pytest.raises(mbsfmu.InputError, match="check error has no effect in a page"):
        mbsfmu.play(model, check_error=True)
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))
    monkeypatch.setattr(compiler, "_zig", lambda: None)
    with pytest.raises(
        mbsfmu.InputError, match=r"for wasm32 .* extra 'cross' is needed: pip install 'mbsfmu\[cross\]'"
    ):
        mbsfmu.play(model)


def test_fewer_pixels_are_drawn_while_pictures_come_slowly(browser: Chromium, four_bar_page: Path) -> None:
    """Of a screen with two along each side of a page's pixel; and all of them once the machine rests."""
    begin(browser, four_bar_page)
    browser.call("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=2, mobile=False)
    browser.call("Page.reload")
    browser.until("Boolean(document.querySelector('.mbsfmu-play')?.player?.latest)")
    scene = "document.querySelector('.mbsfmu-scene').scene"
    ratio = f"{scene}.renderer.getPixelRatio()"
    browser.until(f"{ratio} === 2")

    def show(every: int) -> str:
        pictures = f"{scene}.shownAt = performance.now() - {every}; {scene}.show(0, [{PLAYER}.latest.poses], {{}});"
        return f"for (let k = 0; k < 60; k += 1) {{ {pictures} }}"

    found = browser.evaluate(f"{{ {show(10)} }} {ratio}"), browser.evaluate(f"{{ {show(100)} }} {ratio}")
    coarsest = {"card": 1, "processor": 0.7}[browser.evaluate(f"{scene}.drawer")]
    assert found == (2, coarsest)
    browser.until(f"{ratio} === 2")
    assert browser.evaluate(f"{{ {show(100)} }} {ratio}") == coarsest  # as before the rest
    browser.until(f"{ratio} === 2")
    assert browser.said == []
