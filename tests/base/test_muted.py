"""Warnings of runs that are repeated."""

from __future__ import annotations

import logging

import pytest

from mbsfmu.base.repeated_warnings import each_once


def test_each_sentence_is_told_once_and_to_every_handler(caplog: pytest.LogCaptureFixture) -> None:
    second: list[str] = []

    class Second(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            second.append(record.getMessage())

    handler, logger = Second(), logging.getLogger("mbsfmu.anything")
    logging.getLogger("mbsfmu").addHandler(handler)
    try:
        with caplog.at_level("INFO", logger="mbsfmu"):
            with each_once():
                for number in (1, 2, 1, 2):
                    logger.warning("sentence %d", number)
                assert second == ["sentence 1", "sentence 2"]
            logger.warning("sentence %d", 1)
    finally:
        logging.getLogger("mbsfmu").removeHandler(handler)
    assert second == ["sentence 1", "sentence 2", "sentence 1"]
    assert [each.getMessage() for each in caplog.records] == second


def test_a_program_without_logging_is_told_once_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warnings go to standard error then, by a handler that no logger has."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with each_once():
        for _ in range(3):
            logging.getLogger("mbsfmu.run").warning("the start values do not close the loops")
    assert capsys.readouterr().err.count("the start values") == 1
    assert logging.lastResort is not None
    assert not logging.lastResort.filters
