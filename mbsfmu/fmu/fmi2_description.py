"""`modelDescription.xml` of FMI 2.0 for co-simulation: how the standard writes what a unit is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from lxml import etree

from mbsfmu.fmu.description import Capabilities, Described, UnitDescription
from mbsfmu.fmu.log_categories import LOG_CATEGORIES
from mbsfmu.model.physical_units import DISPLAY_UNITS, dimension
from mbsfmu.variables import Causality


def model_description(unit: UnitDescription, source_files: Sequence[str] = ()) -> bytes:
    """Return the file.

    Parameters
    ----------
    unit
        What the unit is.
    source_files
        Files among the sources that importers compile.
    """
    root = etree.Element(
        "fmiModelDescription",
        fmiVersion="2.0",
        modelName=unit.name,
        guid=unit.identity,
        description=unit.description,
        generationTool=unit.tool,
        generationDateAndTime=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **{key: value for key, value in asdict(unit.origin).items() if value},
        variableNamingConvention="structured",
        numberOfEventIndicators="0",
    )
    _add_interface(root, unit, source_files)
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
    structure = etree.SubElement(root, "ModelStructure")
    for tag, unknowns in (("Outputs", unit.outputs), ("InitialUnknowns", unit.initial_unknowns)):
        if unknowns:
            _add_unknowns(etree.SubElement(structure, tag), unknowns)
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True, pretty_print=True)


def _add_interface(root: etree._Element, unit: UnitDescription, source_files: Sequence[str]) -> None:
    attributes = {"modelIdentifier": unit.identifier, **_flags(unit.capabilities)}
    interface = etree.SubElement(root, "CoSimulation", attributes)
    if source_files:
        files = etree.SubElement(interface, "SourceFiles")
        for name in source_files:
            etree.SubElement(files, "File", name=name)


def _flags(capabilities: Capabilities) -> dict[str, str]:
    """Return the flags of the co-simulation interface; each must be true of the unit."""
    flags = {
        "needsExecutionTool": capabilities.needs_tool,
        "canHandleVariableCommunicationStepSize": capabilities.takes_any_step,
        "canInterpolateInputs": capabilities.takes_slopes,
        "maxOutputDerivativeOrder": int(capabilities.gives_rates),
        "canRunAsynchronuously": False,
        "canBeInstantiatedOnlyOncePerProcess": False,
        "canNotUseMemoryManagementFunctions": True,
        "canGetAndSetFMUstate": capabilities.saves_state,
        "canSerializeFMUstate": capabilities.saves_state,
        "providesDirectionalDerivative": capabilities.gives_derivatives,
    }
    return {name: _text(value) for name, value in flags.items()}


def _add_units(root: etree._Element, variables: Iterable[Described]) -> None:
    definitions = etree.SubElement(root, "UnitDefinitions")
    for name in dict.fromkeys(each.variable.unit for each in variables):
        unit = etree.SubElement(definitions, "Unit", name=name)
        etree.SubElement(unit, "BaseUnit", {base: str(exponent) for base, exponent in dimension(name).items()})
        if display := DISPLAY_UNITS.get(name):
            etree.SubElement(unit, "DisplayUnit", name=display.name, factor=_text(display.factor))


def _add_variables(root: etree._Element, variables: Sequence[Described]) -> None:
    parent = etree.SubElement(root, "ModelVariables")
    for reference, each in enumerate(variables):
        variable = each.variable
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
            ("nominal", each.nominal),
            ("start", variable.start if variable.settable else None),
        ):
            if value is not None:
                real[name] = _text(value)
        etree.SubElement(scalar, "Real", real)


def _add_unknowns(parent: etree._Element, unknowns: Mapping[int, Sequence[int]]) -> None:
    for unknown, known in unknowns.items():
        etree.SubElement(
            parent,
            "Unknown",
            index=str(1 + unknown),
            dependencies=" ".join(str(1 + each) for each in known),
            dependenciesKind=" ".join("dependent" for _ in known),
        )


def _text(value: float | bool | int) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(float(value)) if isinstance(value, float) else str(value)
