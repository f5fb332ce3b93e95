"""All errors of a package in one message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from mbsfmu.base.errors import InputError

_Read = TypeVar("_Read")
_Node = TypeVar("_Node")
_MOST = 50
"""Largest number of errors in one message."""


class Faults:
    """Collected errors of a package.

    Parameters
    ----------
    name
        Name of the package.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._sentences: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Record exceptions of a block instead of raising them."""
        try:
            yield
        except InputError as error:
            self.note(str(error))

    def note(self, sentence: str) -> None:
        """Record an error, once."""
        if sentence not in self._sentences:
            self._sentences.append(sentence)

    def each(self, read: Callable[[_Node], _Read], nodes: Iterable[_Node]) -> tuple[_Read, ...]:
        """Return the result of reading each node; errors are recorded."""
        result = []
        for node in nodes:
            with self.noted():
                result.append(read(node))
        return tuple(result)

    def check(self) -> None:
        """Raise the recorded errors.

        Raises
        ------
        InputError
            When there is something; of one fault its sentence, of more all of them.
        """
        if len(self._sentences) == 1:
            raise InputError(self._sentences[0])
        if self._sentences:
            faults = [each.removeprefix(f"{self._name}: ").removeprefix(f"{self._name} ") for each in self._sentences]
            left = "" if len(faults) <= _MOST else f"; and {len(faults) - _MOST} more"
            listed = "; ".join(f"({number}) {each}" for number, each in enumerate(faults[:_MOST], 1))
            raise InputError(f"{self._name} has {len(faults)} faults: {listed}{left}")
