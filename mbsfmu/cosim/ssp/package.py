"""System structure packages (SSP 1.0) as files."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import fmpy

from mbsfmu.cosim.described import described_units
from mbsfmu.cosim.graph import Connection, SystemGraph
from mbsfmu.cosim.ssp.flattening import Flattening
from mbsfmu.cosim.ssp.names import STRUCTURE
from mbsfmu.cosim.ssp.reading import StructureReader
from mbsfmu.cosim.ssp.structure import (
    KINDS,
    Binding,
    Component,
    Connector,
    ParameterSet,
    ParameterValue,
    System,
    SystemStructure,
    Wire,
)
from mbsfmu.cosim.ssp.writing import structure_xml
from mbsfmu.cosim.units import Unit
from mbsfmu.errors import InputError
from mbsfmu.files import complete_file, reason

_INTEGERS = ("Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")
_TYPES = {"Float32": "Real", "Float64": "Real", **dict.fromkeys(_INTEGERS, "Integer")}
"""What SSP 1.0, which has no arrays either, calls the types of FMI 3.0."""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of all files in the archive: the same content gives the same package


def read_ssp(path: Path, folder: Path) -> SystemGraph:
    """Read a package for a run, and unpack its files into a folder.

    Raises
    ------
    InputError
        When it is no SSP 1.0 package, or has parts that are not supported: signal dictionaries, components that are
        no FMUs, mappings of Boolean, Integer and Enumeration values, connectors of kind inout or type Binary.
    """
    return Flattening(read_structure(path, folder), folder, str(path)).graph()


def read_structure(path: str | os.PathLike[str], folder: Path) -> SystemStructure:
    """Return what a package says, and unpack its files into a folder.

    Parameters and errors as for `read_ssp`.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    except zipfile.BadZipFile as error:
        raise InputError(f"{path} is no SSP 1.0 package: {error}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be unpacked into {folder}: {reason(error)}") from None
    return StructureReader(folder, str(path)).read()


def write_structure(path: str | os.PathLike[str], structure: SystemStructure, files: Mapping[str, Path]) -> Path:
    """Write a package, complete or not at all; the same structure and files give the same bytes.

    Parameters
    ----------
    path
        The file; replaced if it is there.
    structure
        What it says.
    files
        The files by their names in the package, as `resources/unit.fmu`.

    Raises
    ------
    InputError
        When a file that the structure refers to is missing, or the structure does not follow the schema.
    """
    for component in (component for _, component in structure.system.components()):
        if component.source not in files:
            raise InputError(f"the package has no file '{component.source}' for its component '{component.name}'")
    xml = structure_xml(structure)
    target = Path(path)
    with complete_file(target) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(STRUCTURE), xml)
        for name, file in sorted(files.items()):
            archive.writestr(_entry(name), file.read_bytes())
    return target


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def write_ssp(
    path: str | os.PathLike[str],
    name: str,
    units: Mapping[str, Path],
    connections: Iterable[Connection],
    stop: float,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
) -> Path:
    """Write a package of FMUs.

    Parameters
    ----------
    path
        The file; replaced if it is there, complete or not at all.
    name
        Name of the system.
    units
        FMU file by the name of the component.
    connections
        Connections between them.
    stop
        Default stop time in s. SSP 1.0 has no place for a communication step; the units suggest theirs.
    parameters
        Values by component and variable, written as parameter sets in their types and units.

    Raises
    ------
    InputError
        When two files of one name are different FMUs: in the package one would take the other's place.
    """
    defined: dict[str, Unit] = {}
    components = [
        _component(component, file, (parameters or {}).get(component, {}), defined) for component, file in units.items()
    ]
    wires = [Wire(each.source, each.target, each.transformation, each.convert_units) for each in connections]
    system = System(name, elements=tuple(components), wires=tuple(wires))
    structure = SystemStructure(name, system, tuple(defined.values()), (), 0.0, stop)
    files: dict[str, Path] = {}
    for file in units.values():
        if files.setdefault(f"resources/{file.name}", file) != file:
            raise InputError(f"{file} and another FMU of the package have one file name; rename one")
    return write_structure(path, structure, files)


def _component(name: str, file: Path, values: Mapping[str, Any], defined: dict[str, Unit]) -> Component:
    """Return the component of an FMU with all its connectors; take over the definitions of its units."""
    description = fmpy.read_model_description(str(file), validate=False)
    units = described_units(description)
    kinds = {each.name: _TYPES.get(each.type, each.type) for each in description.modelVariables}
    connectors = []
    for variable in description.modelVariables:
        if variable.causality not in KINDS or variable.type == "Enumeration" or variable.dimensions:
            continue
        unit = units[variable.name]
        # A unit without a definition in SI base units cannot be declared: then that of the variable counts.
        type_ = kinds[variable.name]
        told = type_ == "Real" and unit.exponents is not None
        if told:
            defined.setdefault(unit.name, unit)
        connectors.append(Connector(variable.name, variable.causality, type_, unit.name if told else None))
    for variable in values:
        if variable not in kinds:
            raise InputError(f"{file} has no variable '{variable}'")
    bound = tuple(ParameterValue(each, kinds[each], _text(value)) for each, value in values.items())
    bindings = (Binding(ParameterSet(name, bound)),) if bound else ()
    return Component(name, f"resources/{file.name}", tuple(connectors), bindings)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)
