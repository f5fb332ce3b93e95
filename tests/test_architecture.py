"""The pages for maintainers speak of what is there."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest

from mbsfmu.native.c_sources import step_files

ROOT = Path(__file__).parents[1]
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")
FOLDERS = ("mbsfmu", "hydraulics", "tests", "benchmarks", "docs")
MADE = {f"model_{each}.c" for each in ("steps", "rest", "lanes", "flow", "apart_N")} | {"coupled_tables.h"}
"""What is generated for each model."""


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:mbsfmu|hydraulics|tests|benchmarks)/[\w/.]*\w)`", text))
    named |= {link for link in re.findall(r"\]\(([^)]*)\)", text) if "://" not in link}
    assert len(named) > 10
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
    there = {each.name for folder in FOLDERS for each in (ROOT / folder).rglob("*.*")} | {*step_files(), *MADE}
    assert {*re.findall(r"`(\w+\.(?:py|c|h))`", text)} - there == set()


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


def _third_party(heading: str) -> dict[str, tuple[str, str]]:
    """Return licence, and when or for what it is taken, of what a section names."""
    section = re.split(r"^## ", (ROOT / "THIRD-PARTY.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    (rows,) = (each.splitlines() for each in section if each.startswith(f"{heading}\n"))
    cells = [[each.strip() for each in row.split("|")[1:-1]] for row in rows if row.startswith("|")][2:]
    return {
        re.sub(r"\[(.*)\]\(.*\)", r"\1", name).lower(): (licence, why)
        for names, licence, why in cells
        for name in names.split(", ")
    }


def _required(requirements: list[str]) -> set[str]:
    """Return the packages of requirements, without this one."""
    return {re.match(r"[\w.-]+", each)[0].lower() for each in requirements} - {"mbsfmu"}  # pyright: ignore[reportOptionalSubscript]


def test_what_is_of_others_is_named_with_its_licence() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    when = {"always": project["dependencies"]} | {name: extras[name] for name in extras if name != "dev"}
    installed = _third_party("Installed beside it")
    for name, requirements in when.items():
        assert {each for each, (_, why) in installed.items() if name in re.findall(r"\w+", why)} == _required(
            requirements
        )

    bundled = json.loads((ROOT / "mbsfmu/view/assets/manifest.json").read_text(encoding="utf-8"))
    pages = {name.removesuffix(".js"): licence for name, (licence, _) in _third_party("In the package").items()}
    assert pages == {each["package"].split("/")[-1]: each["licence"] for each in bundled}

    of_tests = json.loads((ROOT / "tests/libraries/manifest.json").read_text(encoding="utf-8"))
    tests = _third_party("For tests and linters alone")
    assert {*tests} == _required(extras["dev"]) | {each["package"] for each in of_tests}
    assert all(tests[each["package"]][0] == each["licence"] for each in of_tests)


@pytest.fixture(scope="module")
def counted() -> dict[str, tuple[int, int]]:
    """Files and lines of code of each folder, as the study counts them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")
        study = runpy.run_path(str(ROOT / "benchmarks" / "before_after.py"))
    return {folder: _files_and_code(cells) for folder, cells in study["folder_rows"](ROOT)}


def _files_and_code(cells: str) -> tuple[int, int]:
    """Return the first and the last of files, lines and lines of code."""
    files, _, code = (int(each.replace(",", "")) for each in cells.split(", "))
    return files, code


def test_the_size_of_the_code_is_as_the_study_says(counted: dict[str, tuple[int, int]]) -> None:
    """To within a tenth; else `python benchmarks/before_after.py --write` counts anew."""
    page = (ROOT / "docs/studies/code-size.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+)` \| ([\d, ]+) \|$", page, re.MULTILINE)
    told = {folder: _files_and_code(cells) for folder, cells in rows}
    assert told.keys() == counted.keys()
    for folder, (files, code) in counted.items():
        assert told[folder] == (pytest.approx(files, rel=0.1, abs=2), pytest.approx(code, rel=0.1, abs=100)), folder
    cells = re.findall(r"^\| \w+: files, lines, lines of code \|.*\| ([\d, ]+) \|$", page, re.MULTILINE)
    assert len(cells) == 3
    assert sum(_files_and_code(each)[1] for each in cells) == sum(code for _, code in told.values())


def test_code_that_grows_says_for_whom(counted: dict[str, tuple[int, int]]) -> None:
    """Add a line to the table "What the code has grown for" in ARCHITECTURE.md, or write less."""
    section = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## What the code has grown for")[2]
    rows = re.findall(r"^\| ([\d,]+) \| (\d+ \w+ \d{4}) \| (.{10,}) \|$", section, re.MULTILINE)
    told, found = int(rows[-1][0].replace(",", "")), sum(code for _, code in counted.values())
    assert found <= told, "the code has grown: say for whom in ARCHITECTURE.md"
