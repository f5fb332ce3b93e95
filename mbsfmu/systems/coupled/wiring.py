"""Validated connections between the variables of several systems, by index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.modelling import DataError, closest_match
from mbsfmu.modelling.variables import Variable, rated_names
from mbsfmu.systems.coupled.algebraic_loops import solved
from mbsfmu.systems.coupled.levels import ConnectionLevel, VariableConnection
from mbsfmu.systems.expressions import SystemExpressions
from mbsfmu.systems.system import System
from mbsfmu.tracing.kept_traces import Traces


@dataclass(frozen=True)
class Feed:
    """A calculated parameter of one part connected to a parameter of another one.

    Attributes
    ----------
    source, name
        Index of the part that calculates it, and its name there.
    target, parameter
        Index of the part that takes it, and the index of its parameter.
    """

    source: int
    name: str
    target: int
    parameter: int


class Wiring:
    """The validated connections of systems.

    Parameters
    ----------
    parts
        Systems by name.
    connections
        Pairs (`part.variable`, `part.variable`): source and target.

    Attributes
    ----------
    wires
        Connections from readings to inputs.
    feeds
        Connections from calculated parameters to parameters.
    free
        Indices of part and input of the inputs that no connection drives.
    fed_through
        Those of the wires that carry what depends on accelerations of their source to where it counts at once; known
        with the levels.

    Raises
    ------
    DataError
        When a connection names what is not there, drives something twice, or joins different units.
    """

    def __init__(self, parts: Mapping[str, System], connections: Iterable[tuple[str, str]]) -> None:
        self._names = tuple(parts)
        self._parts = tuple(parts.values())
        self._readings = [_readings(part) for part in self._parts]
        self._motions = [rated_names(part.inputs) for part in self._parts]
        self.wires: list[VariableConnection] = []
        self.feeds: list[Feed] = []
        self.fed_through: list[VariableConnection] = []
        for source, target in connections:
            self._connect(source, target)
        driven = {(wire.target, wire.input) for wire in self.wires}
        self.free = [
            (index, entry)
            for index, part in enumerate(self._parts)
            for entry in range(len(part.inputs))
            if (index, entry) not in driven
        ]

    def _connect(self, source: str, target: str) -> None:
        (from_part, output), (to_part, entry) = self._find(source), self._find(target)
        calculated = {variable.name: variable for variable, _ in self._parts[from_part].balances}
        parameters = [variable.name for variable in self._parts[to_part].parameters]
        inputs = [variable.name for variable in self._parts[to_part].inputs]
        readings = [variable.name for variable in self._readings[from_part]]
        if output in calculated and entry in parameters:
            index = parameters.index(entry)
            feed = Feed(from_part, output, to_part, index)
            given, taken = calculated[output], self._parts[to_part].parameters[index]
            taken_already = any((each.target, each.parameter) == (to_part, index) for each in self.feeds)
            self.feeds.append(feed)
        elif output in readings and entry in inputs:
            wire = VariableConnection(from_part, readings.index(output), to_part, inputs.index(entry))
            given, taken = self.source(wire), self._parts[to_part].inputs[wire.input]
            taken_already = any((each.target, each.input) == (to_part, wire.input) for each in self.wires)
            self.wires.append(wire)
        else:
            if output not in (known := [*readings, *calculated]):
                raise DataError(f"connection: there is no output '{source}'; {closest_match(output, known)}")
            takes = inputs if output in readings else parameters
            raise DataError(f"connection: '{target}' cannot be driven by '{source}'; {closest_match(entry, takes)}")
        if taken_already:
            raise DataError(f"connection: '{target}' is driven twice")
        if taken.name in self._motions[to_part]:
            raise DataError(
                f"connection: '{target}' is of a prescribed motion, which follows a signal or is set from outside; "
                "a connection cannot drive it"
            )
        if given.unit != taken.unit:
            raise DataError(f"connection: '{source}' is in {given.unit}, but '{target}' is in {taken.unit}")

    def _find(self, reference: str) -> tuple[int, str]:
        part, _, variable = reference.partition(".")
        if part not in self._names or not variable:
            raise DataError(f"connection: '{reference}' names no system; {closest_match(part, self._names)}")
        return self._names.index(part), variable

    def levels(self, traces: Traces) -> list[ConnectionLevel]:
        """Return the wires by level: the values of one level depend on inputs of lower levels, or of its loop.

        Parameters
        ----------
        traces
            Has what was found out before.

        Raises
        ------
        DataError
            When nothing determines a loop.
        """
        traced = [SystemExpressions(part) for part in self._parts]
        feeling = traces.fact("wires with accelerations", lambda: self._feeling(traced))
        self.fed_through = [wire for wire, feels in zip(self.wires, feeling, strict=True) if feels]
        needs = np.array(traces.fact("needs of wires", lambda: self._needs(traced)), dtype=bool)
        direct = needs = needs.reshape(len(self.wires), len(self.wires))
        for _ in range(len(self.wires).bit_length()):
            needs = needs | (needs.astype(int) @ needs.astype(int)).astype(bool)
        mutual = needs & needs.T
        depth = np.zeros(len(self.wires), dtype=int)
        # Those of a loop need the same; what needs a loop without being in one comes behind it.
        for index in sorted(range(len(depth)), key=lambda index: (needs[index].sum(), not mutual[index, index])):
            depth[index] = 1 + np.max(depth[needs[index] & ~mutual[index]], initial=0)
        result: list[ConnectionLevel] = []
        for level in range(1, 1 + int(np.max(depth, initial=0))):
            there = np.flatnonzero(depth == level).tolist()
            result.append(ConnectionLevel([self.wires[index] for index in there if not mutual[index, index]]))
            loops = dict.fromkeys(tuple(np.flatnonzero(mutual[index]).tolist()) for index in there)
            result += [
                solved([self.wires[index] for index in loop], traced, direct[np.ix_(loop, loop)])
                for loop in filter(None, loops)
            ]
        return result

    def _feeling(self, traced: Sequence[SystemExpressions]) -> list[bool]:
        """Return for each wire whether it has acceleration feed-through."""
        result = []
        for wire in self.wires:
            source = traced[wire.source]
            outputs, readings = len(source.system.outputs), len(self._readings[wire.source])
            direct = wire.output >= readings - len(source.system.accelerations)
            if wire.output < outputs:
                direct = bool(source.depends(source.outputs, "accelerations")[wire.output].any())
            # Updates know accelerations, and nothing else of a part without continuous states asks for what they read.
            target = self._parts[wire.target]
            result.append(direct and not (target.samplings and not target.states))
        return result

    def _needs(self, traced: Sequence[SystemExpressions]) -> list[list[bool]]:
        """Return for each wire the wires on which its value depends directly."""
        return [self._needed_by(wire, traced[wire.source]) for wire in self.wires]

    def _needed_by(self, wire: VariableConnection, source: SystemExpressions) -> list[bool]:
        """Return the wires on which the value of a wire depends directly."""
        if wire.output >= len(source.system.outputs):
            return [False] * len(self.wires)
        needed = source.depends(source.outputs, "inputs")[wire.output]
        return [each.target == wire.source and bool(needed[each.input]) for each in self.wires]

    def name(self, wire: VariableConnection) -> str:
        """Return the driven input of a wire, as `part.variable`."""
        return f"{self._names[wire.target]}.{self._parts[wire.target].inputs[wire.input].name}"

    def source(self, wire: VariableConnection) -> Variable:
        """Return the source variable of a wire."""
        return self._readings[wire.source][wire.output]

    def free_input(self, reference: str) -> tuple[int, str]:
        """Return the part, by index, and the name of an input given as `part.variable`.

        Raises
        ------
        DataError
            When it is no input, or driven by a connection.
        """
        part, name = self._find(reference)
        free = {(index, self._parts[index].inputs[entry].name) for index, entry in self.free}
        if (part, name) not in free:
            known = [f"{self._names[index]}.{variable}" for index, variable in sorted(free)]
            raise DataError(f"'{reference}' is no input that a signal can drive; {closest_match(reference, known)}")
        return part, name


def _readings(part: System) -> Sequence[Variable]:
    """Return all readings of a part."""
    moving = (part.coordinates, part.velocities, part.states, part.discrete, part.accelerations)
    return [*part.outputs, *(variable for kind in moving for variable in kind)]
