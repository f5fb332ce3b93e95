"""Sentences that differ in numbers alone, as warnings of several machines or FMUs do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

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
