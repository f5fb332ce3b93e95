"""Checks of an FMU file: those of the standard's schema and of FMPy, and those that no checker makes."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from fmpy.validation import validate_fmu
from lxml import etree

from mbsfmu.errors import InputError

_DATE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_SETTABLE = ("input", "parameter")


def validate(path: str | os.PathLike[str]) -> list[str]:
    """Return what is wrong with an FMU, one sentence each; nothing when it is good.

    Parameters
    ----------
    path
        An FMU file, ours or not.

    Raises
    ------
    InputError
        When there is no such file, or it is no FMU.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            root = etree.fromstring(archive.read("modelDescription.xml"))
    except (zipfile.BadZipFile, KeyError, etree.XMLSyntaxError) as error:
        raise InputError(f"{file} is no FMU: {str(error).strip()}") from None
    try:
        problems = list(validate_fmu(str(file)))
    except Exception as error:  # FMPy raises bare exceptions for descriptions it cannot read
        problems = [f"FMPy cannot read it: {str(error).strip()}"]
    if root.get("fmiVersion") == "2.0":
        problems += [*_check_root(root), *_check_binaries(root, names), *_check_variables(root)]
        problems += _check_structure(root)
    return problems


def _check_root(root: etree._Element) -> Iterator[str]:
    if not root.get("guid"):
        yield "the attribute guid is empty"
    date = root.get("generationDateAndTime")
    if date is not None and not _DATE.match(date):
        yield f"generationDateAndTime is {date}; it must be in UTC and end in Z"
    experiment = root.find("DefaultExperiment")
    for attribute in ("startTime", "stopTime", "tolerance", "stepSize"):
        if experiment is None or experiment.get(attribute) is None:
            yield f"DefaultExperiment has no {attribute}"


def _check_binaries(root: etree._Element, names: list[str]) -> Iterator[str]:
    identifiers = {each.get("modelIdentifier") for tag in ("CoSimulation", "ModelExchange") for each in root.iter(tag)}
    libraries = [PurePosixPath(name) for name in names if PurePosixPath(name).suffix in (".so", ".dll", ".dylib")]
    binaries = [each for each in libraries if each.parts[0] == "binaries" and len(each.parts) == 3]
    if not binaries and not any(name.startswith("sources/") for name in names):
        yield "there is neither a binary nor a source"
    for platform in sorted({each.parts[1] for each in binaries}):
        for identifier in identifiers:
            if not any(each.parts[1] == platform and each.stem == identifier for each in binaries):
                yield f"binaries/{platform} has no library named after the modelIdentifier {identifier}"
    for name in names:
        if "\\" in name:
            yield f"the archive's entry {name} has a backslash"


def _check_variables(root: etree._Element) -> Iterator[str]:
    declared = {unit.get("name") for unit in root.iter("Unit")}
    setters: dict[tuple[str, str | None], str | None] = {}
    for variable in root.iter("ScalarVariable"):
        name, value = variable.get("name"), variable[0]
        unit = value.get("unit")
        if unit is not None and unit not in declared:
            yield f"{name} has the unit {unit}, which UnitDefinitions does not declare"
        start, low, high = (value.get(attribute) for attribute in ("start", "min", "max"))
        if value.tag in ("Real", "Integer") and start is not None:
            if low is not None and float(start) < float(low):
                yield f"{name} starts at {start}, below its min of {low}"
            if high is not None and float(start) > float(high):
                yield f"{name} starts at {start}, above its max of {high}"
        if variable.get("causality") in _SETTABLE:
            key = (str(value.tag), variable.get("valueReference"))
            if key in setters:
                yield f"{name} and {setters[key]} can both be set and share the value reference {key[1]}"
            setters[key] = name


def _check_structure(root: etree._Element) -> Iterator[str]:
    variables = list(root.iter("ScalarVariable"))
    outputs = {i for i, each in enumerate(variables, 1) if each.get("causality") == "output"}
    unknown_at_start = {
        index
        for index, each in enumerate(variables, 1)
        if (each.get("causality") == "output" and each.get("initial", "calculated") != "exact")
        or each.get("causality") == "calculatedParameter"
    }
    states = {
        int(v[0].get("derivative", "0")) for v in variables if root.find("ModelStructure/Derivatives") is not None
    }
    for tag, wanted, optional in (("Outputs", outputs, set()), ("InitialUnknowns", unknown_at_start, states)):
        listed = {int(each.get("index", "0")) for each in root.iterfind(f"ModelStructure/{tag}/Unknown")}
        for index in sorted(wanted - listed):
            yield f"{variables[index - 1].get('name')} is missing in ModelStructure/{tag}"
        if tag == "Outputs":
            for index in sorted(listed - wanted - optional):
                yield f"ModelStructure/Outputs lists number {index}, which is no output"
