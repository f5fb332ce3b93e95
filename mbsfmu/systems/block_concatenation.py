"""Block concatenation: functions of a coupled system from those of its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from mbsfmu.modelling.fields import Array
from mbsfmu.systems.system import System, SystemContext

Function = TypeVar("Function", bound=Callable[..., Any])


class Concatenation(Protocol):
    """Protocol of a system whose parts share arguments."""

    name: str
    parts: tuple[System, ...]

    def arguments_of_parts(self, kind: str, given: Any) -> Sequence[Any]:
        """Return the part of an argument for each part."""
        ...


def nothing(*_: object) -> Array:
    """Return an empty vector."""
    return np.zeros(0)


def two_of_nothing(*_: object) -> tuple[Array, Array]:
    """Return two empty vectors."""
    return np.zeros(0), np.zeros(0)


def as_given(coordinates: Array, velocities: Array, _: SystemContext) -> tuple[Array, Array]:
    """Return z and ż unchanged."""
    return coordinates, velocities


def concatenated(
    declared: Function, *kinds: str, required_by: str = "", otherwise: Callable[..., object] = nothing
) -> Function:
    """Return a function of a coupled system: the concatenated results of its parts.

    Parameters
    ----------
    declared
        The function as systems have it.
    kinds
        How each argument is divided: `instant`, `loops`, `same` for all parts, or the variables with one number each.
    required_by
        Variables without which a part needs no such function.
    otherwise
        Replacement for a part without the function.
    """
    name = declared.__name__

    def whole(self: Concatenation, *arguments: object) -> object:
        results: list[Any] = []
        arguments_of_parts = zip(
            *(self.arguments_of_parts(kind, given) for kind, given in zip(kinds, arguments, strict=True)), strict=True
        )
        for part, own in zip(self.parts, arguments_of_parts, strict=True):
            if not hasattr(part, name) and required_by and part.size(required_by):
                raise TypeError(f"system '{part.name}' of '{self.name}' has {required_by}, but no function '{name}'")
            results.append(getattr(part, name, otherwise)(*own))
        if isinstance(results[0], tuple):
            return tuple(map(np.concatenate, zip(*results, strict=True)))
        return np.concatenate(results)

    whole.__name__, whole.__doc__ = name, declared.__doc__
    return cast("Function", whole)
