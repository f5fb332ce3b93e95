"""Times and steps on the command line may have units of their own, as in Python and in files."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result


def called(name: str, *words: str) -> Result:
    return CliRunner().invoke(importlib.import_module(f"mbsfmu.cli.{name}").command, [*words, "--quiet"])


@pytest.mark.parametrize(
    ("name", "model", "given", "plain", "compared"),
    [
        (
            "simulate",
            "pendulum-1",
            {"--stop": "0.02 min", "--step": "10 ms", "--output-step": "20ms"},
            "1.2 1e-2 0.02",
            {"stop", "step", "steps", "final"},
        ),
        ("linearize", "pendulum-1", {"--at": "200 ms", "--step": "5e3 us"}, "0.2 5e-3", {"a", "modes"}),
        ("compare", "four-bar", {"--stop": "20 ms", "--steps": "2 ms,0.001"}, "0.02 2e-3,1e-3", {"accuracy"}),
    ],
)
def test_results_are_those_of_numbers_in_s(
    name: str, model: str, given: dict[str, str], plain: str, compared: set[str], tmp_path: Path
) -> None:
    contents = []
    for values in (given.values(), plain.split()):
        words = [word for pair in zip(given, values, strict=True) for word in pair]
        done = called(name, model, *words, "--json", str(tmp_path / "result.json"))
        assert done.exit_code == 0, done.output
        contents.append(json.loads((tmp_path / "result.json").read_text()))
    same = {key for key in contents[0] if contents[0][key] == contents[1][key]}
    assert same >= compared


@pytest.mark.parametrize(
    ("name", "words", "refused"),
    [
        ("simulate", ("four-bar", "--stop", "1e400"), "'1e400' is refused: its magnitude is beyond the largest number"),
        ("simulate", ("four-bar", "--stop", "inf"), "'inf' is refused: it must be finite"),
        ("simulate", ("four-bar", "--step", "5 m"), "'5 m' is refused: 'm' and 's' are units of different quantities"),
        ("cosim", ("none.ssp", "--until", "soon"), "it must be a number, in s, or with a unit as 200 ms"),
        ("cosim", ("none.ssp", "--step", "1 bar"), "'bar' and 's' are units of different quantities"),
        ("compare", ("four-bar", "--steps", "2 ms,x"), "'2 ms,x' is no list of numbers such as 2e-3,1e-3: 'x' "),
        ("sweep", ("four-bar", "--step", "1 ms,,"), "'1 ms,,' is no list of numbers such as 2e-3,1e-3: '' is refused"),
        ("equilibrium", ("four-bar", "--horizon", "1 kg"), "'kg' and 's' are units of different quantities"),
    ],
)  # fmt: skip
def test_what_is_no_time_is_refused_as_written(name: str, words: tuple[str, ...], refused: str) -> None:
    done = called(name, *words)
    assert done.exit_code == 2
    assert refused in " ".join(done.output.split())
