"""Connections, values and connectors of arrays, element by element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.graph import Connection, Exposed, SystemGraph
from mbsfmu.cosim.fmus.fmu_instance import Instance


def connect_elements(graph: SystemGraph, instances: Mapping[str, Instance]) -> SystemGraph:
    """Return a graph of scalars: declarations of an array apply to each element.

    Flat names become those of the variables that they mean, and so do aliases where they are written to.

    Raises
    ------
    InputError
        When arrays of different sizes are connected, an array with a scalar, or an array is given another number of
        values than it has.
    """
    parameters: dict[tuple[str, str], Any] = {}
    graph = _with_known_names(graph, instances)
    for (name, variable), value in graph.parameters.items():
        elements = _elements((name, variable), instances)
        given = {variable: value} if elements is None else by_element(f"{name}.{variable}", elements, value)
        for each, one in given.items():
            take(parameters, (name, each), one, instances)
    return replace(
        graph,
        connections=tuple(each for connection in graph.connections for each in _connections(connection, instances)),
        parameters=parameters,
        outputs=tuple(each for exposed in graph.outputs for each in _shown(exposed, instances)),
    )


def _with_known_names(graph: SystemGraph, instances: Mapping[str, Instance]) -> SystemGraph:
    """Return a graph with variable names in place of flat names."""

    def known(end: tuple[str, str]) -> tuple[str, str]:
        name, variable = end
        return (name, instances[name].known_name(variable)) if name in instances else end

    return replace(
        graph,
        connections=tuple(
            replace(each, source=known(each.source), target=known(each.target)) for each in graph.connections
        ),
        parameters={known(end): value for end, value in graph.parameters.items()},
        outputs=tuple(replace(each, end=known(each.end)) for each in graph.outputs),
    )


def by_element(reference: str, elements: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return the values of an array by its elements: an array, row by row, or numbers with blanks or commas between.

    Raises
    ------
    InputError
        When there are not as many values as elements; `reference` is what the message calls the array.
    """
    text = isinstance(value, str)
    given = value.replace(",", " ").split() if text else np.asarray(value, dtype=object).ravel().tolist()
    if len(given) != len(elements):
        raise InputError(f"{reference} has {len(elements)} elements, but is given {len(given)} values")
    return dict(zip(elements, given, strict=True))


def take(
    values: dict[tuple[str, str], Any], end: tuple[str, str], value: Any, instances: Mapping[str, Instance]
) -> None:
    """Take a value for the variable behind a name that may be an alias, unless it has one by another name.

    Raises
    ------
    InputError
        When it has.
    """
    name, variable = end
    behind = (name, instances[name].behind(variable)) if name in instances else end
    if behind in values:
        raise InputError(f"{name}.{instances[name].called(behind[1])} is given twice, by two of its names")
    values[behind] = value


def _elements(end: tuple[str, str], instances: Mapping[str, Instance]) -> tuple[str, ...] | None:
    name, variable = end
    return instances[name].arrays.get(variable) if name in instances else None


def _connections(connection: Connection, instances: Mapping[str, Instance]) -> Iterator[Connection]:
    sides = [_elements(end, instances) for end in (connection.source, connection.target)]
    if sides == [None, None]:
        yield _behind(connection, instances)
        return
    counts = ["one value" if side is None else f"{len(side)} elements" for side in sides]
    if None in sides or counts[0] != counts[1]:
        ends = [".".join(each) for each in (connection.source, connection.target)]
        raise InputError(f"connection {connection}: {ends[0]} has {counts[0]}, but {ends[1]} has {counts[1]}")
    names = connection.source[0], connection.target[0]
    for source, target in zip(*(side for side in sides if side is not None), strict=True):
        yield _behind(replace(connection, source=(names[0], source), target=(names[1], target)), instances)


def _behind(connection: Connection, instances: Mapping[str, Instance]) -> Connection:
    """Return a connection to the variable behind its target, which may be an alias."""
    name, variable = connection.target
    return replace(connection, target=(name, instances[name].behind(variable))) if name in instances else connection


def _shown(exposed: Exposed, instances: Mapping[str, Instance]) -> Iterator[Exposed]:
    """Yield the connectors of an array's elements, which have indices."""
    elements = _elements(exposed.end, instances)
    if elements is None:
        yield exposed
        return
    for each in elements:
        yield replace(exposed, name=exposed.name + each.removeprefix(exposed.end[1]), end=(exposed.end[0], each))
