"""Calls of the command line."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ended_calls import Ended

from mbsfmu.cli import main


@pytest.fixture
def in_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Callable[..., Ended]]:
    logger = logging.getLogger("mbsfmu")
    before = list(logger.handlers), logger.level
    monkeypatch.chdir(tmp_path)

    def call_here(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["mbsfmu", *arguments])
        status: int | str | None = 0
        try:
            main()
        except SystemExit as ended:
            status = ended.code
        return Ended(status, *capsys.readouterr())

    yield call_here
    logger.handlers[:], level = before
    logger.setLevel(level)
