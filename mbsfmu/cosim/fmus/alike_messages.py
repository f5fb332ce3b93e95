"""Warnings that several FMUs give alike, as machines of one kind do when they start: told once, with their number."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from mbsfmu.base.alike import alike, how_many
from mbsfmu.cosim.fmus.fmu_instance import logger, message_parts


class _Kept(logging.Filter):
    """Keeps back warnings of FMUs, which are `name [category]: text`, isolated ones included."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[str, str]] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record goes on."""
        if record.levelno != logging.WARNING:
            return True
        name, category, text = message_parts(record.getMessage())
        self.said.append((name, f" [{category}]: {text.removeprefix(f'{name}: ')}"))
        return False


@contextmanager
def alike_messages(count: int) -> Iterator[None]:
    """Log warnings that a number of FMUs give in the block behind it, those that differ in numbers alone once."""
    kept = _Kept()
    logger.addFilter(kept)
    try:
        yield
    finally:
        logger.removeFilter(kept)
        for sentence, names in alike(kept.said):
            logger.warning("%s%s%s", how_many(names, count, "FMUs"), names[0], sentence)
