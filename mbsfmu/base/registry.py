"""Registries of classes by name."""

from __future__ import annotations

from typing import Generic, TypeVar

from mbsfmu.base.errors import InputError
from mbsfmu.modelling import closest_match

T = TypeVar("T", bound=type)


def is_built_in(kind: type) -> bool:
    """Return whether a class is part of this package."""
    return kind.__module__.partition(".")[0] == __name__.partition(".")[0]


class Registry(Generic[T]):
    """Classes of one kind by their names.

    Parameters
    ----------
    kind
        What they are, in a word for sentences.
    default
        Name of the one that is taken where nothing is said, if there is such.
    replaced
        Whether what a user defines takes the place of what a user has defined, as where a file is run again elsewhere.

    Attributes
    ----------
    kind
        As given.
    """

    def __init__(self, kind: str, default: str = "", *, replaced: bool = False) -> None:
        self.kind, self._default, self._replaced = kind, default, replaced
        self._known: dict[str, T] = {}

    def add(self, name: str, known: T) -> None:
        """Register a class; a repeated definition replaces itself.

        Raises
        ------
        InputError
            When another one has that name.
        """
        other = self._known.setdefault(name, known)
        same = (other.__module__, other.__qualname__) == (known.__module__, known.__qualname__)
        if not same and not (self._replaced and not is_built_in(other)):
            raise InputError(f"there is a {self.kind} '{name}' already; {known.__qualname__} needs a name of its own")
        self._known[name] = known

    def defined_in(self, module: str) -> dict[str, T]:
        """Return the registered classes of a module, by name."""
        return {name: known for name, known in self._known.items() if known.__module__ == module}

    def names(self) -> tuple[str, ...]:
        """Return all names, the default one first."""
        return tuple(sorted(self._known, key=lambda name: (name != self._default, name)))

    def get(self, name: str) -> T | None:
        """Return the class of a name; None if unknown."""
        return self._known.get(name)

    def find(self, name: str) -> T:
        """Return the class of a name.

        Raises
        ------
        InputError
            When there is none.
        """
        if name not in self._known:
            raise InputError(f"there is no {self.kind} '{name}'; {closest_match(name, self.names())}")
        return self._known[name]
