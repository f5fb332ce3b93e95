"""System graph: instances, connections, parameter values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mbsfmu.base.errors import InputError
from mbsfmu.base.written_names import parted
from mbsfmu.cosim.coupling.coupled_joint import CoupledJoint
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measurement_units import IDENTITY, LinearMap, UnitOfMeasurement, conversion
from mbsfmu.modelling.variables import Causality

_CONVERTED_KINDS = {
    ("Integer", "Real"),
    ("Boolean", "Real"),
    ("Boolean", "Integer"),
    ("Enumeration", "Integer"),
    ("Integer", "Enumeration"),
}
"""Compatible kinds of source and target that differ, without rounding."""


@dataclass(frozen=True)
class Connection:
    """A connection from a source to a target variable.

    Attributes
    ----------
    source, target
        Each as (instance, variable).
    factor, offset
        What becomes of a Real value after its conversion to the unit of the target: factor · value + offset.
    convert_units
        Whether the value is converted to the unit of the target at all.

    Raises
    ------
    InputError
        When an end is a text: `Connection.parse` reads these.
    """

    source: tuple[str, str]
    target: tuple[str, str]
    factor: float = 1.0
    offset: float = 0.0
    convert_units: bool = True

    def __post_init__(self) -> None:
        for what, end in (("source", self.source), ("target", self.target)):
            if isinstance(end, str):  # whose first two letters would be taken for element and variable
                raise InputError(f"{what} = {end!r} of a connection must be (element, variable)")

    @property
    def transformation(self) -> LinearMap:
        """Factor and offset as a map."""
        return LinearMap(self.factor, self.offset)

    @classmethod
    def parse(cls, text: str) -> Connection:
        """Read `a.y=b.u`: output y of a drives input u of b; the instance stands before the first dot.

        Raises
        ------
        InputError
            When it does not read so.
        """
        source, equals, target = parted(text, "=")
        return cls._between(source, target if equals else "", text)

    @classmethod
    def _between(cls, source: str, target: str, text: str) -> Connection:
        """Return the connection of two ends, which messages call by a text."""
        ends = [end.strip().partition(".") for end in (source, target)]
        if not all(instance and variable for instance, _, variable in ends):
            raise InputError(f"the connection '{text}' is refused: it must read a.y=b.u")
        return cls((ends[0][0], ends[0][2]), (ends[1][0], ends[1][2]))

    @classmethod
    def of(cls, given: str | tuple[str, str] | Connection) -> Connection:
        """Return what a user connects: a connection, a text as `parse` reads it, or a pair of `instance.variable`.

        Raises
        ------
        InputError
            When it is none of these.
        """
        if isinstance(given, Connection):
            return given
        if isinstance(given, tuple) and len(given) == 2 and all(isinstance(end, str) for end in given):
            return cls._between(*given, "=".join(given))
        if not isinstance(given, str):
            raise InputError(f"the connection {given!r} is refused: it must read a.y=b.u, or be a pair of a.y and b.u")
        return cls.parse(given)

    def __str__(self) -> str:
        return f"{'.'.join(self.source)}={'.'.join(self.target)}"


@dataclass(frozen=True)
class Exposed:
    """A connector of the whole system, and its variable.

    Attributes
    ----------
    name
        Name of the connector.
    end
        The variable as (instance, variable).
    map
        What becomes of a value on its way, from the connector to an input, from an output to the connector.
    unit
        Unit of the connector, without a name where nothing says one.
    """

    name: str
    end: tuple[str, str]
    map: LinearMap
    unit: UnitOfMeasurement


@dataclass(frozen=True)
class SystemGraph:
    """FMUs and their connections.

    Attributes
    ----------
    units
        FMU file of each instance, by the instance's name.
    connections
        The connections.
    parameters
        Values by (instance, variable), set before initialization.
    start, stop
        Default experiment in s; None where nothing is said.
    inputs, outputs
        Connectors of the whole system: inputs and parameters, which may drive several variables, and outputs.
    exchanged
        Instances that are run by model exchange, or are not; the others as their FMUs are.
    called
        What messages call FMU files that were unpacked for the run, by their files.
    joints
        Joints between mechanisms of the FMUs.
    placed
        Workers that instances run on where the run has a scheduler.
    """

    units: Mapping[str, Path]
    connections: tuple[Connection, ...] = ()
    parameters: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    start: float = 0.0
    stop: float | None = None
    inputs: tuple[Exposed, ...] = ()
    outputs: tuple[Exposed, ...] = ()
    exchanged: Mapping[str, bool] = field(default_factory=dict)
    called: Mapping[Path, str] = field(default_factory=dict)
    joints: tuple[CoupledJoint, ...] = ()
    placed: Mapping[str, str] = field(default_factory=dict)


def check_connections(graph: SystemGraph, instances: Mapping[str, Instance]) -> None:
    """Check the connections against the descriptions of the FMUs.

    Raises
    ------
    InputError
        When an instance or variable is not there, cannot be connected so, or is driven twice.
    """
    driven: set[tuple[str, str]] = set()
    for connection in graph.connections:
        for end in (connection.source, connection.target):
            _check_end(end, connection, instances)
        (from_name, output), (to_name, entry) = connection.source, connection.target
        source, target = instances[from_name].variables[output], instances[to_name].variables[entry]
        if source.causality in (Causality.INPUT, Causality.PARAMETER):
            raise InputError(f"connection {connection}: {output} of {from_name} is no output")
        if target.causality not in (Causality.INPUT, Causality.PARAMETER):
            raise InputError(f"connection {connection}: {entry} of {to_name} is neither input nor parameter")
        _check_kinds(connection, instances)
        value_map(connection, instances)
        if connection.target in driven:
            raise InputError(
                f"connection {connection}: {instances[to_name].called(entry)} of {to_name} is driven twice"
            )
        driven.add(connection.target)
    for exposed in (*graph.inputs, *graph.outputs):
        instance = instances[exposed.end[0]]
        variable = instance.known_name(exposed.end[1])
        if variable not in instance.variables and variable not in instance.arrays:
            near = closest_match(variable, instance.variables)
            raise InputError(f"connector {exposed.name}: {instance.name} has no variable '{exposed.end[1]}'; {near}")
    for exposed in graph.inputs:
        instance = instances[exposed.end[0]]
        variable = instance.known_name(exposed.end[1])
        for name in map(instance.behind, instance.arrays.get(variable, (variable,))):
            if (instance.name, name) in driven:
                raise InputError(
                    f"the connector {exposed.name} of the system drives {instance.called(name)} of {instance.name}, "
                    "which something else drives too"
                )
            driven.add((instance.name, name))


def undriven_inputs(
    graph: SystemGraph, instances: Mapping[str, Instance], given: Collection[tuple[str, str]]
) -> list[str]:
    """Return the inputs without a connection or given value, as `instance.variable`.

    Those that follow a signal inside their FMU are none of them, where the FMU says so.
    """
    driven = {*given, *(connection.target for connection in graph.connections)}
    result = []
    for name, instance in instances.items():
        inputs = [
            each.name
            for each in instance.variables.values()
            if each.causality is Causality.INPUT and each.name not in instance.aliases
        ]
        left = [each for each in inputs if (name, each) not in driven]
        inside = _followed_inside(instance.carried, inputs) if left else set()
        result += [f"{name}.{each}" for each in left if each not in inside]
    return result


def _followed_inside(carried: str | None, inputs: Collection[str]) -> set[str]:
    if carried is None:
        return set()
    from mbsfmu.model.carried import followed_inside  # noqa: PLC0415 - loads the data of models

    return followed_inside(carried, inputs)


def _check_end(end: tuple[str, str], connection: Connection, instances: Mapping[str, Instance]) -> None:
    name, variable = end
    if name not in instances:
        raise InputError(f"connection {connection}: there is no FMU '{name}'; {closest_match(name, instances)}")
    if variable not in instances[name].variables:
        near = closest_match(variable, instances[name].variables)
        raise InputError(f"connection {connection}: {name} has no variable '{variable}'; {near}")


def _check_kinds(connection: Connection, instances: Mapping[str, Instance]) -> None:
    (from_name, output), (to_name, entry) = connection.source, connection.target
    kinds = instances[from_name].kinds[output], instances[to_name].kinds[entry]
    if not_passed := {"Binary", "Clock"}.intersection(kinds):
        raise InputError(f"connection {connection} is of type {not_passed.pop()}; such values are not passed on")
    if kinds[0] != kinds[1] and kinds not in _CONVERTED_KINDS:
        raise InputError(f"connection {connection}: {output} is of type {kinds[0]}, but {entry} of type {kinds[1]}")
    if connection.transformation != IDENTITY and kinds != ("Real", "Real"):
        raise InputError(f"connection {connection} has a linear transformation, but is not from Real to Real")


def value_map(connection: Connection, instances: Mapping[str, Instance]) -> LinearMap:
    """Return the conversion of a value on a connection: unit, then transformation.

    Raises
    ------
    InputError
        When the units cannot be converted.
    """
    if not connection.convert_units:
        return connection.transformation
    (from_name, output), (to_name, entry) = connection.source, connection.target
    source, target = instances[from_name].units[output], instances[to_name].units[entry]
    try:
        return conversion(source, target).then(connection.transformation)
    except InputError as error:
        raise InputError(
            f"connection {connection}: {output} is in {source.name}, but {entry} is in {target.name}: {error}"
        ) from None


def is_text(connection: Connection, instances: Mapping[str, Instance]) -> bool:
    """Return whether a connection is of String variables."""
    name, variable = connection.source
    return instances[name].kinds[variable] == "String"
