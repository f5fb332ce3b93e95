"""Make docs/guides/play-excavator.png and play-phone.png, pages of `mbsfmu play` as they are driven.

Needs Chromium and the extra 'cross'. Run: python benchmarks/play_pictures.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests")]

from chromium import Chromium  # noqa: E402
from excavator import excavator  # noqa: E402

import mbsfmu  # noqa: E402

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
    browser.evaluate(f"{PLAYER}.tell('record', {{ for: 'words' }})")
    time.sleep(1.0)


def taken(browser: Chromium, name: str) -> None:
    """Write what the window shows to the guides."""
    path = ROOT / "docs" / "guides" / name
    browser.screenshot(path)
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")


def main() -> None:
    """Write the pages, drive them, and take the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        browser = Chromium.found()
        mbsfmu.play(excavator(), step=2e-3).save(folder / "excavator.html")
        browser.open(folder / "excavator.html", 1280, 1000)
        drive(browser, "qse", 1.5)
        taken(browser, "play-excavator.png")
        mbsfmu.play(mbsfmu.models.four_bar()).save(folder / "four-bar.html")
        browser.open(folder / "four-bar.html", 390, 844, dark=True)
        drive(browser, "q", 2.0)
        taken(browser, "play-phone.png")
        browser.close()


if __name__ == "__main__":
    main()
