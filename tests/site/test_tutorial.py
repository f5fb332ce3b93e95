"""The tutorial, typed into an empty folder of an environment that has nothing but the package as it is shipped."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

ROOT = Path(__file__).parents[2]


def blocks(language: str, page: str = "guides/tutorial.md") -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the package from its wheel; what it depends on is that of the tests."""
    folder = tmp_path_factory.mktemp("fresh")
    source = folder / "source"
    for package in ("mbsfmu", "hydraulics", "examples"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "THIRD-PARTY.md"):
        shutil.copy(ROOT / name, source)
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(source)]
    subprocess.run(wheel, check=True)
    venv.create(folder / "env", with_pip=False, symlinks=os.name != "nt")
    found = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    (python,) = [each for each in (found / "python", found / "python.exe") if each.exists()]
    ask = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip())
    (made,) = folder.glob("mbsfmu-*.whl")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(made)]
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(install, check=True, cwd=folder, env=alone)
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return found


Run = Callable[[str], str]


@pytest.fixture
def run(programs: Path, tmp_path: Path) -> Run:
    """A function that types a command into an empty folder and returns what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def typed(command: str) -> str:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (command, done.stderr)
        assert "Warning" not in done.stderr, (command, done.stderr)
        return done.stdout

    return typed


def test_tutorial_does_what_it_says(programs: Path, run: Run, tmp_path: Path) -> None:
    beam, use, driven, importer = blocks("python")
    for name, text in {"beam.py": beam + driven, "use.py": use, "importer.py": importer}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    where = run('python -c "import mbsfmu; print(mbsfmu.__file__)"')
    assert Path(where.strip()).is_relative_to(programs.parent)
    printed = {command: run(command) for block in blocks("sh") for command in block.splitlines()}
    speed, angles = blocks("text")
    assert run("python use.py") == speed
    assert printed["python importer.py"] == angles
    assert "no problem" in printed["mbsfmu validate units/driven.fmu"]
    files = zipfile.ZipFile(tmp_path / "units" / "driven.fmu").namelist()
    assert len(files) == len(set(files))
    assert "licenses/mbsfmu/LICENSE" in files
    assert (tmp_path / "beam.html").stat().st_size > 100_000

    motion = solve_ivp(lambda t, y: [y[1], -1.5 * 9.81 / 2.0 * math.cos(y[0])], (0.0, 2.0), [0.0, 0.0], rtol=1e-9)
    told = [float(each) for each in re.findall(r"(-?\d+\.\d+) rad", angles)]
    at_half = solve_ivp(lambda t, y: [y[1], -1.5 * 9.81 / 2.0 * math.cos(y[0])], (0.0, 0.5), [0.0, 0.0], rtol=1e-9)
    np.testing.assert_allclose(told, [0.0, at_half.y[0, -1], motion.y[0, -1]], atol=6e-3)


def test_a_machine_of_ones_own_does_what_the_page_says(run: Run, tmp_path: Path) -> None:
    """The work of the ram lifts the centre of mass, which stands where the angle says; both pages have it in motion."""
    machine, check = blocks("python", "guides/own-machine.md")
    (tmp_path / "tipper.py").write_text(machine, encoding="utf-8")
    (tmp_path / "check.py").write_text(check, encoding="utf-8")
    for command in blocks("sh", "guides/own-machine.md")[0].splitlines():
        run(command)
    told = run("python check.py")
    assert [told] == blocks("text", "guides/own-machine.md")
    angle, work, lifted = (float(each) for each in re.findall(r"[\d.]+", told))
    assert work == pytest.approx(lifted, rel=1e-3)
    turned = math.radians(angle)
    assert lifted == pytest.approx(3000 * 9.81 * (2.2 * math.sin(turned) + 0.6 * (math.cos(turned) - 1.0)), rel=5e-3)
    for page in ("tipper.html", "report.html"):
        assert "mbsfmu-scene" in (tmp_path / page).read_text(encoding="utf-8")
