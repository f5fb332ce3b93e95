"""Make pictures of pages in docs/guides: of played machines, coupled ones, live FMUs, and the report of a run.

Needs Chromium and the extras 'cross' and 'live'. Run: python benchmarks/play_pictures.py [part of a name …]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests")]

from chromium import Chromium  # noqa: E402
from excavator import excavator  # noqa: E402

import mbsfmu  # noqa: E402

Take = Callable[[], None]
PLAYER = "document.querySelector('.mbsfmu-play').player"


def drive(browser: Chromium, keys: str, seconds: float) -> None:
    """Hold one key after the other for some s of wall-clock time, then pause."""
    browser.until(f"Boolean({PLAYER}?.latest && {PLAYER}.signals)")
    browser.evaluate(f"{PLAYER}.actions.toggle()")
    for key in keys:
        browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        time.sleep(seconds)
        browser.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        browser.evaluate(f"{PLAYER}.actions.save()")
    browser.evaluate(f"{PLAYER}.actions.pause()")
    time.sleep(2.0)  # after which all pixels are drawn


def taken(browser: Chromium, name: str) -> None:
    """Write what the window shows to the guides."""
    path = ROOT / "docs" / "guides" / name
    browser.screenshot(path)
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")


def play_excavator(browser: Chromium, folder: Path, take: Take) -> None:
    """Drive the excavator by its levers."""
    mbsfmu.play(excavator(), step=2e-3).save(folder / "excavator.html")
    browser.open(folder / "excavator.html", 1280, 1000)
    drive(browser, "qse", 1.5)
    take()


def play_phone(browser: Chromium, folder: Path, take: Take) -> None:
    """Drive the four-bar on a dark phone."""
    mbsfmu.play(mbsfmu.models.four_bar()).save(folder / "four-bar.html")
    browser.open(folder / "four-bar.html", 390, 844, dark=True)
    drive(browser, "q", 2.0)
    take()


def live_four_bar(browser: Chromium, folder: Path, take: Take) -> None:
    """Drive the four-bar as two coupled FMUs."""
    mbsfmu.export(mbsfmu.models.four_bar(), folder / "out", layout="separate")
    command = [sys.executable, "-m", "mbsfmu", "live", "out/four-bar.ssp", "--step", "1e-3", "--no-browser", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        assert process.stdout is not None
        browser.call("Emulation.setDeviceMetricsOverride", width=1280, height=1000, deviceScaleFactor=1, mobile=False)
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        browser.call("Page.navigate", url=process.stdout.readline().strip())
        browser.until("Boolean(document.querySelector('.mbsfmu-play'))")
        drive(browser, "q", 3.0)
        take()
        process.terminate()


def play_coupled(browser: Chromium, folder: Path, take: Take) -> None:
    """Drive the four-bar and its coupled FMUs, side by side."""
    mbsfmu.play(
        mbsfmu.models.four_bar(), algorithms=["jacobi", "gauss-seidel-linear"], communication_steps=[4e-3, 2e-3, 1e-3]
    ).save(folder / "four-bar.html")
    browser.open(folder / "four-bar.html", 1280, 1000)
    beside = "[...document.querySelectorAll('label')].find((e) => e.textContent === 'side by side')"
    browser.evaluate(f"{beside}.querySelector('input').click()")
    drive(browser, "q", 2.0)
    take()


def report_run(browser: Chromium, folder: Path, take: Take) -> None:
    """Show the report of the crane in the middle of its run."""
    run = mbsfmu.models.built_in("crane").simulation().run(3.0)
    browser.open(mbsfmu.write_report(run, folder / "crane.html"), 1280, 1500)
    browser.evaluate("document.querySelector('.mbsfmu-scene').scene.seek(1.7)")
    time.sleep(1.0)
    take()


PICTURES = {
    "play-excavator": play_excavator,
    "play-phone": play_phone,
    "live-four-bar": live_four_bar,
    "report-run": report_run,
    "play-coupled": play_coupled,
}


def main() -> None:
    """Write the pages, drive them, and take the pictures, or those whose names have one of some parts."""
    wanted = sys.argv[1:] or [""]
    browser = Chromium.found()
    for name, show in PICTURES.items():
        if any(part in name for part in wanted):
            with tempfile.TemporaryDirectory() as folder:
                show(browser, Path(folder), lambda name=name: taken(browser, f"{name}.png"))
    browser.close()


if __name__ == "__main__":
    main()
