"""Flattening of nested systems to FMUs and connections."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.graph import Connection, Exposed, SystemGraph
from mbsfmu.cosim.fmus.archive import read_fmu
from mbsfmu.cosim.fmus.variable_descriptions import described_arrays, described_measurement_units, sized_by
from mbsfmu.cosim.ssp.structure import (
    BASIC_TYPES,
    Binding,
    Connector,
    Faults,
    ParameterValue,
    SspComponent,
    SspSystem,
    SspWire,
    SystemStructure,
)
from mbsfmu.modelling.measurement_units import IDENTITY, LinearMap, UnitOfMeasurement, conversion

Place = tuple[tuple[str, ...], str]
"""A connector: the names of the element and of the systems around it, and its own. The root system has no names."""

logger = logging.getLogger(__name__)
_ELEMENT = re.compile(r"(?P<array>.+)\[[1-9]\d*(,[1-9]\d*)*\]", re.ASCII)
_SOURCES = {
    "element": ("output", "calculatedParameter", "local", "constant"),
    "system": ("input", "parameter", "structuralParameter"),
}


@dataclass(frozen=True)
class SignalPath:
    """Conversion of a value between two connectors of an FMU.

    Attributes
    ----------
    map
        What becomes of it.
    unit
        Unit it has at the end; None where that is not known.
    """

    map: LinearMap
    unit: UnitOfMeasurement | None

    def over(self, wire: SspWire, target: UnitOfMeasurement | None) -> SignalPath:
        """Return the conversion extended by a connection to a connector; None keeps the unit.

        Raises
        ------
        InputError
            When the units cannot be converted.
        """
        after = self.to(target) if wire.convert_units else SignalPath(self.map, target or self.unit)
        return SignalPath(after.map.then(wire.transformation), after.unit)

    def to(self, target: UnitOfMeasurement | None) -> SignalPath:
        """Return the way with the value converted to a unit."""
        if self.unit is None or target is None:
            return SignalPath(self.map, target or self.unit)
        return SignalPath(self.map.then(conversion(self.unit, target)), target)


class Flattening:
    """Traces connections through the connectors of systems.

    Parameters
    ----------
    structure
        The structure.
    folder
        Where the package lies unpacked.
    name
        Name of the package, for messages.
    strict
        Whether units that nothing defines are refused; values in such are otherwise taken as they are, which is told.
    """

    def __init__(self, structure: SystemStructure, folder: Path, name: str, *, strict: bool = False) -> None:
        self._structure = structure
        self._name = name
        self._strict = strict
        self._faults = Faults(name)
        sources = {"/".join(path): unquote(each.source) for path, each in structure.system.components()}
        self._files = {unit: folder / source for unit, source in sources.items()}
        self._called = {folder / source: f"{name}/{source}" for source in sources.values()}
        self._variables: dict[str, _DescribedUnits] = {}
        for unit, file in self._files.items():
            with self._faults.noted():
                self._variables[unit] = _DescribedUnits.of(file)
        self._faults.check()
        described = (unit for units in self._variables.values() for unit in units.units.values())
        self._defined = {unit.name: unit for unit in described if unit.exponents is not None}
        self._defined.update({unit.name: unit for unit in structure.units})
        self._undefined: set[str] = set()
        self._connectors: dict[Place, Connector] = {}
        self._is_system: dict[tuple[str, ...], bool] = {}
        self._inward: dict[Place, tuple[Place, SspWire]] = {}
        self._collect(structure.system, ())
        self._connect(structure.system, ())
        self._faults.check()

    def graph(self) -> SystemGraph:
        """Return FMUs, connections, parameter values and the connectors of the outermost system.

        Raises
        ------
        InputError
            When connectors do not fit together.
        """
        connections: list[Connection] = []
        inputs: list[Exposed] = []
        outputs: list[Exposed] = []
        for target in self._inward:
            with self._faults.noted():
                self._add_inward(target, connections, inputs)
        for connector in self._structure.system.connectors:
            with self._faults.noted():
                self._add_output(connector, outputs)
        parameters = dict(self._parameters())
        self._faults.check()
        return SystemGraph(
            self._files,
            tuple(connections),
            parameters,
            self._structure.start or 0.0,
            self._structure.stop,
            tuple(inputs),
            tuple(outputs),
            {
                "/".join(path): each.exchanged
                for path, each in self._structure.system.components()
                if each.exchanged is not None
            },
            self._called,
            tuple(self._structure.system.joined()),
            {
                "/".join(path): each.worker
                for path, each in self._structure.system.components()
                if each.worker is not None
            },
        )

    def _add_inward(self, target: Place, connections: list[Connection], inputs: list[Exposed]) -> None:
        """Add the connection to a variable of a unit, or the connector of the outermost system that drives it."""
        path, variable = target
        if self._is_system[path]:
            return
        source, way = self._trace(target)
        end = ("/".join(path), variable)
        if source[0]:
            connections.append(self._connection(("/".join(source[0]), source[1]), end, way.map))
        else:
            behind = self._variables[end[0]][variable]
            named = UnitOfMeasurement(self._connectors[source].unit or "")
            unit = self._unit(source) or (behind if way.map == IDENTITY and not named.name else named)
            inputs.append(Exposed(source[1], end, way.map, _as_behind(unit, behind) or unit))

    def _add_output(self, connector: Connector, outputs: list[Exposed]) -> None:
        """Add a connector of the outermost system that shows a variable of an FMU."""
        place: Place = ((), connector.name)
        if connector.kind not in _SOURCES["element"] or place not in self._inward:
            return
        source, way = self._trace(place)
        if source[0]:
            unit = way.unit or UnitOfMeasurement("")
            outputs.append(Exposed(connector.name, ("/".join(source[0]), source[1]), way.map, unit))

    def _connection(self, start: tuple[str, str], end: tuple[str, str], way: LinearMap) -> Connection:
        """Return a connection; where it does what the units of its ends ask for, these tell it to."""
        try:
            asked = conversion(self._variables[start[0]][start[1]], self._variables[end[0]][end[1]])
        except InputError:
            asked = None
        if asked is not None and math.isclose(asked.factor, way.factor) and math.isclose(asked.offset, way.offset):
            return Connection(start, end)
        return Connection(start, end, way.factor, way.offset, convert_units=False)

    # -- connectors -------------------------------------------------------------------------------------------

    def _collect(self, element: SspSystem | SspComponent, path: tuple[str, ...]) -> None:
        self._is_system[path] = isinstance(element, SspSystem)
        for connector in element.connectors:
            if (path, connector.name) in self._connectors:
                self._faults.note(f"{self._name}: '{element.name}' has two connectors called '{connector.name}'")
            self._connectors[path, connector.name] = connector
            if isinstance(element, SspComponent) and not self._variables["/".join(path)].has(connector.name):
                self._faults.note(f"{self._name}: the FMU of '{element.name}' has no variable '{connector.name}'")
        if isinstance(element, SspSystem):
            for each in element.elements:
                self._collect(each, (*path, each.name))

    def _connect(self, system: SspSystem, path: tuple[str, ...]) -> None:
        for wire in system.wires:
            with self._faults.noted():
                self._lead(wire, system, path)
        for element in system.elements:
            if isinstance(element, SspSystem):
                self._connect(element, (*path, element.name))

    def _lead(self, wire: SspWire, system: SspSystem, path: tuple[str, ...]) -> None:
        """Record the target of a connection."""
        start, end = (self._place(system, path, each, wire) for each in (wire.start, wire.end))
        gives = [self._gives(place, path) for place in (start, end)]
        if gives[0] == gives[1]:
            raise InputError(
                f"{self._name}: the connection {wire} goes from {self._connectors[start].kind} to "
                f"{self._connectors[end].kind}; one end must give a value and the other one take it"
            )
        for place in (start, end):
            if self._connectors[place].type in ("Binary", "Clock"):
                raise InputError(
                    f"{self._name}: the connection {wire} is of type {self._connectors[place].type}, which is not "
                    "supported"
                )
        source, target = (start, end) if gives[0] else (end, start)
        if target in self._inward:
            raise InputError(f"{self._name}: the connector {_shown(target)} is driven twice")
        self._inward[target] = (source, wire)

    def _place(self, system: SspSystem, path: tuple[str, ...], end: tuple[str | None, str], wire: SspWire) -> Place:
        element, connector = end
        if element is not None and system.element(element) is None:
            raise InputError(f"{self._name}: the connection {wire} refers to '{element}', which is no element")
        place = ((*path, element) if element is not None else path, connector)
        if place not in self._connectors:
            raise InputError(f"{self._name}: the connection {wire} refers to a connector that is not declared")
        return place

    def _gives(self, place: Place, inside: tuple[str, ...]) -> bool:
        """Return whether a connector is a source of connections inside a system."""
        return self._connectors[place].kind in _SOURCES["system" if place[0] == inside else "element"]

    def _unit(self, place: Place) -> UnitOfMeasurement | None:
        """Return the unit of a connector: as declared, else that of the variable of its FMU."""
        connector = self._connectors[place]
        own = self._variable_unit(place)
        if connector.unit is None or (own is not None and own.name == connector.unit):
            return own
        return self._defined_unit(connector.unit, own)

    def _defined_unit(
        self, name: str, own: UnitOfMeasurement | None, among: Mapping[str, UnitOfMeasurement] = MappingProxyType({})
    ) -> UnitOfMeasurement | None:
        """Return a unit by its name, as some definitions have it, the package or one of its FMUs.

        One that nothing defines and whose name means none is no unit: the value stays as it is, in the unit that it
        has. So does that in `1`, unless it is a ratio.
        """
        if name in ("", "1"):
            return UnitOfMeasurement(name) if name and own is not None and own.is_ratio else own
        unit = among.get(name, self._defined.get(name))
        if unit is not None:
            return replace(unit, relative=None)
        if own is not None and own.name == name:
            return own
        sentence = f"{self._name}: nothing defines the unit '{name}'"
        if self._strict:
            self._faults.note(sentence)
        elif name not in self._undefined:
            self._undefined.add(name)
            logger.warning("%s; values in it are taken as they are", sentence)
        return None

    def _trace(self, target: Place, source: Place | None = None) -> tuple[Place, SignalPath]:
        """Return where the value of a connector comes from, or a connector that it passes, and its way from there."""
        wires = []
        place = target
        while place in self._inward and place != source:
            wires.append((self._inward[place][1], place))
            place = self._inward[place][0]
            if len(wires) > len(self._inward):
                raise InputError(f"{self._name}: the connector {_shown(target)} drives itself")
        first, last = self._variable_unit(place), self._variable_unit(target)
        try:
            way = SignalPath(IDENTITY, first).to(_as_behind(self._unit(place), first, last))
            for wire, reached in reversed(wires):
                way = way.over(wire, _as_behind(self._unit(reached), first, last))
            return place, way.to(last)
        except InputError as error:
            raise InputError(f"{self._name}: from {_shown(place)} to {_shown(target)}: {error}") from None

    def _variable_unit(self, place: Place) -> UnitOfMeasurement | None:
        """Return the unit of the variable behind the connector of a component; None for a connector of a system."""
        return None if self._is_system[place[0]] else self._variables["/".join(place[0])][place[1]]

    # -- parameters -------------------------------------------------------------------------------------------

    def _parameters(self) -> Iterator[tuple[tuple[str, str], Any]]:
        """Yield the values of all bindings, the inner ones first: what comes later counts."""
        yield from self._of_element(self._structure.system, ())

    def _of_element(
        self, element: SspSystem | SspComponent, path: tuple[str, ...]
    ) -> Iterator[tuple[tuple[str, str], Any]]:
        if isinstance(element, SspSystem):
            for each in element.elements:
                yield from self._of_element(each, (*path, each.name))
        for binding in element.bindings:
            units = {unit.name: unit for unit in binding.values.units}
            for value in binding.values.values:
                yield from self._of_value(value, binding, units, element, path)

    def _of_value(
        self, value: ParameterValue, binding: Binding, units: Mapping[str, UnitOfMeasurement],
        element: SspSystem | SspComponent,
        path: tuple[str, ...],
    ) -> Iterator[tuple[tuple[str, str], Any]]:  # fmt: skip
        """Yield the variables that a value of a binding is for, with what becomes of it."""
        name = binding.prefix + value.name
        targets = [(name, IDENTITY, True)]
        if binding.mapping is not None:
            entries = [entry for entry in binding.mapping.entries if entry.source == name]
            targets = [(entry.target, entry.transformation, entry.convert_units) for entry in entries]
        for target, transformation, converts in targets:
            wire = SspWire((None, name), (None, target), transformation, converts)
            found = list(self._named(element, path, target))
            if not found:
                where = "/".join(path) or self._structure.system.name
                logger.warning("%s: the value of '%s' fits nothing in '%s'", self._name, target, where)
            for reference, own, inner in found:
                if BASIC_TYPES[value.type] != "Real":
                    yield reference, value.value.split() if value.dimensions else value.value
                    continue
                unit = None if value.unit is None else self._defined_unit(value.unit, own, units)
                try:
                    way = SignalPath(IDENTITY, unit).over(wire, own)
                except InputError as error:
                    self._faults.note(f"{self._name}: the value of '{target}': {error}")
                    continue
                numbers = [inner(way.map(float(each))) for each in value.value.split()]
                yield reference, numbers if value.dimensions else numbers[0]

    def _named(
        self, element: SspSystem | SspComponent, path: tuple[str, ...], name: str
    ) -> Iterator[tuple[tuple[str, str], UnitOfMeasurement | None, LinearMap]]:
        """Yield the variables that a name means in an element, with the unit of the name and the map behind it."""
        if isinstance(element, SspComponent):
            unit = "/".join(path)
            if self._variables[unit].has(name):
                yield (unit, name), self._variables[unit][name], IDENTITY
            return
        if (path, name) in self._connectors:
            for target in self._inward:
                if self._is_system[target[0]]:
                    continue
                source, way = self._trace(target, (path, name))
                if source == (path, name):
                    unit = _as_behind(self._unit(source), self._variable_unit(target))
                    yield ("/".join(target[0]), target[1]), unit, way.map
        for each in element.elements:
            if name.startswith(each.name + "."):
                yield from self._named(each, (*path, each.name), name.removeprefix(each.name + "."))


@dataclass(frozen=True)
class _DescribedUnits:
    """The units of the variables of an FMU.

    Elements of arrays whose sizes structural parameters set are taken with any index: which ones there are is known
    once the values of a run are.

    Attributes
    ----------
    units
        By name of variables and elements; an array has that of its elements.
    sized
        Arrays whose sizes structural parameters set.
    """

    units: dict[str, UnitOfMeasurement]
    sized: frozenset[str]

    @classmethod
    def of(cls, file: Path) -> _DescribedUnits:
        """Read the description of an FMU."""
        description = read_fmu(file, file.name).description
        try:
            units = described_measurement_units(description)
            arrays = described_arrays(description)
            sized = frozenset(each.name for arrays in sized_by(description).values() for each in arrays)
            return cls(units | {name: units[elements[0]] for name, elements in arrays.items() if elements}, sized)
        except Exception as error:  # FMPy raises bare exceptions here
            raise InputError(f"{file.name} is no FMU that can be read: {str(error).strip()}") from None

    def has(self, name: str) -> bool:
        """Return whether the FMU has a variable, with some values of structural parameters."""
        return name in self.units or _array_of(name) in self.sized

    def __getitem__(self, name: str) -> UnitOfMeasurement:
        """Return the unit of a variable that the FMU has."""
        return self.units[name if name in self.units else _array_of(name)]


def _array_of(name: str) -> str:
    """Return the array that an element is of; nothing for another name."""
    found = _ELEMENT.fullmatch(name)
    return found["array"] if found else ""


def _as_behind(unit: UnitOfMeasurement | None, *variables: UnitOfMeasurement | None) -> UnitOfMeasurement | None:
    """Return the unit of a connector, whose values are differences where those of the variables behind are."""
    if unit is None or unit.relative is not None:
        return unit
    return replace(unit, relative=next((each.relative for each in variables if each is not None), None))


def _shown(place: Place) -> str:
    return ".".join((*place[0], place[1]))
