"""What docs/guides/coupled-runs.md shows works as it is written there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from documented import ROOT
from foreign_fmus import compiler
from started import run_python

PAGE = (ROOT / "docs" / "guides" / "coupled-runs.md").read_text(encoding="utf-8")


def test_python_of_the_page(four_bar_package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(four_bar_package, tmp_path / "four-bar.ssp")
    monkeypatch.chdir(tmp_path)
    *_, code = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)  # test_joined_mechanisms.py
    names: dict[str, Any] = {}
    exec(code, names)  # the page is ours
    assert names["result"].time[-1] == pytest.approx(0.2)
    assert names["result"].steps == 200


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
def test_saved_runs_of_the_page(four_bar_package: Path, tmp_path: Path) -> None:
    """The calls of the page, for a shorter time."""
    shutil.copy(four_bar_package, tmp_path / "four-bar.ssp")
    lines = [line.split() for line in PAGE.splitlines() if line.startswith("mbsfmu") and "at-4.zip" in line]
    assert len(lines) == 2
    shorter = {"10": "0.05", "4": "0.02"}
    for line in lines:
        done = run_python("-m", *(shorter.get(word, word) for word in line), "--quiet", folder=tmp_path)
        assert done.returncode == 0, done.stderr
    assert len((tmp_path / "run.csv").read_text().splitlines()) == 52
