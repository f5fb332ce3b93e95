"""The code of docs/guides/motion.md runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "motion.md").read_text(encoding="utf-8")
FIRST, BESIDE, SHAPES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_a_run_becomes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(FIRST, {})
    text = (tmp_path / "motion.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert len(text) < 1e6


def test_shapes_make_a_mechanism() -> None:
    made: dict[str, Any] = {}
    exec(SHAPES, made)
    assert [each.type for each in made["machine"].bodies[0].shapes] == [
        "rod",
        "box",
        "cylinder",
        "sphere",
        "plate",
        "mesh",
    ]
