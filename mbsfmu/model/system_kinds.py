"""Registry of the kinds of systems in a model, and strokes of their icons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field

from mbsfmu.io.signals import AnySignal
from mbsfmu.modelling import Condition, Data, DataError, Kinds, Name
from mbsfmu.modelling.part import Part

BODY, JOINT, FORCE, FLUID = (52, 73, 94), (44, 62, 80), (192, 57, 43), (41, 128, 185)
"""Colours: red, green, blue, 0 to 255."""


@dataclass(frozen=True)
class Stroke:
    """A straight line with round ends; a dot where both ends are the same.

    Attributes
    ----------
    begin, end
        In the plane of the picture, y upwards, in any unit.
    width
        In pixels of 96 across the picture.
    colour
        Red, green, blue, 0 to 255.
    """

    begin: tuple[float, float]
    end: tuple[float, float]
    width: float = 5.0
    colour: tuple[int, int, int] = BODY


def box() -> Iterator[Stroke]:
    """Draw a box with a line that goes in and one that comes out."""
    corners = [(-1.0, -0.7), (1.0, -0.7), (1.0, 0.7), (-1.0, 0.7), (-1.0, -0.7)]
    for begin, end in pairwise(corners):
        yield Stroke(begin, end)
    for side in (-1.0, 1.0):
        yield Stroke((side, 0.0), (2.0 * side, 0.0), colour=FORCE)


@dataclass(frozen=True)
class ModelConnections:
    """What drives the variables of a model's systems.

    Attributes
    ----------
    systems
        All systems by name.
    connections
        Pairs of `system.variable`, source and target, of variables that exist.
    signals
        Signals of inputs by `system.variable`.
    stop_time
        End of a run in s.
    """

    systems: Mapping[str, Any]
    connections: tuple[tuple[str, str], ...]
    signals: Mapping[str, AnySignal]
    stop_time: float

    @property
    def driven(self) -> set[str]:
        """Variables that follow a signal or another variable."""
        return {*self.signals, *(target for _, target in self.connections)}


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
        Function of a system, and of values of its parameters by name that are not as in the data, which yields a
        sentence on each number that is hardly meant.
    topology
        Function that returns tables of how the parts of a system are joined, by name; a table is a list of rows, or a
        mapping of names to rows, and a row a mapping of columns to values.
    icon
        Function that yields the strokes of a system's icon; without any it is a box.
    check_connections
        Function of a system's name, a system and the connections of the model, which raises a `DataError` on wrong or
        missing ones.
    conditions
        Function of a system that yields conditions on its variables that users of a run should know of.
    """

    name: str
    data: type[Data]
    field: str
    family: Kinds[Any] | None = None
    diagnostics: Callable[[Any, Mapping[str, float]], Iterable[str]] = lambda *_: ()
    topology: Callable[[Any], dict[str, Any]] = lambda _: {}
    icon: Callable[[Any], Iterable[Stroke]] = lambda _: ()
    check_connections: Callable[[str, Any, ModelConnections], None] = lambda *_: None
    conditions: Callable[[Any], Iterable[Condition]] = lambda _: ()

    def is_named(self, content: dict[str, Any]) -> bool:
        """Return whether a JSON object has the field of this kind, with a known type where there are several."""
        return self.field in content and (self.family is None or self.family.find(content[self.field]) is not None)


SYSTEM_KINDS: list[SystemKind] = []
"""All kinds, in the order of comparison with data."""


def register_system_kind(kind: SystemKind) -> None:
    """Register a kind of system."""
    SYSTEM_KINDS.append(kind)


def system_kind(data: Any) -> SystemKind | None:
    """Return the kind of a system, or of its JSON object; None without one."""
    if isinstance(data, dict):
        return next((kind for kind in SYSTEM_KINDS if kind.is_named(data)), None)
    return next((kind for kind in SYSTEM_KINDS if isinstance(data, kind.data)), None)


def kind_name(data: Any) -> str | None:
    """Return the name of the kind of a system, or of its JSON object; None without one."""
    kind = system_kind(data)
    return None if kind is None else kind.name


def kind_of(data: Data) -> SystemKind:
    """Return the kind of a system of a model."""
    return next(kind for kind in SYSTEM_KINDS if isinstance(data, kind.data))


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

    def topology(self) -> dict[str, Any]:
        """Return tables of how the parts are joined, for `mbsfmu show`; see `SystemKind.topology`."""
        return {}

    def icon(self) -> Iterable[Stroke]:
        """Yield the strokes of the icon of FMUs; without any it is a box."""
        return ()

    def check_connections(self, name: str, given: ModelConnections) -> None:
        """Check the connections of the system, whose name is given.

        Raises
        ------
        DataError
            When one is wrong or missing.
        """

    def conditions(self) -> Iterable[Condition]:
        """Yield conditions on its variables that users of a run should know of."""
        return ()

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class without equations."""
        super().check_class()
        if not cls.gives("make_system"):
            raise DataError(f"class {cls.__name__}: a system has a function make_system")


register_system_kind(
    SystemKind(
        "system",
        SystemData,
        "type",
        SYSTEMS,
        diagnostics=lambda data, _: data.diagnostics(),
        topology=lambda data: data.topology(),
        icon=lambda data: data.icon(),
        check_connections=lambda name, data, given: data.check_connections(name, given),
        conditions=lambda data: data.conditions(),
    )
)
