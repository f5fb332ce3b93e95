"""Coupled FMUs live: what a page does to the run is replayed by a plain one; who has no token gets nothing."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accessibility import findings
from chromium import Chromium

import mbsfmu
from mbsfmu.view.live import live_server
from mbsfmu.view.live.live_run import LiveRun
from mbsfmu.view.live.live_server import HOST, Messages, serve

aiohttp = pytest.importorskip("aiohttp")
PLAYER = "document.querySelector('.mbsfmu-play').player"
COMMAND = "circuit.valve.command"
STEP = 2e-3
PATIENCE = 60.0


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live")
    return mbsfmu.export(mbsfmu.models.four_bar(), folder, layout="separate", step=STEP)[-1]


class Driver:
    """A live run, and what it tells."""

    def __init__(self, package: Path, **given: Any) -> None:
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()

        def make(values: Any, resume: Path | None) -> mbsfmu.Cosimulation:
            options = {"step": STEP, "stop": 5.0, **given}
            return mbsfmu.Cosimulation(package, parameters=values, resume=resume, **options)

        self.run = LiveRun(make, self.told.put, lambda: False)
        self.variables, self.picture = self.run.start()
        self.steps = 0

    def ask(self, what: str, **more: Any) -> None:
        self.run.ask(json.dumps({"do": what, **more}))

    def hear(self, kind: str) -> dict[str, Any]:
        """Return the next message of a kind."""
        while (message := self.told.get(timeout=PATIENCE))["kind"] != kind:
            pass
        return message

    def step(self, count: int) -> dict[str, Any]:
        """Make some steps; return what is told behind the last one."""
        self.steps += count
        for _ in range(count):
            self.ask("step")
        while (message := self.hear("picture"))["steps"] < self.steps:
            pass
        return message


@pytest.fixture
def driver(package: Path) -> Iterator[Driver]:
    made = Driver(package)
    yield made
    made.run.end()


def place(variables: list[dict[str, Any]], name: str) -> int:
    return next(each["reference"] for each in variables if each["name"] == name)


def test_what_a_page_does_is_replayed_by_a_scenario(driver: Driver, package: Path, tmp_path: Path) -> None:
    """The same steps, the same inputs, the same numbers."""
    names = ["mechanism.boom.angle", "circuit.cylinder.pressure_piston"]
    driver.ask("signals", references=[place(driver.variables.signals, each) for each in names])
    index = place(driver.variables.inputs, COMMAND)
    driver.ask("record", **{"for": "csv"})
    assert driver.hear("record")["rows"] == [[0.0, None]]  # it follows the signal inside its FMU
    driver.ask("input", index=index, value=5.0)
    driver.step(100)
    driver.ask("input", index=index, value=-2.0)
    last = driver.step(150)
    driver.ask("record", **{"for": "csv"})
    record = driver.hear("record")
    assert record["time"] == pytest.approx(250 * STEP)
    assert [row[1 + index] for row in record["rows"]] == [5.0, -2.0]
    head = ["time", *(each["name"] for each in driver.variables.inputs)]
    text = "\n".join(",".join(map(str, row)) for row in [head, *record["rows"]])
    (tmp_path / "inputs.csv").write_text(f"{text}\n", encoding="utf-8")
    plain = mbsfmu.cosimulate(package, step=STEP, stop=record["time"], scenario=tmp_path / "inputs.csv")
    assert last["samples"][-1][1:] == [plain[each][-1] for each in names]
    assert abs(plain["mechanism.boom.angle"][-1]) > 1e-3


def test_bodies_are_where_animations_have_them(driver: Driver, package: Path) -> None:
    driver.ask("input", index=place(driver.variables.inputs, COMMAND), value=8.0)
    poses = driver.step(200)["poses"]
    plain = mbsfmu.cosimulate(package, step=STEP, stop=200 * STEP, scenario={0.0: {COMMAND: 8.0}})
    payload = plain.animate().payload
    frames = np.frombuffer(base64.b64decode(payload["runs"][0]["poses"]), "<f4").reshape(-1, len(payload["bodies"]), 7)
    assert np.ptp(frames[:, :, :3], axis=0).max() > 0.01
    for body, (*origin, x, y, z, w) in enumerate(frames[-1].tolist()):
        np.testing.assert_allclose(poses[12 * body :][:3], origin, atol=1e-5)
        first = [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)]
        np.testing.assert_allclose(poses[12 * body + 3 :][:3], first, atol=1e-5)


def test_saved_states_lead_to_the_same_end(driver: Driver) -> None:
    references = [place(driver.variables.signals, "mechanism.boom.angle")]
    driver.ask("signals", references=references)
    index = place(driver.variables.inputs, COMMAND)
    driver.ask("input", index=index, value=6.0)
    driver.step(100)
    driver.ask("save", id=1)
    assert driver.hear("saved")["time"] == pytest.approx(100 * STEP)
    first = driver.step(60)["samples"][-1]
    driver.ask("input", index=index, value=-6.0)
    driver.step(40)
    driver.ask("restore", id=1)
    driver.steps = 0
    restored = driver.hear("restored")
    assert (restored["time"], restored["inputs"][index]) == (pytest.approx(100 * STEP), 6.0)
    second = driver.step(60)["samples"][-1]
    assert second == first
    driver.ask("reset")
    driver.hear("restarted")
    assert driver.hear("picture")["time"] == 0.0


def test_parameters_count_at_once_or_from_a_reset_on(driver: Driver, package: Path) -> None:
    signal_of = [place(driver.variables.signals, "mechanism.boom.angle")]
    mass = driver.variables.parameters[place(driver.variables.parameters, "mechanism.boom.length")]
    assert mass["fixed"]
    driver.ask("signals", references=signal_of)
    driver.ask("parameter", reference=mass["reference"], value=mass["start"] * 1.05)
    driver.ask("reset")
    driver.hear("restarted")
    changed = driver.step(20)["samples"][-1][1]
    plain = mbsfmu.cosimulate(
        package, step=STEP, stop=20 * STEP, parameters={"mechanism.boom.length": mass["start"] * 1.05}
    )
    assert changed == plain["mechanism.boom.angle"][-1]


def test_refusals_and_faults_are_told_and_a_reset_goes_on(package: Path) -> None:
    made = Driver(package, stop=0.02)
    try:
        made.ask("parameter", reference=place(made.variables.parameters, "circuit.valve.time_constant"), value=-1.0)
        assert "valve.time_constant = -1 s is refused" in made.hear("log")["sentence"]
        made.ask("input", index=99, value=1.0)
        assert "there is no input 99" in made.hear("log")["sentence"]
        made.ask("run", speed=None)
        assert "the run has ended" in made.hear("fault")["sentence"]
        made.ask("reset")
        made.hear("restarted")
        assert made.hear("picture")["time"] == 0.0
    finally:
        made.run.end()


REFUSED = (
    ('{"do": "restore", "id": 7}', "there is no saved state 7; there are 0"),
    ('{"do": "restore"}', "the id is None; it must be a whole number"),
    ('{"do": "signals", "references": [999]}', "there is no signal 999"),
    ('{"do": "signals", "references": [-1]}', "the reference is -1; it must be a whole number"),
    ('{"do": "signals", "references": "all"}', "the signals 'all'; they are a list of numbers"),
    ('{"do": "run", "speed": NaN}', "the speed is nan; it must be a finite number"),
    ('{"do": "run", "speed": -1}', "the speed is -1; it must be above zero"),
    ('{"do": "run", "speed": "fast"}', "the speed is 'fast'; it must be a finite number"),
    ('{"do": "input", "index": 0, "value": null}', "the value is None; it must be a finite number"),
    ('{"do": "input", "index": true, "value": 1}', "the index is True; it must be a whole number"),
    ('{"do": "parameter", "reference": 1e3, "value": 1}', "the reference is 1000.0; it must be a whole number"),
    ('{"do": "save", "id": "../../out"}', "the id is '../../out'; it must be a whole number"),
    ('{"do": "record", "for": [[]]}', "'for' is [[]]; it must be a text"),
    ('{"do": "fly"}', "the page asks for 'fly', which a run cannot do"),
    ('{"do": ["run"]}', "the page asks for ['run'], which a run cannot do"),
    ("[1, 2]", "the page sends [1, 2]; a request is a JSON object"),
    ("no json", "the page sends what is no JSON"),
    ("[" * 100_000, "the page sends what is no JSON"),
)


def test_requests_that_no_page_of_ours_sends_are_refused_each_in_a_sentence(driver: Driver) -> None:
    for text, sentence in REFUSED:
        driver.run.ask(text)
        assert sentence in driver.hear("log")["sentence"]
    assert driver.step(2)["steps"] == 2
    assert driver.run.failure is None


def test_a_thread_that_dies_ends_the_program_with_a_sentence(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it dies of, before the page is there or while it is."""
    monkeypatch.setattr(LiveRun, "_step", lambda _: {}["what nobody foresaw"])
    served = Driver(package)
    addresses: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: (addresses.get(timeout=PATIENCE), served.ask("step"))).start()
    with pytest.raises(mbsfmu.SimulationError, match="the live run has ended: 'what nobody foresaw'"):
        serve(served.run, lambda: "the page", Messages(), port=0, opened=addresses.put)
    served.run.end()
    monkeypatch.setattr(LiveRun, "_begin", lambda *_, **__: {}["what nobody foresaw"])
    with pytest.raises(KeyError):
        Driver(package)


def test_what_is_no_http_is_answered_without_a_traceback(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    addresses: queue.Queue[str] = queue.Queue()
    thread = threading.Thread(
        target=serve,
        args=(driver.run, lambda: "the page", Messages()),
        kwargs={"port": 0, "opened": addresses.put},
    )
    thread.start()
    address = addresses.get(timeout=PATIENCE)
    port = int(address.partition("/?")[0].rpartition(":")[2])
    for text in (b"\x16\x03\x01 no http\r\n\r\n", b"GET / HTTP/9.9\r\nHost: \xff\r\n\r\n", b"GET /" + b"a" * 99_999):
        with socket.create_connection((HOST, port)) as sent, contextlib.suppress(ConnectionError):
            sent.sendall(text)
            sent.recv(100)
    assert caplog.text == ""

    async def leave() -> None:
        async with aiohttp.ClientSession() as session, session.ws_connect(address.replace("/?", "/run?")):
            pass

    asyncio.run(leave())
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_what_cannot_begin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(mbsfmu.InputError, match=r"none\.ssp"):
        mbsfmu.live(tmp_path / "none.ssp", browser=False)


def test_only_the_page_with_the_token_drives(driver: Driver) -> None:
    """By the loopback and the printed address alone; a second page is told, and the run ends with the first."""
    addresses: queue.Queue[str] = queue.Queue()
    messages = Messages()
    thread = threading.Thread(
        target=serve,
        args=(driver.run, lambda: "the page", messages),
        kwargs={"port": 0, "opened": addresses.put},
    )
    thread.start()
    address = addresses.get(timeout=PATIENCE)
    base, _, token = address.partition("/?token=")
    assert base.startswith(f"http://{HOST}:")
    assert len(token) >= 32

    async def visit() -> None:
        async with aiohttp.ClientSession() as session:

            async def status(url: str, **headers: str) -> int:
                async with session.get(url, headers=headers) as answer:
                    return answer.status

            assert await status(address) == 200
            assert await status(f"{base}/") == 403
            assert await status(f"{base}/?token={token[:-1]}x") == 403
            assert await status(f"{base}/run") == 403
            assert await status(address, Host="evil.example") == 403
            assert await status(address, Origin="http://evil.example") == 403
            async with session.ws_connect(f"{base}/run?token={token}") as first:
                async with session.ws_connect(f"{base}/run?token={token}") as second:
                    closed = await second.receive()
                    assert closed.type is aiohttp.WSMsgType.CLOSE
                    assert "another page drives this run" in closed.extra
                await first.send_str("no json")
                await first.send_json({"do": "start"})

    asyncio.run(visit())
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_python_of_the_guide_runs(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to where the page is served, and with the page that is served."""
    page = (Path(__file__).parents[2] / "docs" / "guides" / "live.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "out").symlink_to(package.parent)
    monkeypatch.chdir(tmp_path)
    served: list[str] = []
    monkeypatch.setattr(live_server, "serve", lambda run, page, *_, **__: served.append(page()))
    exec(code, {})  # the guide is ours
    assert COMMAND in served[0]
    assert "connect-src 'self'" in served[0]
    assert "wasm" not in served[0].partition("<title>")[0]


@pytest.fixture
def session(package: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address that it prints."""
    command = [sys.executable, "-m", "mbsfmu", "live", str(package), "--step", f"{STEP}", "--no-browser", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


def test_the_page_is_quiet_and_drives_until_ctrl_c(
    session: tuple[subprocess.Popen[str], str], browser: Chromium
) -> None:
    process, address = session
    for width, dark in ((1280, False), (390, True)):
        browser.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.call("Emulation.setEmulatedMedia", features=[scheme])
        browser.events.clear()
        browser.call("Page.navigate", url=address)
        browser.until(f"Boolean(document.querySelector('.mbsfmu-play')?.player?.latest && {PLAYER}.signals)")
        browser.evaluate(f"{PLAYER}.run()")
        browser.evaluate(f"{PLAYER}.inputs.all[0].take(5)")
        angle = f"{PLAYER}.signals.histories.get('mechanism.boom.angle').y"
        browser.until(f"{angle}[{angle}.length - 1] > 1e-3")
        labels = "[...document.querySelectorAll('.pressure')].map((each) => each.textContent).join(' ')"
        pressures = f"{PLAYER}.latest.circuit.map((value) => (value / 1e5).toPrecision(3))"
        browser.evaluate(f"{PLAYER}.actions.pause()")
        browser.until(f"{PLAYER}.root.dataset.state === 'paused' && {PLAYER}.drawn === {PLAYER}.latest")
        shown = [float(each) for each in re.findall(r"V\d([\d.]+)\u00a0bar", browser.evaluate(labels))]
        assert len(shown) == 3
        assert set(shown) <= set(map(float, browser.evaluate(pressures)))
        # Oil did not flow at the start, from which the scale came.
        assert browser.evaluate("document.querySelector('.mbsfmu-circuit').circuit.data.most") > 1e-5  # m³/s
        assert browser.said == []
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert findings(browser) == []
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    browser.until("document.querySelector('.status').textContent.includes('has ended')")
    browser.call("Page.navigate", url="about:blank")


def test_it_ends_with_its_page(session: tuple[subprocess.Popen[str], str], browser: Chromium) -> None:
    process, address = session
    browser.call("Page.navigate", url=address)
    browser.until("Boolean(document.querySelector('.mbsfmu-play')?.player?.latest)")
    browser.call("Page.reload")
    time.sleep(0.5)
    browser.until("Boolean(document.querySelector('.mbsfmu-play')?.player?.latest)")
    assert process.poll() is None, "a page that is loaded anew ends nothing"
    browser.call("Page.navigate", url="about:blank")
    assert process.wait(PATIENCE) == 0
