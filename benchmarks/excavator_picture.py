"""Make docs/excavator.webp, the moving picture of the excavator at work, from a run of examples/excavator.py.

Needs Chromium and Pillow. Run: python benchmarks/excavator_picture.py
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests")]

from chromium import Chromium  # noqa: E402
from excavator import excavator  # noqa: E402

WIDTH, HEIGHT = 720, 405  # pixels
FRAMES, SPEED = 12.0, 2.0  # a second of the picture; seconds of the machine in one of the picture
QUALITY = 55
BARE = """
document.head.append(Object.assign(document.createElement('style'), {textContent:
  'h1, .panel {display: none !important} main, .mbsfmu-scene {padding: 0 !important; margin: 0 !important;' +
  'max-width: none !important} .mbsfmu-scene .picture {height: 100vh !important; border: 0 !important;' +
  'border-radius: 0 !important; background: #e9eef3 !important}'}));
const scene = document.querySelector('.mbsfmu-scene').scene;
scene.pause();
scene.panel.boxes.arrows.checked = false;
scene.traceOf('bucket.teeth');
"""


def main() -> None:
    """Simulate, take the pictures, and write them as one."""
    model = excavator()
    animation = model.simulation(step=2e-3).run().animate()
    times = np.arange(0.0, model.stop_time, SPEED / FRAMES)
    with tempfile.TemporaryDirectory() as folder:
        page, shot = Path(folder) / "page.html", Path(folder) / "shot.png"
        animation.save(page)
        browser = Chromium.found()
        browser.open(page, WIDTH, HEIGHT)
        browser.evaluate(BARE)
        browser.evaluate("new Promise((done) => setTimeout(done, 500))")
        pictures = []
        for time in times:
            browser.evaluate(f"scene.seek({time}); new Promise((done) => requestAnimationFrame(() => done()))")
            browser.screenshot(shot)
            pictures.append(Image.open(io.BytesIO(shot.read_bytes())).convert("RGB"))
        browser.close()
    path = ROOT / "docs" / "excavator.webp"
    settings = {"save_all": True, "append_images": pictures[1:], "duration": round(1000 / FRAMES), "loop": 0}
    pictures[0].save(path, quality=QUALITY, method=6, **settings)
    print(f"{path.name}: {len(pictures)} pictures, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
