"""Warnings of a run: kept, repeated ones suppressed, alike ones told once."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self, TypeVar

Source = TypeVar("Source")

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)(?![\w])")


def alike(said: Iterable[tuple[Source, str]]) -> list[tuple[str, list[Source]]]:
    """Return a sentence for each group of sentences that differ in numbers alone, and the sources of the group.

    Numbers that differ are told from the least to the greatest: the worst is among them, whichever it is. What one
    source says differently is in different groups: the second of its sentences is like the second of others.

    Parameters
    ----------
    said
        Who says each sentence, and the sentence.
    """
    groups: dict[tuple[str, int], tuple[list[str], dict[Source, None]]] = {}
    before: dict[tuple[Source, str], dict[str, int]] = {}
    for source, sentence in said:
        form = _NUMBER.sub("#", sentence)
        own = before.setdefault((source, form), {})
        sentences, sources = groups.setdefault((form, own.setdefault(sentence, len(own))), ([], {}))
        sentences.append(sentence)
        sources[source] = None
    return [(_with_ranges(sentences), list(sources)) for sentences, sources in groups.values()]


def _with_ranges(sentences: Sequence[str]) -> str:
    """Return the sentence of several that differ in numbers alone, with the least and the greatest of each number."""
    columns = zip(*(_NUMBER.findall(sentence) for sentence in sentences), strict=True)
    ranges = iter([_range(column) for column in columns])
    return _NUMBER.sub(lambda _: next(ranges), sentences[0])


def _range(numbers: Sequence[str]) -> str:
    """Return the least and the greatest of numbers as they are written; one number where all are equal."""
    known = [number for number in numbers if float(number) == float(number)]  # NaN equals nothing
    if len(known) < len(numbers):
        return "nan"
    least, greatest = min(known, key=float), max(known, key=float)
    return least if float(least) == float(greatest) else f"{least} to {greatest}"


def how_many(sources: Sequence[Source], count: int, kind: str) -> str:
    """Return how a sentence of several of so many sources of a kind begins; nothing where it is of one."""
    return f"{len(sources)} of {count} {kind}, first " if len(sources) > 1 else ""


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


class KeptWarnings(logging.Handler):
    """Stores the warnings that `mbsfmu` logs inside a `with` block, each once.

    Attributes
    ----------
    sentences
        The warnings in order.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.sentences: list[str] = []

    def __enter__(self) -> Self:
        logging.getLogger("mbsfmu").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("mbsfmu").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Store a warning."""
        if (sentence := record.getMessage()) not in self.sentences:
            self.sentences.append(sentence)
