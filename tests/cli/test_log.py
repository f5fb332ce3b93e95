"""What the library logs while a command runs goes to stderr."""

from __future__ import annotations

import io
import logging
import sys

import pytest

from mbsfmu.cli.output import log_to_stderr


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def test_log_goes_to_what_stderr_is_where_the_one_before_was_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("mbsfmu")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "level", logger.level)
    before, now = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    monkeypatch.setattr(sys, "stderr", before)
    log_to_stderr(quiet=True)
    logger.warning("one")
    assert _written(before) == "WARNING: one\n"
    before.close()
    monkeypatch.setattr(sys, "stderr", now)
    logger.warning("two")
    assert _written(now) == "WARNING: two\n"
