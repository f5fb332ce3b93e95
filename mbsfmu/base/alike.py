"""Sentences that differ in numbers alone, as warnings of several machines or FMUs do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

Source = TypeVar("Source")

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|inf|nan)(?![\w])")


def alike(said: Iterable[tuple[Source, str]]) -> list[tuple[str, list[Source]]]:
    """Return the first of each group of sentences that differ in numbers alone, and the sources of the group.

    What one source says differently is in different groups: the second of its sentences is like the second of others.

    Parameters
    ----------
    said
        Who says each sentence, and the sentence.
    """
    groups: dict[tuple[str, int], tuple[str, dict[Source, None]]] = {}
    before: dict[tuple[Source, str], dict[str, int]] = {}
    for source, sentence in said:
        form = _NUMBER.sub("#", sentence)
        own = before.setdefault((source, form), {})
        groups.setdefault((form, own.setdefault(sentence, len(own))), (sentence, {}))[1][source] = None
    return [(sentence, list(sources)) for sentence, sources in groups.values()]


def how_many(sources: Sequence[Source], count: int, kind: str) -> str:
    """Return how a sentence of several of so many sources of a kind begins; nothing where it is of one."""
    return f"{len(sources)} of {count} {kind}, first " if len(sources) > 1 else ""
