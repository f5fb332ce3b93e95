"""The site is made without a warning: links between pages lead somewhere, docstrings read, notebooks run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from accessibility import findings
from chromium import Chromium

import hydraulics
import mbsfmu
from mbsfmu.modelling.part import FAMILIES, is_built_in

ROOT = Path(__file__).parents[2]
ENTRIES = ("mechanics", "hydraulics", "blocks")
"""Pages with entries of parts."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("site")
    made, kept = folder / "site", folder / "kept"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "2", "-d", kept, "docs", made]
    environment = {**os.environ, "MBSFMU_SITE_ANIMATIONS": "0", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


def test_site_has_all_there_is(site: Path) -> None:
    read = {page.relative_to(site).as_posix(): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    for family in FAMILIES:
        for word, kind in family.known():
            if is_built_in(kind):
                place = f"part-{family.family}-{word}"
                (page,) = (name for name in ENTRIES if f'id="{place}"' in read[f"reference/{name}.html"])
                assert f'aria-label="Symbol: {kind.__name__}"' in read[f"reference/{page}.html"], word
                assert f'href="../reference/{page}.html#{place}"' in read["reference/parts.html"], word
    for page, name in {"model": "CoupledModel", "running": "Result", "cosimulation": "cosimulate"}.items():
        assert f'id="mbsfmu.{name}"' in read[f"reference/api/{page}.html"]
    entries = "".join(read[f"reference/{name}.html"] for name in ENTRIES)
    interface = "".join(text for page, text in read.items() if page.startswith("reference/api/"))
    for package in (mbsfmu, hydraulics):
        for name in package.__all__:
            symbol = f'aria-label="Symbol: {name}"'
            said = rf'id="\w+\.{name}"|<span class="pre">\w+\.{name}</span>'
            assert symbol in entries or re.search(said, interface), name
    assert mbsfmu.__version__ in read["index.html"]
    assert "largest difference" in re.sub(r"<[^>]+>", "", read["notebooks/pendulum.html"].partition("cell_output")[2])


def test_pages_ask_nobody_else_for_anything(site: Path) -> None:
    """But for links that are followed by hand."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        asked = re.findall(r'<(?:script|img|iframe|link)[^>]*?(?:src|href)="(https?://[^"]+)"', text)
        assert asked == [], page.name


@pytest.mark.parametrize("name", ["index.html", "reference/mechanics.html", "notebooks/study.html"])
def test_pages_are_read_on_phones_and_by_keyboard(browser: Chromium, site: Path, name: str) -> None:
    browser.open(site / name, 390)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    assert browser.said == []
    assert [each for each in browser.asked if not each.startswith("file:")] == []
    assert findings(browser) == []
