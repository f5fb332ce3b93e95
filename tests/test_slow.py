"""Tests that are slow, and cases that guard something, are listed, not marked: what the lists name is there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

SLOW, SUBJECTS = (
    tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")) for name in ("slow", "guards")
)


def test_listed_tests_and_cases_are_there(request: pytest.FixtureRequest) -> None:
    """A case that has another name by now would leave its test out wherever the slow ones are, or guard nothing."""
    options = request.config.option
    if options.keyword or any("::" in name for name in request.config.args):
        pytest.skip("only some of each file's tests are collected")
    folder = request.config.rootpath / "tests"
    collected: dict[str, set[str]] = {}
    for item in request.session.items:
        collected.setdefault(item.path.relative_to(folder).as_posix(), set()).add(item.name)
    listed = [(file, test, always) for file, tests in SLOW.items() for test, always in tests.items()]
    guards = [(*name.split("::"), cases) for tests in SUBJECTS.values() for name, cases in tests.items()]
    assert all(cases for *_, cases in guards)
    for file, test, always in listed + guards:
        assert (folder / file).is_file(), file
        assert f"def {test}(" in (folder / file).read_text(encoding="utf-8"), f"{file}: {test}"
        missing = {f"{test}[{case}]" if case else test for case in always} - collected.get(file, set())
        assert not missing or file not in collected, f"{file}: {missing}"
