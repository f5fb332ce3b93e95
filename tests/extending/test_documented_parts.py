"""What the guides on parts of one's own say works as it is written there.

They are docs/guides/own-component.md , docs/guides/own-force.md , docs/guides/own-joint.md , docs/guides/own-block.md .
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
from started import run_python

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
PAGES = ("own-component.md", "own-force.md", "own-joint.md", "own-block.md", "own-parts.md")
PAGE = "\n".join((GUIDES / name).read_text(encoding="utf-8") for name in PAGES)

FILES = ("slow_check_valve.py", "charging.py", "drag.py", "stone.py", "slot.py", "yoke.py", "oven.py", "heated.py")
"""What the Python of the page is called."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python(*arguments, folder=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("parts")
    for name, text in zip(FILES, blocks("python"), strict=True):
        (made / name).write_text(text)
    return made


def test_component_of_the_page_is_used_as_it_says(folder: Path) -> None:
    """At rest the flows of the open check valve, √Δp of its coefficient, and of the leak are the same."""
    done = run(folder, "charging.py")
    assert done.returncode == 0, done.stderr
    valve, leak = 4e-7, 0.7 * np.pi / 4.0 * 1e-6 * np.sqrt(2.0 / 850.0)
    low, high = 1e5, 1e7
    for _ in range(100):  # valve and leak apart: bisect the balance of flows, lift and laminar flow included
        pressure = 0.5 * (low + high)
        drop = 1e7 - pressure
        lift = min(max((drop - 2e5) / 4e5, 0.0), 1.0)
        flow = valve * lift * drop / np.sqrt(max(drop, 2e5)) - leak * np.sqrt(pressure - 1e5)
        low, high = (pressure, high) if flow > 0.0 else (low, pressure)
    assert done.stdout == f"{pressure / 1e5:.1f} bar\n"
    commands = [shlex.split(line) for line in blocks("sh")[0].splitlines()]
    for program, *arguments in commands:
        assert program == "mbsfmu"
        done = run(folder, "-m", "mbsfmu", "--quiet", *arguments)
        done = done if done.returncode == 0 else run(folder, "-m", "mbsfmu", *arguments)
        assert done.returncode == 0, done.stderr
    assert (folder / "units" / "charging.fmu").is_file()


def test_refusal_of_the_page_is_what_is_said(folder: Path, tmp_path: Path) -> None:
    text = (folder / "slow_check_valve.py").read_text()
    line = "        spring = now"
    assert line in text
    (tmp_path / "slow_check_valve.py").write_text(
        text.replace(line, "        if drop > 0.0:\n            pass\n" + line)
    )
    (tmp_path / "charging.py").write_text((folder / "charging.py").read_text())
    done = run(tmp_path, "charging.py")
    assert (
        blocks("text")[0].strip().replace("slow_check_valve.py", f"{tmp_path / 'slow_check_valve.py'}") in done.stderr
    )


def test_force_of_the_page_is_used_as_it_says(folder: Path) -> None:
    """A stone falls with v = v∞ tanh(g t / v∞); the drag is that of its speed."""
    done = run(folder, "stone.py")
    assert done.returncode == 0, done.stderr
    most = np.sqrt(0.5 * 9.81 / (0.5 * 1.2 * 0.02))
    speed, size, drift = (float(each.split()[0]) for each in done.stdout.split(","))
    assert speed == pytest.approx(most * np.tanh(9.81 * 3.0 / most), abs=2e-4)
    assert size == pytest.approx(0.5 * 1.2 * 0.02 * speed**2, rel=1e-4)
    assert abs(drift) < 1e-4


def test_joint_of_the_page_is_used_as_it_says(folder: Path) -> None:
    """The yoke is where the cosine of the crank's angle says; angle by energy, (J + m r² sin² φ) φ̇² = J φ̇₀²."""
    done = run(folder, "yoke.py")
    assert done.returncode == 0, done.stderr
    angle, displacement = (float(each.split()[0]) for each in done.stdout.split(","))
    assert displacement == pytest.approx(0.2 * np.cos(angle), abs=2e-6)
    inertia = 1.0 * 0.2**2 / 3.0
    angles = np.linspace(0.0, angle, 20001)
    slowness = np.sqrt(1.0 + 0.8 * 0.2**2 * np.sin(angles) ** 2 / inertia) / 8.0
    assert np.trapezoid(slowness, angles) == pytest.approx(1.0, abs=2e-5)


def test_block_of_the_page_is_used_as_it_says(folder: Path) -> None:
    """From instant to instant x becomes a x + (1 − a) k p (w − x), a = exp(−T/τ): a geometric sequence."""
    done = run(folder, "heated.py")
    assert done.returncode == 0, done.stderr
    temperature, heating = (float(each.split()[0]) for each in done.stdout.split(","))
    decay, loop = np.exp(-5.0 / 50.0), 0.2 * 40.0
    expected = 100.0 * loop / (1.0 + loop) * (1.0 - (decay - (1.0 - decay) * loop) ** 4)
    assert temperature == pytest.approx(expected, abs=2e-2)
    assert heating == pytest.approx(40.0 * (100.0 - expected), abs=1.0)
