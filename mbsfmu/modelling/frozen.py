"""Immutable mappings as fields of frozen data."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, WrapSerializer

Key = TypeVar("Key")
Value = TypeVar("Value")


class FrozenMapping(Mapping[Key, Value]):
    """Ordered immutable mapping; equal to any mapping with the same entries."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[Key, Value] | Iterable[tuple[Key, Value]] = ()) -> None:
        self._entries = dict(entries)

    def __getitem__(self, key: Key) -> Value:
        return self._entries[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> ItemsView[Key, Value]:
        """Return the entries."""
        return self._entries.items()

    def values(self) -> ValuesView[Value]:
        """Return the values."""
        return self._entries.values()

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return repr(self._entries)


def _as_dict(entries: Mapping[Any, Any], serialize: Any) -> Any:
    return serialize(dict(entries))


FrozenMap = Annotated[Mapping[Key, Value], AfterValidator(FrozenMapping), WrapSerializer(_as_dict)]
"""Field type: any mapping is accepted and stored as a `FrozenMapping`."""
