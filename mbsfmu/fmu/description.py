"""The model description of a unit: `modelDescription.xml` of FMI 2.0 for co-simulation."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from lxml import etree

from mbsfmu.errors import InputError
from mbsfmu.fmu.log_categories import LOG_CATEGORIES
from mbsfmu.fmu.magnitudes import Scale
from mbsfmu.fmu.physical_units import DISPLAY_UNITS, dimension
from mbsfmu.fmu.unit import Unit
from mbsfmu.variables import Causality, Variable

_PART = r"(?:[A-Za-z_][A-Za-z0-9_]*(?:\[\d+(?:,\d+)*\])?)"
_STRUCTURED_NAME = re.compile(rf"^{_PART}(?:\.{_PART})*$")
_WORD_OF_C = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|register|"
    "restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while"
)
_NAMESPACE = uuid.UUID("6f2bd5b8-9f5e-4b0e-8f3e-3a7d0a3f4c51")


@dataclass(frozen=True)
class Capabilities:
    """The capability flags of the co-simulation interface, named as in FMI 2.0; each must be true of the unit."""

    needsExecutionTool: bool  # noqa: N815 - the standard's names
    canHandleVariableCommunicationStepSize: bool = True  # noqa: N815
    canInterpolateInputs: bool = False  # noqa: N815
    maxOutputDerivativeOrder: int = 0  # noqa: N815
    canRunAsynchronuously: bool = False  # noqa: N815
    canBeInstantiatedOnlyOncePerProcess: bool = False  # noqa: N815
    canNotUseMemoryManagementFunctions: bool = True  # noqa: N815
    canGetAndSetFMUstate: bool = True  # noqa: N815
    canSerializeFMUstate: bool = True  # noqa: N815
    providesDirectionalDerivative: bool = False  # noqa: N815


@dataclass(frozen=True)
class ModelDescription:
    """A description and what the package must know of it.

    Attributes
    ----------
    xml
        The file's bytes.
    guid
        Made from the content and from what the unit does: what behaves in the same way has the same one, on every
        platform, and nothing else has.
    model_identifier
        Name of the binaries.
    """

    xml: bytes
    guid: str
    model_identifier: str


def model_identifier(name: str) -> str:
    """Return the name of a model as an identifier of C; the words of the language get a `_`."""
    identifier = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{identifier}_" if _WORD_OF_C.fullmatch(identifier) else identifier


def describe(
    unit: Unit, capabilities: Capabilities, generation_tool: str, behaviour: str, source_files: Sequence[str] = ()
) -> ModelDescription:
    """Write the description of a unit.

    Parameters
    ----------
    unit
        The unit.
    capabilities
        What the binaries can do.
    generation_tool
        Name and version of the tool.
    behaviour
        A key of the equations and of all that runs them: units with the same variables may compute different values.
    source_files
        Files among the sources that importers compile.

    Raises
    ------
    InputError
        When a variable's name or unit cannot stand in a description.
    """
    identifier = model_identifier(unit.name)
    root = etree.Element(
        "fmiModelDescription",
        fmiVersion="2.0",
        modelName=unit.name,
        description=unit.description,
        generationTool=generation_tool,
        **{key: value for key, value in asdict(unit.origin).items() if value},
        variableNamingConvention="structured",
        numberOfEventIndicators="0",
    )
    flags = {name: _text(value) for name, value in asdict(capabilities).items()}
    interface = etree.SubElement(root, "CoSimulation", {"modelIdentifier": identifier, **flags})
    _add_units(root, unit.variables)
    categories = etree.SubElement(root, "LogCategories")
    for name, description in LOG_CATEGORIES.items():
        etree.SubElement(categories, "Category", name=name, description=description)
    etree.SubElement(
        root,
        "DefaultExperiment",
        startTime="0",
        stopTime=_text(unit.stop_time),
        tolerance=_text(unit.tolerance),
        stepSize=_text(unit.step_size),
    )
    _add_variables(root, unit.variables)
    _add_structure(root, unit)
    guid = "{" + str(uuid.uuid5(_NAMESPACE, etree.tostring(root, encoding="unicode") + behaviour)) + "}"
    # What follows changes nothing that the unit does.
    root.set("guid", guid)
    if source_files:
        files = etree.SubElement(interface, "SourceFiles")
        for name in source_files:
            etree.SubElement(files, "File", name=name)
    root.set("generationDateAndTime", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    xml = etree.tostring(root, encoding="UTF-8", xml_declaration=True, pretty_print=True)
    return ModelDescription(xml, guid, identifier)


def _add_units(root: etree._Element, variables: Iterable[Variable]) -> None:
    definitions = etree.SubElement(root, "UnitDefinitions")
    for name in dict.fromkeys(variable.unit for variable in variables):
        unit = etree.SubElement(definitions, "Unit", name=name)
        etree.SubElement(unit, "BaseUnit", {base: str(exponent) for base, exponent in dimension(name).items()})
        if display := DISPLAY_UNITS.get(name):
            etree.SubElement(unit, "DisplayUnit", name=display.name, factor=_text(display.factor))


def _add_variables(root: etree._Element, variables: Sequence[Variable]) -> None:
    parent = etree.SubElement(root, "ModelVariables")
    scale = Scale.of(variables)
    for reference, variable in enumerate(variables):
        if not _STRUCTURED_NAME.match(variable.name):
            raise InputError(f"'{variable.name}' cannot be the name of a variable of a unit")
        attributes = {
            "name": variable.name,
            "valueReference": str(reference),
            "description": variable.description,
            "causality": variable.causality.value,
            "variability": variable.variability.value,
        }
        if variable.causality is Causality.PARAMETER:
            attributes["initial"] = "exact"
        elif variable.causality is not Causality.INPUT:
            attributes["initial"] = "calculated"
        scalar = etree.SubElement(parent, "ScalarVariable", attributes)
        real = {"unit": variable.unit}
        if display := DISPLAY_UNITS.get(variable.unit):
            real["displayUnit"] = display.name
        for name, value in (
            ("min", variable.minimum),
            ("max", variable.maximum),
            ("nominal", scale.nominal(variable)),
            ("start", variable.start if variable.settable else None),
        ):
            if value is not None:
                real[name] = _text(value)
        etree.SubElement(scalar, "Real", real)


def _add_structure(root: etree._Element, unit: Unit) -> None:
    structure = etree.SubElement(root, "ModelStructure")
    index = {variable.name: position for position, variable in enumerate(unit.variables, start=1)}
    outputs = [variable.name for variable in unit.variables if variable.causality is Causality.OUTPUT]
    calculated = [variable.name for variable in unit.variables if variable.causality is Causality.CALCULATED_PARAMETER]
    initial = sorted([*outputs, *calculated], key=index.__getitem__)
    for tag, names, dependencies in (
        ("Outputs", outputs, unit.dependencies),
        ("InitialUnknowns", initial, unit.initial_dependencies),
    ):
        if names:
            _add_unknowns(etree.SubElement(structure, tag), names, dependencies, index)


def _add_unknowns(
    parent: etree._Element,
    names: Iterable[str],
    dependencies: Mapping[str, tuple[str, ...]],
    index: Mapping[str, int],
) -> None:
    for name in names:
        known = sorted(index[each] for each in dependencies[name])
        etree.SubElement(
            parent,
            "Unknown",
            index=str(index[name]),
            dependencies=" ".join(map(str, known)),
            dependenciesKind=" ".join("dependent" for _ in known),
        )


def _text(value: float | bool | int) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(float(value)) if isinstance(value, float) else str(value)
