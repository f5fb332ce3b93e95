"""Words that a shell completes, as it asks for them, and help in two sections."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from ended_calls import Ended

import mbsfmu
from mbsfmu.cli.commands import COMMANDS, EXPERT, cli
from mbsfmu.formulations.formulation import FORMULATIONS


def completed(*words: str) -> list[str]:
    """What a shell is offered for the last word."""
    *before, incomplete = words
    return [each.value for each in ShellComplete(cli, {}, "mbsfmu", "_").get_completions(before, incomplete)]


def test_commands_are_completed_without_loading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "get_command", None)
    assert completed("s") == [name for name in COMMANDS if name.startswith("s")]


def test_models_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("crane_of_mine.py").write_text(
        "def made(): ...\ndef _hidden(): ...\ndef with_size(n): ...\n", encoding="utf-8"
    )
    Path("broken.py").write_text("def", encoding="utf-8")
    Path("folder").mkdir()
    mbsfmu.models.four_bar().to_file("folder/four.json")
    assert completed("simulate", "cran") == ["crane", "crane_of_mine.py:"]
    assert completed("simulate", "crane_of_mine.py:") == ["crane_of_mine.py:made"]
    assert completed("simulate", "broken.py:") == []
    assert completed("show", "folder/fo") == ["folder/four.json"]
    assert "four-bar-throttle" in completed("play", "four")


def test_words_of_options_are_completed() -> None:
    assert completed("simulate", "four-bar", "--formulation", "") == list(FORMULATIONS.names())
    assert completed("simulate", "four-bar", "--solver", "rodas") == ["rodas4", "rodas5p"]
    assert completed("compare", "four-bar", "--algorithms", "jacobi,gauss-seidel-l") == ["jacobi,gauss-seidel-linear"]
    assert completed("new", "x", "--like", "cr") == ["crane"]


def test_variables_of_the_model_are_completed() -> None:
    assert completed("simulate", "four-bar", "--set", "boom.ma") == ["boom.mass="]
    assert "circuit.valve.command=" in completed("simulate", "four-bar", "--set", "circuit.valve.c")
    assert "cylinder.force=" not in completed("simulate", "four-bar", "--set", "mechanism.cylinder")
    assert "boom.angle" in completed("linearize", "four-bar", "--outputs", "boom.")
    assert completed("linearize", "four-bar", "--inputs", "valve.") == ["valve.command"]
    assert completed("simulate", "no-such-model", "--set", "b") == []


def test_each_expert_option_is_one(in_process: Callable[..., Ended]) -> None:
    known: set[str] = set()
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        known |= {str(each.name) for each in command.params}
    assert known >= EXPERT
    usual, _, expert = in_process("simulate", "--help").stdout.partition("Options for experts:")
    for flag in ("--solver", "--step", "--set", "--report", "--help"):
        assert flag in usual
        assert flag not in expert.split()
    for flag in ("--newton-tolerance", "--penalty", "--debug"):
        assert flag in expert
        assert flag not in usual.split()
