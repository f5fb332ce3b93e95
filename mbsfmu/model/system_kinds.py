"""Kinds of systems that a model is made of: each registers itself where its data are defined."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mbsfmu.modelling import Data, DataError, Kinds, Name
from mbsfmu.modelling.part import Part


@dataclass(frozen=True)
class SystemKind:
    """A kind of systems, as data.

    Attributes
    ----------
    name
        The word for it, such as `mechanism`.
    data
        The class of its data, or the base of several.
    field
        The field of its JSON object by which it is recognised.
    family
        The classes by the `type` in their JSON objects, where there are several; None where there is one.
    diagnostics
        Function that yields a sentence on each number of a system that is hardly meant.
    """

    name: str
    data: type[Data]
    field: str
    family: Kinds[Any] | None = None
    diagnostics: Callable[[Any], Iterable[str]] = lambda _: ()

    def has(self, data: Any) -> bool:
        """Return whether data, or the JSON object of them, are of this kind."""
        if isinstance(data, dict):
            return self.field in data and (self.family is None or self.family.find(data[self.field]) is not None)
        return isinstance(data, self.data)


SYSTEM_KINDS: list[SystemKind] = []
"""All kinds, in the order in which data are compared with them."""


def register_system_kind(kind: SystemKind) -> None:
    """Make a kind of systems known."""
    SYSTEM_KINDS.append(kind)


def system_kind(data: Any) -> SystemKind | None:
    """Return the kind of a system, or of the JSON object of one; None where it is of no kind."""
    return next((kind for kind in SYSTEM_KINDS if kind.has(data)), None)


SYSTEMS: Kinds[SystemData] = Kinds("system")
"""Kinds of systems of users by their types."""


class SystemData(Part, abstract=True):
    """The base of a user's own kind of systems, such as electric circuits: data that make their equations.

    A class that derives from it is registered under its `type`, by which JSON files name it. It may have parts of its
    own as fields. A model, its FMUs and its studies take it as they take a mechanism or a circuit.

    Attributes
    ----------
    name
        What messages call it; of a system of a model, the name of the system.
    """

    family = SYSTEMS
    name: Annotated[Name, Field(exclude=True, repr=False)] = "system"

    def make_system(self, name: str, start_values: dict[str, float]) -> Any:
        """Return the equations, a `System`.

        Parameters
        ----------
        name
            Name of the system in the model.
        start_values
            Start values of inputs, parameters and states by name, where they are not those of the data.
        """
        raise NotImplementedError(f"{type(self).__name__} has no make_system")

    def diagnostics(self) -> Iterable[str]:
        """Yield a sentence on each number that is hardly meant."""
        return ()

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class without equations."""
        super().check_class()
        if not cls.gives("make_system"):
            raise DataError(f"class {cls.__name__}: a system has a function make_system")


register_system_kind(SystemKind("system", SystemData, "type", SYSTEMS, lambda data: data.diagnostics()))
