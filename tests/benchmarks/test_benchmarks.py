"""Every study among the benchmarks runs: each has a `--quick` that makes a taste of it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
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
SEEN_ELSEWHERE = {"paper_figures.py": "examples/test_paper_figures.py"}


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
    paths = [str(FOLDER.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(tmp_path)}
    done = run_python(str(script), "--quick", folder=tmp_path, environment=environment)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d\.\d", done.stdout), "it prints no number"
    assert "(off by" not in done.stdout, "engines do not agree"
    assert {path: path.stat().st_mtime_ns for path in docs.rglob("*")} == before
