"""Registry of the kinds of systems in a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mbsfmu.modelling import Data, DataError, Kinds, Name
from mbsfmu.modelling.part import Part


@dataclass(frozen=True)
class SystemKind:
    """A kind of system.

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
        """Return whether data, or their JSON object, are of this kind."""
        if isinstance(data, dict):
            return self.field in data and (self.family is None or self.family.find(data[self.field]) is not None)
        return isinstance(data, self.data)


SYSTEM_KINDS: list[SystemKind] = []
"""All kinds, in the order of comparison with data."""


def register_system_kind(kind: SystemKind) -> None:
    """Register a kind of system."""
    SYSTEM_KINDS.append(kind)


def system_kind(data: Any) -> SystemKind | None:
    """Return the kind of a system, or of its JSON object; None without one."""
    return next((kind for kind in SYSTEM_KINDS if kind.has(data)), None)


SYSTEMS: Kinds[SystemData] = Kinds("system")
"""User-defined kinds of systems by type."""


class SystemData(Part, abstract=True):
    """Base class of user-defined kinds of systems, such as electric circuits: data that make their equations.

    A derived class is registered under its `type`, which names it in JSON files. It may have parts as fields. Models,
    FMUs and studies accept it like a mechanism or a circuit.

    Attributes
    ----------
    name
        Name in messages; the name of the system in a model.
    """

    family = SYSTEMS
    name: Annotated[Name, Field(exclude=True, repr=False)] = "system"

    def make_system(self, name: str, start_values: dict[str, float]) -> Any:
        """Return the equations as a `System`.

        Parameters
        ----------
        name
            Name of the system in the model.
        start_values
            Start values of inputs, parameters and states by name, where they are not those of the data.
        """
        raise NotImplementedError(f"{type(self).__name__} has no make_system")

    def diagnostics(self) -> Iterable[str]:
        """Yield a warning for each implausible number."""
        return ()

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class without equations."""
        super().check_class()
        if not cls.gives("make_system"):
            raise DataError(f"class {cls.__name__}: a system has a function make_system")


register_system_kind(SystemKind("system", SystemData, "type", SYSTEMS, lambda data: data.diagnostics()))
