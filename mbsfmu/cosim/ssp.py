"""System structure packages (SSP 1.0): the units and their connections in one file."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import fmpy
from fmpy.ssp import ssd
from lxml import etree

from mbsfmu.cosim.graph import Connection, SystemGraph
from mbsfmu.errors import InputError
from mbsfmu.files import complete_file

_SSD = "http://ssp-standard.org/SSP1/SystemStructureDescription"
_SSC = "http://ssp-standard.org/SSP1/SystemStructureCommon"
_FILE = "SystemStructure.ssd"


def write_ssp(
    path: str | os.PathLike[str],
    name: str,
    units: Mapping[str, Path],
    connections: Iterable[Connection],
    stop: float,
) -> Path:
    """Write a package with its FMUs.

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
    """
    connections = tuple(connections)
    root = etree.Element(
        f"{{{_SSD}}}SystemStructureDescription", nsmap={"ssd": _SSD, "ssc": _SSC}, version="1.0", name=name
    )
    system = etree.SubElement(root, f"{{{_SSD}}}System", name=name)
    elements = etree.SubElement(system, f"{{{_SSD}}}Elements")
    for component, file in units.items():
        _add_component(elements, component, file)
    if connections:
        parent = etree.SubElement(system, f"{{{_SSD}}}Connections")
        for connection in connections:
            etree.SubElement(
                parent,
                f"{{{_SSD}}}Connection",
                startElement=connection.source[0],
                startConnector=connection.source[1],
                endElement=connection.target[0],
                endConnector=connection.target[1],
            )
    etree.SubElement(root, f"{{{_SSD}}}DefaultExperiment", startTime="0.0", stopTime=repr(stop))
    xml = etree.tostring(root, encoding="UTF-8", xml_declaration=True, pretty_print=True)
    return _write_archive(Path(path), xml, units)


def _add_component(elements: etree._Element, name: str, file: Path) -> None:
    component = etree.SubElement(
        elements,
        f"{{{_SSD}}}Component",
        name=name,
        type="application/x-fmu-sharedlibrary",
        source=f"resources/{file.name}",
        implementation="CoSimulation",
    )
    connectors = etree.SubElement(component, f"{{{_SSD}}}Connectors")
    for variable in fmpy.read_model_description(str(file), validate=False).modelVariables:
        kind = variable.causality
        if kind not in ("input", "output", "parameter", "calculatedParameter"):
            continue
        connector = etree.SubElement(connectors, f"{{{_SSD}}}Connector", name=variable.name, kind=kind)
        value = etree.SubElement(connector, f"{{{_SSC}}}{variable.type}")
        if variable.type == "Real" and variable.unit:
            value.set("unit", variable.unit)
    # Units must be declared at the root; see _declare_units.
    root = elements.getroottree().getroot()
    _declare_units(root, file)


def _declare_units(root: etree._Element, file: Path) -> None:
    """Take over the unit definitions of an FMU that are not there yet."""
    with zipfile.ZipFile(file) as archive:
        description = etree.fromstring(archive.read("modelDescription.xml"))
    declared = {each.get("name") for each in root.iterfind(f"{{{_SSD}}}Units/{{{_SSC}}}Unit")}
    parent = root.find(f"{{{_SSD}}}Units")
    for unit in description.iterfind("UnitDefinitions/Unit"):
        if unit.get("name") in declared:
            continue
        if parent is None:
            parent = etree.SubElement(root, f"{{{_SSD}}}Units")
        copy = etree.SubElement(parent, f"{{{_SSC}}}Unit", name=str(unit.get("name")))
        base = unit.find("BaseUnit")
        factors = {} if base is None else {str(name): str(value) for name, value in base.attrib.items()}
        etree.SubElement(copy, f"{{{_SSC}}}BaseUnit", factors)


def _write_archive(target: Path, xml: bytes, units: Mapping[str, Path]) -> Path:
    with complete_file(target) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_FILE, xml)
        for file in units.values():
            archive.write(file, f"resources/{file.name}")
    return target


def read_ssp(path: Path, folder: Path) -> SystemGraph:
    """Read a package and unpack its FMUs into a folder.

    Parameters
    ----------
    path
        The package.
    folder
        Where the FMUs go.

    Raises
    ------
    InputError
        When it is no SSP 1.0 package, or has parts that are not supported: nested systems, signal dictionaries,
        transformations of connections, parameter mappings.
    """
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        description = ssd.read_ssd(str(path))
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
            root = etree.fromstring(archive.read(_FILE))
    except Exception as error:  # FMPy raises bare exceptions for packages it cannot read
        raise InputError(f"{path} is no SSP 1.0 package: {str(error).strip()}") from None
    units: dict[str, Path] = {}
    parameters: dict[tuple[str, str], Any] = {}
    system = description.system
    if system is None:
        raise InputError(f"{path} describes no system")
    for element in system.elements:
        if not isinstance(element, ssd.Component) or not str(element.source).endswith(".fmu"):
            raise InputError(f"{path}: '{element.name}' is no FMU; only systems of FMUs are supported")
        units[str(element.name)] = folder / str(element.source)
        for binding in element.parameterBindings:
            if binding.parameterMapping:
                raise InputError(f"{path}: '{element.name}' has a parameter mapping, which is not supported")
            for values in binding.parameterValues:
                for parameter in values.parameters:
                    parameters[str(element.name), (binding.prefix or "") + parameter.name] = parameter.value
    connections = []
    for each in system.connections:
        if getattr(each, "linearTransformation", None) is not None:
            raise InputError(f"{path}: a connection to '{each.endConnector}' has a transformation, not supported")
        if each.startElement and each.endElement:
            connections.append(
                Connection((each.startElement, each.startConnector), (each.endElement, each.endConnector))
            )
    return SystemGraph(units, tuple(connections), parameters, *_experiment(root))


def _experiment(root: etree._Element) -> tuple[float, float | None]:
    """Return start and stop time in s."""
    experiment = root.find(f"{{{_SSD}}}DefaultExperiment")
    if experiment is None:
        return 0.0, None
    stop = experiment.get("stopTime")
    return float(experiment.get("startTime", "0.0")), float(stop) if stop else None
