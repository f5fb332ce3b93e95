"""SSP package as data: one class for each element with a meaning for a run; names, schemas, errors.

SSP package as data: one class for each element with a meaning for a run.

Geometry, graphical elements and annotations but those of joints are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import fmpy.ssp
from lxml import etree

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.graph import CoupledJoint
from mbsfmu.modelling.measurement_units import IDENTITY, LinearMap, UnitOfMeasurement

KINDS = ("input", "output", "parameter", "calculatedParameter", "structuralParameter", "local", "constant")
"""Kinds of connectors; the last three are of SSP 2.0."""
BASIC_TYPES = {
    **{each: each for each in ("Real", "Integer", "Boolean", "String", "Enumeration", "Binary")},
    **dict.fromkeys(("Float64", "Float32"), "Real"),
    **{f"{sign}Int{bits}": "Integer" for sign in ("", "U") for bits in (8, 16, 32, 64)},
}
"""Types of SSP 2.0, with those of SSP 1.0 that are like them."""
TYPES = tuple(each for each, basic in BASIC_TYPES.items() if basic != "Binary")
"""Types whose values are taken from packages and handed on."""


@dataclass(frozen=True)
class Connector:
    """A connector of a component or system.

    Attributes
    ----------
    name, kind
        One of `KINDS`.
    type
        One of `TYPES`; None where that of the component's variable counts.
    unit, enumeration
        Name of the unit of a Real, and of the enumeration; None where nothing is said.
    dimensions
        Of an array: sizes, or connectors that have them, or None where nothing is said of one.
    """

    name: str
    kind: str
    type: str | None = None
    unit: str | None = None
    enumeration: str | None = None
    dimensions: tuple[int | str | None, ...] = ()


@dataclass(frozen=True)
class SspWire:
    """A connection between two connectors of a system or of its elements.

    Attributes
    ----------
    start, end
        Each as (element, connector); None for the element means the system itself.
    transformation
        What becomes of the value after the conversion of its unit.
    convert_units
        Whether the unit is converted at all.
    """

    start: tuple[str | None, str]
    end: tuple[str | None, str]
    transformation: LinearMap = IDENTITY
    convert_units: bool = True

    def __str__(self) -> str:
        ends = (".".join(filter(None, end)) for end in (self.start, self.end))
        return " – ".join(ends)


@dataclass(frozen=True)
class ParameterValue:
    """A value of a parameter set, as it is written; those of an array row by row, with the sizes of its dimensions."""

    name: str
    type: str
    value: str
    unit: str | None = None
    enumeration: str | None = None
    dimensions: tuple[int, ...] = ()


@dataclass(frozen=True)
class ParameterSet:
    """Values with the units that they use."""

    name: str
    values: tuple[ParameterValue, ...] = ()
    units: tuple[UnitOfMeasurement, ...] = ()


@dataclass(frozen=True)
class MappingEntry:
    """Name and transformation of a parameter in the component or system."""

    source: str
    target: str
    transformation: LinearMap = IDENTITY
    convert_units: bool = True


@dataclass(frozen=True)
class Mapping:
    """A parameter mapping, inline or in the file `source`."""

    entries: tuple[MappingEntry, ...]
    source: str | None = None


@dataclass(frozen=True)
class Binding:
    """A parameter set that is applied to a component or system.

    Attributes
    ----------
    values
        The set, inline or read from `source`.
    prefix
        Stands before each of its names.
    source
        File of the set in the package; None for an inline one.
    mapping
        Other names for its values; values without one are then not applied.
    """

    values: ParameterSet
    prefix: str = ""
    source: str | None = None
    mapping: Mapping | None = None


IMPLEMENTATIONS = {None: "any", False: "CoSimulation", True: "ModelExchange"}
"""How a component is run, by whether that is model exchange; None where the package leaves it open."""


@dataclass(frozen=True)
class SspComponent:
    """An FMU: its file in the package, the connectors that are used, how and on which worker it is run.

    How it is run: see `IMPLEMENTATIONS`.
    """

    name: str
    source: str
    connectors: tuple[Connector, ...] = ()
    bindings: tuple[Binding, ...] = ()
    exchanged: bool | None = None
    worker: str | None = None


@dataclass(frozen=True)
class SspSystem:
    """Components and systems, what connects them with each other and with the connectors of the system, and joints."""

    name: str
    connectors: tuple[Connector, ...] = ()
    bindings: tuple[Binding, ...] = ()
    elements: tuple[SspComponent | SspSystem, ...] = ()
    wires: tuple[SspWire, ...] = ()
    joints: tuple[CoupledJoint, ...] = ()

    def element(self, name: str) -> SspComponent | SspSystem | None:
        """Return the element of a name; None where there is none."""
        return next((each for each in self.elements if each.name == name), None)

    def joined(self, path: tuple[str, ...] = ()) -> Iterator[CoupledJoint]:
        """Yield all joints, of elements by their names with those of the systems around them."""
        for joint in self.joints:
            first, second = (replace(each, unit="/".join((*path, each.unit))) for each in (joint.first, joint.second))
            yield replace(joint, first=first, second=second)
        for element in self.elements:
            if isinstance(element, SspSystem):
                yield from element.joined((*path, element.name))

    def components(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], SspComponent]]:
        """Yield all components with the names of the systems around them, the outermost left out."""
        for element in self.elements:
            if isinstance(element, SspSystem):
                yield from element.components((*path, element.name))
            else:
                yield (*path, element.name), element


@dataclass(frozen=True)
class SystemStructure:
    """A complete package.

    Attributes
    ----------
    name, system
        Name of the package, and its outermost system.
    units
        Definitions of the units that are used.
    enumerations
        Items with their values by the name of the enumeration.
    start, stop
        Default experiment in s; None where nothing is said.
    version
        Of SSP: 1.0 or 2.0.
    """

    name: str
    system: SspSystem
    units: tuple[UnitOfMeasurement, ...] = ()
    enumerations: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()
    start: float | None = None
    stop: float | None = None
    version: str = "1.0"


_ROOT = "http://ssp-standard.org/SSP1/"
SSD = _ROOT + "SystemStructureDescription"
SSC = _ROOT + "SystemStructureCommon"
SSV = _ROOT + "SystemStructureParameterValues"
SSM = _ROOT + "SystemStructureParameterMapping"

STRUCTURE = "SystemStructure.ssd"
FMU_TYPE = "application/x-fmu-sharedlibrary"
SET_TYPE = "application/x-ssp-parameter-set"
MAPPING_TYPE = "application/x-ssp-parameter-mapping"

VERSIONS = ("1.0", "2.0")
_SCHEMAS = {
    SSD: "SystemStructureDescription.xsd",
    SSV: "SystemStructureParameterValues.xsd",
    SSM: "SystemStructureParameterMapping.xsd",
}
_ONLY_2 = ("Dimension", "MetaData", "Signature")
"""Elements that SSP 1.0 does not have, and whose absence changes nothing in the rest."""
_KINDS_2 = {"structuralParameter": "parameter", "local": "output", "constant": "output", "unspecified": "inout"}


def check_schema(root: etree._Element, namespace: str, what: str) -> str:
    """Validate a document against the schema of SSP 1.0; one of SSP 2.0 without its new elements.

    Returns
    -------
    str
        Its version, one of `VERSIONS`.

    Raises
    ------
    InputError
        When it is another document, or of another version, or does not follow the schema.
    """
    name = etree.QName(root)
    if name.namespace != namespace:
        raise InputError(f"{what} is no document of SSP: its root is '{name.localname}' of {name.namespace}")
    version = root.get("version", "")
    if version not in VERSIONS:
        raise InputError(f"{what} is of version {version or 'unknown'}; SSP 1.0 and 2.0 are supported")
    folder = Path(str(fmpy.ssp.__file__)).parent / "schema"
    schema = etree.XMLSchema(file=str(folder / _SCHEMAS[namespace]))
    if not schema.validate(root if version == "1.0" else _reduced(root)):
        entries: Any = schema.error_log  # whose stubs have no iteration
        faults = "; ".join(dict.fromkeys(f"line {entry.line}: {entry.message}" for entry in entries))
        raise InputError(f"{what} does not follow the schema of SSP {version}: {faults}")
    return version


def _reduced(root: etree._Element) -> etree._Element:
    """Return a document of SSP 2.0 without what SSP 1.0 does not have, for its schema."""
    copy = deepcopy(root)
    for node in list(copy.iter(etree.Element)):
        name = etree.QName(node)
        parent = node.getparent()
        if node.get("version") == "2.0":
            node.set("version", "1.0")
        if parent is not None and (name.localname in _ONLY_2 or _is_clock_of_connector(node, parent)):
            parent.remove(node)
        elif name.localname in BASIC_TYPES and name.namespace in (SSC, SSV):
            node.tag = f"{{{name.namespace}}}{BASIC_TYPES[name.localname]}"
            _keep_one_value(node)
        elif name.localname == "Connector":
            node.set("kind", _KINDS_2.get(node.get("kind", ""), node.get("kind", "")))
        elif name.localname == "Component":
            node.set("source", node.get("source", ""))
            if node.get("implementation") == "ScheduledExecution":
                node.set("implementation", "any")
        elif name.localname == "ConnectorGeometry":
            node.attrib.pop("systemInnerX", "")
            node.attrib.pop("systemInnerY", "")
    return copy


def _is_clock_of_connector(node: etree._Element, parent: etree._Element) -> bool:
    return etree.QName(node).localname == "Clock" and etree.QName(parent).localname in ("Connector", "DictionaryEntry")


def _keep_one_value(node: etree._Element) -> None:
    """Leave the first of the values of an array."""
    values = node.get("value", "").split()
    if len(values) > 1 and etree.QName(node).localname != "String":
        node.set("value", values[0])


_Read = TypeVar("_Read")
_Node = TypeVar("_Node")
_MOST = 50
"""Largest number of errors in one message."""


class Faults:
    """Collected errors of a package.

    Parameters
    ----------
    name
        Name of the package.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._sentences: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Record exceptions of a block instead of raising them."""
        try:
            yield
        except InputError as error:
            self.note(str(error))

    def note(self, sentence: str) -> None:
        """Record an error, once."""
        if sentence not in self._sentences:
            self._sentences.append(sentence)

    def each(self, read: Callable[[_Node], _Read], nodes: Iterable[_Node]) -> tuple[_Read, ...]:
        """Return the result of reading each node; errors are recorded."""
        result = []
        for node in nodes:
            with self.noted():
                result.append(read(node))
        return tuple(result)

    def check(self) -> None:
        """Raise the recorded errors.

        Raises
        ------
        InputError
            When there is something; of one fault its sentence, of more all of them.
        """
        if len(self._sentences) == 1:
            raise InputError(self._sentences[0])
        if self._sentences:
            faults = [each.removeprefix(f"{self._name}: ").removeprefix(f"{self._name} ") for each in self._sentences]
            left = "" if len(faults) <= _MOST else f"; and {len(faults) - _MOST} more"
            listed = "; ".join(f"({number}) {each}" for number, each in enumerate(faults[:_MOST], 1))
            raise InputError(f"{self._name} has {len(faults)} faults: {listed}{left}")
