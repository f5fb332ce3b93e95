"""What pages say can be typed: commands have these options, files are there, the code of each is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from documented import PAGES, ROOT

from mbsfmu.cli.commands import cli

ELSEWHERE = "\n".join(
    file.read_text(encoding="utf-8")
    for file in sorted((ROOT / "tests").rglob("*.py"))
    if file.name not in ("test_pages.py", "test_public_names.py")
)
"""The other tests, of which some run the code of pages that they name."""
NOT_RUN = {
    "guides/importing.md": "importers of others",
    "guides/exporting.md": "one line, which tests of FMI 3.0 have too",
    "guides/parameter-studies.md": "a cluster",
    "guides/system-description.md": "units of others",
}
"""Pages whose Python no test runs, and what it would need."""
DEFINED_ON = {"own-parts.md": "own-component.md"}
"""Pages whose commands take classes of another page."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def lines(page: Path) -> Iterator[list[str]]:
    """Yield the commands of a page as words; several in a line count as several."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            for call in line.split("&&"):
                if words := shlex.split(call, comments=True):
                    yield words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_a_page_have_these_options(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for program, *arguments in lines(page):
        if not program.endswith("mbsfmu"):
            continue
        command = cli.get_command(click.Context(cli), arguments[0])
        assert command is not None, arguments
        for file in (each for each in arguments if "/" in each and not each.startswith("/")):
            Path(file).parent.mkdir(parents=True, exist_ok=True)  # as commands before would
        if "--parts" in arguments:  # which are read before other options
            file = Path(arguments[arguments.index("--parts") + 1])
            source = page.with_name(DEFINED_ON.get(page.name, page.name))
            classes = [block for block in blocks(source, "python") if "\nclass " in block]
            file.write_text("\n".join(classes), encoding="utf-8")
        try:
            command.make_context(arguments[0], arguments[1:])
        except click.ClickException as error:
            raise AssertionError(f"mbsfmu {' '.join(arguments)}: {error.format_message()}") from error


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_programs_of_a_page_are_there(page: Path) -> None:
    made = {"importer.py"} if page.name == "tutorial.md" else set()
    for program, *arguments in lines(page):
        scripts = [each for each in arguments if program.endswith("python") and each.endswith(".py")]
        assert [each for each in scripts if each not in made and not (ROOT / each).exists()] == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_python_of_a_page_is_run_somewhere(page: Path) -> None:
    for block in blocks(page, "python"):
        compile(block, str(page), "exec")
    name = page.relative_to(ROOT / "docs").as_posix() if page.is_relative_to(ROOT / "docs") else page.name
    joined = " / ".join(f'"{each}"' for each in name.split("/"))
    assert name in NOT_RUN or any(each in ELSEWHERE for each in (joined, f'{name}"', f"docs/{name} "))


@pytest.mark.parametrize("name", ["tests.md", "native-fmus.md"])
def test_tests_that_a_study_names_are_there(name: str) -> None:
    text = (ROOT / "docs" / "studies" / name).read_text(encoding="utf-8")
    named = re.findall(r"`(\w+/test_\w+\.py)(?:::(\w+))?", text)
    assert len(named) > 20
    files = {path: (ROOT / "tests" / path).read_text(encoding="utf-8") for path, _ in named}
    assert [(path, test) for path, test in named if test and f"def {test}" not in files[path]] == []
