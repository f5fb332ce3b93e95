"""Pages load nothing, no text in them becomes markup, and what they are made of is what its makers gave out."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import Markup, escape

from mbsfmu.view.pages.page import HtmlElement, data_block, filled, page, text_of, write_page

HOME = Path(str(files("mbsfmu.view")))
ASSETS = HOME / "assets"
OF_TESTS = Path(__file__).parents[1] / "libraries"
PERMISSIVE = {"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC"}
LICENCES = {ASSETS: PERMISSIVE, OF_TESTS: PERMISSIVE | {"MPL-2.0"}}
EVIL = "</script><!-- \" ' & \u2028 \N{CYRILLIC SMALL LETTER YA} \U0001f916"


@pytest.mark.parametrize(
    ("folder", "library"),
    [(folder, library) for folder in LICENCES for library in json.loads((folder / "manifest.json").read_text())],
    ids=lambda each: each["package"] if isinstance(each, dict) else "",
)
def test_libraries_are_what_the_manifest_says(folder: Path, library: dict[str, Any]) -> None:
    assert set(library) >= {"package", "version", "licence", "for", "files"}
    assert library["licence"] in LICENCES[folder]
    assert any("LICENSE" in each["file"] for each in library["files"]), "the licence stands beside the library"
    for each in library["files"]:
        assert hashlib.sha256((folder / each["file"]).read_bytes()).hexdigest() == each["sha256"], each["file"]


@pytest.mark.parametrize("folder", [ASSETS, OF_TESTS], ids=["in pages", "of tests"])
def test_every_file_of_a_library_is_in_the_manifest(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    known = {each["file"] for library in manifest for each in library["files"]} | {"manifest.json"}
    there = {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()}
    assert there == known


@pytest.mark.parametrize(
    "file",
    sorted(each for each in HOME.rglob("*") if each.suffix in (".js", ".css")),
    ids=lambda file: file.relative_to(HOME).as_posix(),
)
def test_scripts_and_styles_can_stand_in_a_page(file: Path) -> None:
    text = file.read_text(encoding="utf-8").lower()
    assert not [each for each in ("</script", "</style", "<!--", "@import", "sourcemappingurl") if each in text]


def test_data_come_back_and_no_text_ends_the_block() -> None:
    data = {"name": EVIL, EVIL: [1.5, np.float64(2.0), float("nan"), np.array([3.0, np.inf])], "none": None}
    block = data_block(data)
    inside = block.removeprefix('<script type="application/json" class="data">').removesuffix("</script>")
    assert not set(inside) & set("<>&\u2028\u2029")
    assert json.loads(inside) == {"name": EVIL, EVIL: [1.5, 2.0, None, [3.0, None]], "none": None}


def test_titles_are_text() -> None:
    text = page(EVIL, HtmlElement(Markup("<h1>{}</h1>").format(EVIL)))
    assert f"<title>{escape(EVIL)}</title>" in text
    assert f"<h1>{escape(EVIL)}</h1>" in text
    assert EVIL not in text


def test_page_has_each_style_and_script_once_and_in_order() -> None:
    style, script = "assets/uplot/uPlot.min.css", "assets/uplot/uPlot.iife.min.js"
    part = HtmlElement(Markup("<p>plot</p>"), (style,), (script,))
    text = page("two plots", HtmlElement.around(Markup("<h1>plots</h1>"), [part, part]))
    assert text.count(text_of(style).strip()) == text.count(text_of(script).strip()) == 1
    assert text.index(text_of(style).strip()) < text.index("<h1>plots</h1>") < text.index(text_of(script).strip())
    assert "<!-- uplot 1.6.32, MIT licence -->" in text
    assert "default-src 'none'" in text


def test_page_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_page("\ud800", HtmlElement(Markup("")), path)
    assert path.read_text() == "old"
    assert write_page("new", HtmlElement(Markup("<h1>new</h1>")), path) == path
    assert "<h1>new</h1>" in path.read_text(encoding="utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_templates_refuse_what_is_not_given() -> None:
    with pytest.raises(Exception, match="is undefined"):
        filled("pages/page.html")
