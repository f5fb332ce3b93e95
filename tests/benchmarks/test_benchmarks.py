"""Every study among the benchmarks runs: each has a `--quick` that makes a taste of it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from started import run_python

import mbsfmu

FOLDER = Path(mbsfmu.__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path for path in FOLDER.rglob("*.py") if "__main__" in path.read_text(encoding="utf-8"))
NEEDED = {
    "speed.py": ("exudyn", "gcc"),
    "source_fmus.py": ("gcc",),
    "step_times.py": ("gcc",),
    "misra.py": ("cppcheck",),
    "work_precision.py": ("gcc",),
    "windows_under_wine.py": ("ziglang", "wine"),
    "solvers.py": ("extensisq",),
    "compiled.py": ("pinocchio",),
    "large.py": ("gcc",),
    "choice.py": ("gcc",),
}
"""Packages and programs without which a study is left out."""
MAKES = {
    "vendor_bundles.py": "mbsfmu/view/assets",
    "excavator_picture.py": "docs/excavator.webp",
    "play_pictures.py": "docs/guides",
}
"""What is no study, but makes something that is kept; a test must not write it."""
SEEN_ELSEWHERE = {
    "paper_figures.py": "examples/test_paper_figures.py",
    "trips.py": "test_trips_are_as_long_as_the_page_says",
}

OPTIONAL = {"cyipopt", "extensisq", "exudyn", "mujoco", "pinocchio"}
"""Packages of engines and methods that studies compare with; they are no part of an installation."""
IMPORTS = """
import importlib.machinery, os, pathlib, runpy, sys
_, root, elsewhere, optional, *scripts = sys.argv
sys.argv[1:] = []
# As after `pip install -e`: the packages are found by the last of all finders.
sys.path[:] = [each for each in sys.path if each and pathlib.Path(each).resolve() != pathlib.Path(root)]
class Installed:
    def find_spec(name, path=None, target=None):
        return None if path else importlib.machinery.PathFinder.find_spec(name, [root])
sys.meta_path.append(Installed)
for folder in (root, elsewhere):
    os.chdir(folder)
    for script in scripts:
        path, modules = sys.path[:], set(sys.modules)
        sys.path.insert(0, os.path.dirname(script))
        try:
            runpy.run_path(os.path.relpath(script))
        except Exception as error:
            if (getattr(error, "name", None) or "").split(".")[0] not in optional.split():
                print(f"{script}: {error!r}")
        for package in ("mbsfmu", "hydraulics"):
            found = importlib.machinery.PathFinder.find_spec(package)
            if found and found.origin is None:
                print(f"{script}: {found.submodule_search_locations} hides the package")
        sys.path[:] = path
        for name in set(sys.modules) - modules:  # files of one name stand in several folders
            place = getattr(sys.modules[name], "__file__", None) or ""
            if any(place.startswith(os.path.join(root, each)) for each in ("benchmarks", "tests", "examples")):
                del sys.modules[name]
"""


def test_every_script_finds_what_it_imports(tmp_path: Path) -> None:
    """From the root and from elsewhere, where the packages are installed as the README says."""
    arguments = [str(FOLDER.parent), str(tmp_path), " ".join(OPTIONAL), *map(str, SCRIPTS)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def test_every_file_is_a_study_or_part_of_one() -> None:
    parts = {path for path in FOLDER.rglob("*.py") if path not in SCRIPTS}
    texts = [path.read_text(encoding="utf-8") for path in (*SCRIPTS, *parts)]
    for part in parts:
        assert any(re.search(rf"^ *from {part.stem} import", text, re.MULTILINE) for text in texts), part
    assert len(SCRIPTS) > 15


@pytest.mark.parametrize("script", SCRIPTS, ids=[path.relative_to(FOLDER).as_posix() for path in SCRIPTS])
def test_study_runs(script: Path, tmp_path: Path) -> None:
    if script.name in SEEN_ELSEWHERE:
        pytest.skip(f"is run by {SEEN_ELSEWHERE[script.name]}")
    if script.name in MAKES:
        pytest.skip(f"makes {MAKES[script.name]} anew")
    for name in NEEDED.get(script.name, ()):
        if importlib.util.find_spec(name) is None and shutil.which(name) is None:
            pytest.skip(f"needs {name}")
    docs = FOLDER.parent / "docs"
    before = {path: path.stat().st_mtime_ns for path in docs.rglob("*")}
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = run_python(str(script), "--quick", folder=tmp_path, environment=environment)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d\.\d", done.stdout), "it prints no number"
    assert "(off by" not in done.stdout, "engines do not agree"
    assert {path: path.stat().st_mtime_ns for path in docs.rglob("*")} == before


def test_trips_are_as_long_as_the_page_says(tmp_path: Path) -> None:
    """Functions and files, to within a tenth."""
    done = run_python(str(FOLDER / "trips.py"), environment={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    page = (FOLDER.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for name, _, *counts in ([each.strip() for each in row.split("|")[1:-1]] for row in done.stdout.splitlines()[2:]):
        *_, whole, itself = re.search(rf"^\| {name} \|(.*)\|$", page, re.MULTILINE)[1].split("|")  # pyright: ignore[reportOptionalSubscript]
        told = [*map(int, whole.split(",")[:2]), *map(int, itself.split(",")[:2])]
        found = [int(counts[column]) for column in (0, 1, 4, 5)]
        assert told == pytest.approx(found, rel=0.1, abs=2), name
