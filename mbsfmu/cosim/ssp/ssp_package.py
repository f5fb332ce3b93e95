"""System structure packages (SSP 1.0 and 2.0) as files."""

from __future__ import annotations

import logging
import os
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu.base.archives import unpack
from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file, reason
from mbsfmu.cosim.coupling.graph import Connection, CoupledJoint, SystemGraph
from mbsfmu.cosim.fmus.archive import read_fmu
from mbsfmu.cosim.fmus.variable_descriptions import (
    described_measurement_units,
    described_with,
    elements_of,
    kind_of,
    structural_values,
    structured_names,
)
from mbsfmu.cosim.ssp.flattening import Flattening
from mbsfmu.cosim.ssp.ssp_documents import StructureReader, structure_xml
from mbsfmu.cosim.ssp.structure import (
    BASIC_TYPES,
    KINDS,
    STRUCTURE,
    Binding,
    Connector,
    ParameterSet,
    ParameterValue,
    SspComponent,
    SspSystem,
    SspWire,
    SystemStructure,
)
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.measurement_units import UnitOfMeasurement

_LOGGER = logging.getLogger(__name__)
_INTEGERS = ("Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64")
_TYPES = {"Float32": "Real", "Float64": "Real", **dict.fromkeys(_INTEGERS, "Integer")}
"""What SSP 1.0, which has no arrays either, calls the types of FMI 3.0."""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of all files in the archive: the same content gives the same package


def read_ssp(path: Path, folder: Path, *, strict: bool = False) -> SystemGraph:
    """Read a package for a run, and unpack its files into a folder.

    Parameters
    ----------
    path
        The package, or a folder that holds what one would.
    folder
        Where it is unpacked; a folder is read where it is.
    strict
        Whether units that nothing defines are refused.

    Raises
    ------
    InputError
        When it is no SSP package, or has parts that are not supported: signal dictionaries, components that are no
        FMUs, mappings of Boolean, Integer and Enumeration values, connectors of kind inout or unspecified, connections
        of type Binary or Clock. All faults are told.
    """
    structure = read_structure(path, folder)
    return Flattening(structure, path if path.is_dir() else folder, str(path), strict=strict).graph()


def read_structure(path: str | os.PathLike[str], folder: Path) -> SystemStructure:
    """Return the structure of a package, and unpack its files into a folder.

    Parameters and errors as for `read_ssp`.
    """
    path = Path(path)
    if path.is_dir():
        return _read(path, str(path))
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        unpack(path, folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{path} is no SSP package: {error}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be unpacked into {folder}: {reason(error)}") from None
    return _read(folder, str(path))


def _read(folder: Path, called: str) -> SystemStructure:
    """Read the structure of an unpacked package; its variants are left, and named."""
    variants = sorted(each.name for each in folder.glob("*.ssd") if each.name != STRUCTURE)
    if variants and (folder / STRUCTURE).is_file():
        _LOGGER.warning("%s has the variants %s too; %s is taken", called, ", ".join(variants), STRUCTURE)
    return StructureReader(folder, called).read()


def write_structure(path: str | os.PathLike[str], structure: SystemStructure, files: Mapping[str, Path]) -> Path:
    """Write a package, atomically and reproducibly.

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
    version: str | None = None,
    joints: Iterable[CoupledJoint] = (),
    place: Mapping[str, str] | None = None,
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
        Connections between them; of FMUs with flat names they may have structured ones.
    stop
        Default stop time in s. SSP has no place for a communication step; the FMUs suggest theirs.
    parameters
        Values by component and variable, written as parameter sets in their types and units; names as in connections.
    version
        Of SSP; 1.0 by default, and 2.0 where a unit is of FMI 3.0.
    joints
        Joints between mechanisms of the FMUs, written as an annotation.
    place
        Workers of a Dask cluster by component, written as annotations; they count where a run has a scheduler.

    Raises
    ------
    InputError
        When a component that is placed is none, or two files of one name are different FMUs: in the package one would
        take the other's place.
    """
    defined: dict[str, UnitOfMeasurement] = {}
    descriptions = {file: read_fmu(file).description for file in set(units.values())}
    if version is None:
        version = "2.0" if any(each.fmiVersion == "3.0" for each in descriptions.values()) else "1.0"
    structured = {component: structured_names(descriptions[file]) for component, file in units.items()}
    flat = {component: {full: name for name, full in names.items()} for component, names in structured.items()}

    def written(end: tuple[str, str]) -> tuple[str, str]:
        return end[0], flat.get(end[0], {}).get(end[1], end[1])

    given = {
        component: {written((component, name))[1]: value for name, value in values.items()}
        for component, values in (parameters or {}).items()
    }
    for component in place or ():
        if component not in units:
            raise InputError(f"there is no component '{component}' to be placed; {closest_match(component, units)}")
    components = [
        replace(
            _component(component, file, descriptions[file], given.get(component, {}), defined, version),
            worker=(place or {}).get(component),
        )
        for component, file in units.items()
    ]
    wires = [
        SspWire(written(each.source), written(each.target), each.transformation, each.convert_units)
        for each in connections
    ]
    system = SspSystem(name, elements=tuple(components), wires=tuple(wires), joints=tuple(joints))
    structure = SystemStructure(name, system, tuple(defined.values()), (), 0.0, stop, version)
    files: dict[str, Path] = {}
    for file in units.values():
        if files.setdefault(f"resources/{file.name}", file) != file:
            raise InputError(f"{file} and another FMU of the package have one file name; rename one")
    return write_structure(path, structure, files)


def _component(
    name: str,
    file: Path,
    description: Any,
    values: Mapping[str, Any],
    defined: dict[str, UnitOfMeasurement],
    version: str,
) -> SspComponent:
    """Return the component of an FMU with all its connectors; take over the definitions of its units."""
    description = described_with(description, structural_values(name, description, values))
    units = described_measurement_units(description)
    types = {each.name: each.type if version == "2.0" else kind_of(each) for each in description.modelVariables}
    connectors = []
    for variable in description.modelVariables:
        type_ = types[variable.name]
        if variable.causality not in KINDS[:5] or BASIC_TYPES.get(type_, "") in ("", "Enumeration", "Binary"):
            continue
        if version == "1.0" and (variable.dimensions or variable.causality == "structuralParameter"):
            raise InputError(
                f"{file} has '{variable.name}', an array or its size, which SSP 1.0 does not know; take 2.0"
            )
        unit = units[elements_of(variable)[0].name]
        # A unit without a definition in SI base units cannot be declared: then that of the variable counts.
        faults = BASIC_TYPES[type_] == "Real" and unit.exponents is not None
        if faults:
            defined.setdefault(unit.name, unit)
        connector = Connector(variable.name, variable.causality, type_, unit.name if faults else None)
        connectors.append(replace(connector, dimensions=tuple(variable.shape or ())))
    shapes = {each.name: tuple(each.shape or ()) for each in description.modelVariables}
    for variable in values:
        if variable not in types:
            raise InputError(f"{file} has no variable '{variable}'")
    bound = tuple(
        ParameterValue(each, types[each], _text(value), dimensions=shapes[each]) for each, value in values.items()
    )
    bindings = (Binding(ParameterSet(name, bound)),) if bound else ()
    return SspComponent(name, f"resources/{file.name}", tuple(connectors), bindings, description.coSimulation is None)


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple, np.ndarray)):
        return " ".join(_text(each) for each in np.asarray(value, dtype=object).ravel().tolist())
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)
