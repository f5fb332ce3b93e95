"""What is coupled with what: instances, connections, parameter values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mbsfmu.cosim.instance import NUMERIC, Instance
from mbsfmu.errors import InputError
from mbsfmu.variables import Causality


@dataclass(frozen=True)
class Connection:
    """A variable that drives another one.

    Attributes
    ----------
    source, target
        Each as (instance, variable).
    factor, offset
        The target gets factor · source + offset.
    """

    source: tuple[str, str]
    target: tuple[str, str]
    factor: float = 1.0
    offset: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Connection:
        """Read `a.y=b.u`: output y of a drives input u of b; the instance stands before the first dot.

        Raises
        ------
        InputError
            When it does not read so.
        """
        source, equals, target = text.partition("=")
        ends = [end.strip().partition(".") for end in (source, target)]
        if not equals or not all(instance and variable for instance, _, variable in ends):
            raise InputError(f"the connection '{text}' is refused: it must read a.y=b.u")
        return cls((ends[0][0], ends[0][2]), (ends[1][0], ends[1][2]))

    def __str__(self) -> str:
        return f"{'.'.join(self.source)}={'.'.join(self.target)}"


@dataclass(frozen=True)
class SystemGraph:
    """Units and their connections.

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
    """

    units: Mapping[str, Path]
    connections: tuple[Connection, ...] = ()
    parameters: Mapping[tuple[str, str], Any] = field(default_factory=dict)
    start: float = 0.0
    stop: float | None = None


def check_connections(graph: SystemGraph, instances: Mapping[str, Instance]) -> None:
    """Hold the connections against the descriptions of the units.

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
        if source.unit != target.unit and "1" not in (source.unit, target.unit):
            raise InputError(f"connection {connection}: {output} is in {source.unit}, but {entry} is in {target.unit}")
        if connection.target in driven:
            raise InputError(f"connection {connection}: {entry} of {to_name} is driven twice")
        driven.add(connection.target)


def _check_end(end: tuple[str, str], connection: Connection, instances: Mapping[str, Instance]) -> None:
    name, variable = end
    if name not in instances:
        raise InputError(f"connection {connection}: there is no unit '{name}'; units are {', '.join(instances)}")
    if variable not in instances[name].variables:
        raise InputError(f"connection {connection}: {name} has no variable '{variable}'")
    if instances[name].kinds[variable] not in NUMERIC:
        kind = instances[name].kinds[variable]
        raise InputError(f"connection {connection}: {variable} of {name} is a {kind} and cannot be connected")
