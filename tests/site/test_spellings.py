"""What options of commands are said to be in Python is taken there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest
from spellings import CALLS, spelled_options, spellings

import mbsfmu
from mbsfmu.cli.commands import COMMANDS, cli

ROOT = Path(__file__).parents[2]


def python_of(name: str) -> str:
    """Return the Python of a page."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return code


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_told_and_taken(name: str) -> None:
    """Keywords are those of the call; options as data take the values that are shown."""
    command, call = cli.get_command(click.Context(cli), name), CALLS[name]
    assert command is not None
    told = dict(spelled_options(name))
    assert set(told) >= {option for each in command.params for option in each.opts if option.startswith("--")}
    known = {each: option for kind in call.options for each, option in kind.known().items()}
    for flag, spelled in told.items():
        keyword = re.match(r"`(\w+)=(.*?)`", spelled)
        if keyword is None:
            continue
        assert keyword[1] in call.keywords(), (flag, spelled)
        if keyword[1] in known and "…" not in keyword[2]:
            known[keyword[1]].taken(keyword[1], ast.literal_eval(keyword[2]))


def test_an_option_that_nobody_tells_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    command = cli.get_command(click.Context(cli), "export")
    assert command is not None
    monkeypatch.setattr(command, "params", [*command.params, click.Option(["--colour"])])
    with pytest.raises(KeyError, match="mbsfmu export --colour is neither"):
        spellings()


@pytest.mark.parametrize("name", COMMANDS)
def test_names_in_the_calls_are_there(name: str) -> None:
    for text in (CALLS[name].code, *CALLS[name].otherwise.values()):
        for path in re.findall(r"mbsfmu((?:\.\w+)+)", text):
            thing: object = mbsfmu
            for each in path.split(".")[1:]:
                thing = getattr(thing, each)


def test_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(python_of("reference/python.md"), {})  # the page is ours
    time, length, unit = capsys.readouterr().out.split()
    assert (float(time), unit) == (pytest.approx(0.1), "m")
    still = mbsfmu.models.four_bar().simulation(step=1e-3).run(stop=0.1)["cylinder.length"][-1]
    assert float(length) == pytest.approx(still, rel=1e-4)


def test_python_of_the_overview_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its two lines of output are the cylinder's length at 3 s, monolithic and coupled."""
    monkeypatch.chdir(tmp_path)
    exec(python_of("reference/overview.md"), {})  # the page is ours
    whole, coupled = (float(line.split()[0]) for line in capsys.readouterr().out.splitlines())
    assert coupled == pytest.approx(whole, rel=2e-3)
