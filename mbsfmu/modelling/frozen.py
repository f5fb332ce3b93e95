"""Mappings that cannot be changed, as fields of frozen data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, WrapSerializer

Key = TypeVar("Key")
Value = TypeVar("Value")


class FrozenMapping(Mapping[Key, Value]):
    """A mapping that keeps the order of its entries and has no way to change them; equal to any mapping alike."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[Key, Value] | Iterable[tuple[Key, Value]] = ()) -> None:
        self._entries = dict(entries)

    def __getitem__(self, key: Key) -> Value:
        return self._entries[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return repr(self._entries)


def _as_dict(entries: Mapping[Any, Any], serialize: Any) -> Any:
    return serialize(dict(entries))


FrozenMap = Annotated[Mapping[Key, Value], AfterValidator(FrozenMapping), WrapSerializer(_as_dict)]
"""The type of a field: any mapping is taken, a `FrozenMapping` is what the data holds."""
