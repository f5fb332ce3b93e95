"""Tests that are slow are listed, not marked: what the list names is there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

SLOW = tomllib.loads(Path(__file__).with_name("slow.toml").read_text(encoding="utf-8"))


def test_listed_tests_and_cases_are_there(request: pytest.FixtureRequest) -> None:
    """A case that has another name by now would leave its test out wherever the slow ones are."""
    options = request.config.option
    if options.keyword or any("::" in name for name in request.config.args):
        pytest.skip("only some of each file's tests are collected")
    folder = request.config.rootpath / "tests"
    collected: dict[str, set[str]] = {}
    for item in request.session.items:
        collected.setdefault(item.path.relative_to(folder).as_posix(), set()).add(item.name)
    for file, tests in SLOW.items():
        assert (folder / file).is_file(), file
        for test, always in tests.items():
            assert f"def {test}(" in (folder / file).read_text(encoding="utf-8"), f"{file}: {test}"
            missing = {f"{test}[{case}]" if case else test for case in always} - collected.get(file, set())
            assert not missing or file not in collected, f"{file}: {missing}"
