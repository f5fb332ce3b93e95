"""FMI 2.0 description files of an FMU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lxml import etree

from mbsfmu.fmu.description import Capabilities, FmuDescription, Integrated
from mbsfmu.fmu.description_elements import (
    add_experiment,
    add_log_categories,
    add_units,
    as_text,
    dependency_attributes,
    document,
    initial,
    quantity_attributes,
    root_attributes,
)


def description_files(unit: FmuDescription, source_files: Sequence[str], has_icon: bool) -> dict[str, bytes]:  # noqa: ARG001
    """Return the files by their names in the archive.

    Parameters
    ----------
    unit
        What the unit is.
    source_files
        Files among the sources that importers compile.
    has_icon
        Whether there is a picture of it, of which nothing is said here.
    """
    return {"modelDescription.xml": _model_description(unit, source_files)}


def _model_description(unit: FmuDescription, source_files: Sequence[str]) -> bytes:
    named = {"fmiVersion": "2.0", "modelName": unit.name, "guid": unit.identity, **root_attributes(unit)}
    indicators = unit.integrated.indicators if unit.integrated else {}
    root = etree.Element("fmiModelDescription", {**named, "numberOfEventIndicators": str(len(indicators))})
    for tag, flags in _interfaces(unit).items():
        _add_interface(root, tag, {"modelIdentifier": unit.identifier, **flags}, source_files)
    add_units(root, unit)
    add_log_categories(root)
    add_experiment(root, unit)
    _add_variables(root, unit)
    structure = etree.SubElement(root, "ModelStructure")
    rates = unit.integrated.dependencies if unit.integrated else {}
    for tag, unknowns in (
        ("Outputs", unit.outputs),
        ("Derivatives", rates),
        ("InitialUnknowns", unit.initial_unknowns),
    ):
        if unknowns:
            _add_unknowns(etree.SubElement(structure, tag), unknowns)
    return document(root)


def _interfaces(unit: FmuDescription) -> dict[str, dict[str, str]]:
    """Return the flags of an FMU's interfaces by name."""
    interfaces = {}
    if unit.integrated:
        interfaces["ModelExchange"] = _exchange_flags(unit.capabilities, unit.integrated)
    if unit.co_simulation:
        interfaces["CoSimulation"] = _flags(unit.capabilities)
    return interfaces


def _add_interface(root: etree._Element, tag: str, attributes: Mapping[str, str], source_files: Sequence[str]) -> None:
    interface = etree.SubElement(root, tag, dict(attributes))
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
        "canBeInstantiatedOnlyOncePerProcess": capabilities.only_once,
        "canNotUseMemoryManagementFunctions": True,
        "canGetAndSetFMUstate": capabilities.saves_state,
        "canSerializeFMUstate": capabilities.saves_state and capabilities.serializes_state,
        "providesDirectionalDerivative": capabilities.gives_derivatives,
    }
    return {name: as_text(value) for name, value in flags.items()}


def _exchange_flags(capabilities: Capabilities, integrated: Integrated) -> dict[str, str]:
    """Return the flags of the model-exchange interface."""
    flags = {
        "needsExecutionTool": capabilities.needs_tool,
        "completedIntegratorStepNotNeeded": False,
        "canBeInstantiatedOnlyOncePerProcess": False,
        "canNotUseMemoryManagementFunctions": True,
        "canGetAndSetFMUstate": capabilities.saves_state,
        "canSerializeFMUstate": capabilities.saves_state,
        "providesDirectionalDerivative": integrated.gives_derivatives,
    }
    return {name: as_text(value) for name, value in flags.items()}


def _add_variables(root: etree._Element, unit: FmuDescription) -> None:
    parent = etree.SubElement(root, "ModelVariables")
    states = unit.states_of
    for reference, each in enumerate(unit.variables):
        variable = each.variable
        attributes = {
            "name": each.name,
            "valueReference": str(reference),
            "description": each.description,
            "causality": variable.causality.value,
            "variability": variable.variability.value,
        }
        if how := initial(variable):
            attributes["initial"] = how
        real = quantity_attributes(variable, each.nominal)
        if variable.settable and variable.start is not None:
            real["start"] = as_text(variable.start)
        if reference in states:
            real["derivative"] = str(1 + states[reference])
        etree.SubElement(etree.SubElement(parent, "ScalarVariable", attributes), "Real", real)


def _add_unknowns(parent: etree._Element, unknowns: Mapping[int, Sequence[int] | None]) -> None:
    for unknown, known in unknowns.items():
        counted = None if known is None else [1 + each for each in known]
        etree.SubElement(parent, "Unknown", {"index": str(1 + unknown), **dependency_attributes(counted)})
