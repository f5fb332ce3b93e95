"""Suppression of repeated warnings: of all, or of the second of each."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def muted() -> Iterator[None]:
    """Limit the package's loggers to errors, because repetitions would repeat warnings."""
    logger = logging.getLogger("mbsfmu")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Repetitions(logging.Filter):
    """Lets each message through once."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[tuple[str, str], logging.LogRecord] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a message is new; handlers after the first one get it too."""
        return self._told.setdefault((record.name, record.getMessage()), record) is record


@contextmanager
def each_once() -> Iterator[None]:
    """Log each message once while runs are repeated, whatever handlers there are."""
    repetitions = _Repetitions()
    handlers = [*logging.getLogger("mbsfmu").handlers, *logging.getLogger().handlers]
    if logging.lastResort is not None:  # which takes warnings where a program has set up no handlers
        handlers.append(logging.lastResort)
    for handler in handlers:
        handler.addFilter(repetitions)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(repetitions)
