"""Chromium without a window, driven over a pipe: what a page shows, says and asks for."""

from __future__ import annotations

import base64
import json
import os
import select
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60.0  # s, on a machine that has other things to do
_FLAGS = (
    "--headless=new --remote-debugging-pipe --no-sandbox --disable-dev-shm-usage --no-first-run --disable-extensions "
    "--disable-background-networking --disable-component-update --hide-scrollbars --use-gl=angle "
    "--use-angle=swiftshader --enable-unsafe-swiftshader --force-color-profile=srgb"
)


class Chromium:
    """A browser; `tab` is its one tab, which `open` gives to page after page."""

    def __init__(self, executable: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="mbsfmu-", ignore_cleanup_errors=True)
        there, self._out = os.pipe()
        self._in, back = os.pipe()
        command = (
            f"exec {shlex.quote(executable)} {_FLAGS} --user-data-dir={shlex.quote(self._folder.name)} about:blank"
        )
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", f"{command} 3<&{there} 4>&{back}"],
            pass_fds=(there, back),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(there)
        os.close(back)
        self._count, self._rest, self._session = 0, b"", ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    @classmethod
    def found(cls) -> Self:
        """Start the browser of this machine; skip the test where there is none."""
        executable = next(filter(None, map(shutil.which, NAMES)), None)
        if executable is None or os.name != "posix":
            pytest.skip("there is no Chromium on this machine")
        return cls(executable)

    def close(self) -> None:
        """End it."""
        self._session = ""
        self.call("Browser.close")
        self._process.wait(PATIENCE)
        os.close(self._out)
        os.close(self._in)
        self._folder.cleanup()

    # -- the protocol ---------------------------------------------------------------------------------------

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol and return its result; events on the way are kept."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(until - time.monotonic(), 0.0))
            assert ready, "the browser does not answer"
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser has ended"
            self._rest += piece
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)

    # -- pages ----------------------------------------------------------------------------------------------

    def open(self, path: Path, width: int = 1280, height: int = 900, *, dark: bool = False) -> None:
        """Open a file as a screen or, where it is narrow, a phone shows it, and wait until it is drawn."""
        phone = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in JavaScript; that of a promise when it is kept."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            assert time.monotonic() < end, f"still not so: {condition}"
            time.sleep(0.02)

    def mouse(self, kind: str, x: float, y: float, **given: Any) -> None:
        """Move the pointer, press or release it: `mouseMoved`, `mousePressed`, `mouseReleased`, `mouseWheel`."""
        button = {} if kind == "mouseMoved" and not given.get("buttons") else {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **{**button, **given})

    def drag(self, start: tuple[float, float], end: tuple[float, float], **given: Any) -> None:
        """Drag from one place in pixels to another."""
        self.mouse("mouseMoved", *start, **given)
        self.mouse("mousePressed", *start, **given)
        for share in (0.3, 0.7, 1.0):
            x, y = (a + share * (b - a) for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y, buttons=1, **given)
        self.mouse("mouseReleased", *end, **given)

    def key(self, name: str, **given: Any) -> None:
        """Press and release a key."""
        text = {"text": name} if len(name) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, **text, **given)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, **given)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Take a picture of what is in the window, or of the whole page."""
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    @property
    def said(self) -> list[str]:
        """What the page has said on the console since it was opened, and what went wrong."""
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event["method"] == "Runtime.consoleAPICalled":
                found.append(" ".join(str(each.get("value", "")) for each in parameters["args"]))
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(parameters["exceptionDetails"])[:500])
            elif event["method"] == "Log.entryAdded":
                found.append(parameters["entry"]["text"])
        return found

    @property
    def asked(self) -> list[str]:
        """What the page has asked for beside itself and what is inside of it."""
        addresses = [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]
        return [each for each in addresses[1:] if not each.startswith(("data:", "blob:"))]
