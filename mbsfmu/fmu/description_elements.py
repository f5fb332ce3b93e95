"""Elements that descriptions of all FMI versions share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from lxml import etree

from mbsfmu.base.physical_units import DISPLAY_UNITS, dimension
from mbsfmu.fmu.description import LOG_CATEGORIES, FmuDescription
from mbsfmu.modelling.variables import Causality, Variable


def document(root: etree._Element) -> bytes:
    """Return a file with an element."""
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True, pretty_print=True)


def root_attributes(unit: FmuDescription) -> dict[str, str]:
    """Return the root attributes, without version and identity."""
    return {
        "description": unit.description,
        "generationTool": unit.tool,
        "generationDateAndTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **{key: value for key, value in asdict(unit.origin).items() if value},
        "variableNamingConvention": unit.naming,
    }


def add_units(root: etree._Element, described: FmuDescription, *others: str) -> None:
    """Define the units of variables, and others, by base units, with those that people read."""
    definitions = etree.SubElement(root, "UnitDefinitions")
    for name in filter(None, dict.fromkeys([*(each.variable.unit for each in described.variables), *others])):
        unit = etree.SubElement(definitions, "Unit", name=name)
        if name in described.foreign_units:
            if (attributes := described.foreign_units[name]) is not None:
                etree.SubElement(unit, "BaseUnit", dict(attributes))
            continue
        etree.SubElement(unit, "BaseUnit", {base: str(exponent) for base, exponent in dimension(name).items()})
        if display := DISPLAY_UNITS.get(name):
            etree.SubElement(unit, "DisplayUnit", name=display.name, factor=as_text(display.factor))


def add_log_categories(root: etree._Element) -> None:
    """Add the log categories."""
    categories = etree.SubElement(root, "LogCategories")
    for name, description in LOG_CATEGORIES.items():
        etree.SubElement(categories, "Category", name=name, description=description)


def add_experiment(root: etree._Element, unit: FmuDescription) -> None:
    """Add the default experiment."""
    etree.SubElement(
        root,
        "DefaultExperiment",
        startTime="0",
        stopTime=as_text(unit.stop_time),
        tolerance=as_text(unit.tolerance),
        stepSize=as_text(unit.step_size),
    )


def initial(variable: Variable) -> str | None:
    """Return the `initial` attribute of a variable; None for inputs."""
    if variable.causality is Causality.INPUT:
        return None
    return "exact" if variable.causality is Causality.PARAMETER else "calculated"


def quantity_attributes(variable: Variable, nominal: float | None) -> dict[str, str]:
    """Return unit, range and nominal value of a variable."""
    attributes = {"unit": variable.unit} if variable.unit else {}
    if variable.measured_unit.relative:
        attributes["relativeQuantity"] = "true"
    if display := DISPLAY_UNITS.get(variable.unit):
        attributes["displayUnit"] = display.name
    low, high = variable.minimum, variable.maximum
    if variable.saturates and variable.start is not None:  # which may be beyond them, and must not in a description
        low, high = (
            (None if low is None else min(low, variable.start)),
            (None if high is None else max(high, variable.start)),
        )
    for name, value in (("min", low), ("max", high), ("nominal", nominal)):
        if value is not None:
            attributes[name] = as_text(value)
    return attributes


def as_text(value: float | bool | int) -> str:
    """Return a value in the schema's notation."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(float(value)) if isinstance(value, float) else str(value)


def dependency_attributes(known: Sequence[int] | None) -> dict[str, str]:
    """Return the dependency attributes of an unknown; no attribute means full dependence.

    Parameters
    ----------
    known
        As the standard counts or calls variables.
    """
    if known is None:
        return {}
    return {
        "dependencies": " ".join(map(str, known)),
        "dependenciesKind": " ".join("dependent" for _ in known),
    }
