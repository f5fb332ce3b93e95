"""The pages for maintainers speak of what is there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:mbsfmu|hydraulics|tests|benchmarks)/[\w/.]*\w)`", text))
    named |= {link for link in re.findall(r"\]\(([^)]*)\)", text) if "://" not in link}
    assert len(named) > 10
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_classes_to_derive_from_are_where_they_are_said_to_be() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    pairs = re.findall(r"derives from\s+`(\w+)`\s+\(`([\w/]+\.py)`\)", text)
    assert len(pairs) == 8
    for name, path in pairs:
        assert re.search(rf"^class {name}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (name, path)


def test_picture_shows_the_packages_as_they_are() -> None:
    drawn = runpy.run_path(str(ROOT / "benchmarks" / "architecture.py"))
    rows = drawn["layers"]()
    now = drawn["picture"](rows, drawn["imports"](rows))
    assert (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8") == now
