"""All that is wrong with a package, told together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from mbsfmu.base.errors import InputError

_Read = TypeVar("_Read")
_Node = TypeVar("_Node")
_MOST = 50
"""Faults that one message tells."""


class Faults:
    """What is wrong with a package.

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
        """Note what is raised inside instead of ending with it."""
        try:
            yield
        except InputError as error:
            self.note(str(error))

    def note(self, sentence: str) -> None:
        """Note a sentence, once."""
        if sentence not in self._sentences:
            self._sentences.append(sentence)

    def each(self, read: Callable[[_Node], _Read], nodes: Iterable[_Node]) -> tuple[_Read, ...]:
        """Return what is read of each node; what is wrong with one is noted."""
        result = []
        for node in nodes:
            with self.noted():
                result.append(read(node))
        return tuple(result)

    def check(self) -> None:
        """Raise what was noted.

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
