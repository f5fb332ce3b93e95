"""FMI 3.0 description files of an FMU.

Components of vectors are arrays where this is chosen. The value reference of a variable is its index, that of an array
the index of its first component; that of time comes behind the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lxml import etree

from mbsfmu.fmu.description import (
    Capabilities,
    ClockVariable,
    Described,
    Entry,
    FmuDescription,
    Integrated,
    Terminal,
    entries,
    terminals,
)
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
from mbsfmu.modelling.variables import Causality, Variability, flat_description, flat_names

_VERSION = "3.0"
_TIME, _UNIT_OF_TIME = "time", "s"
_EXTENT = {"x1": "-100.0", "y1": "-100.0", "x2": "100.0", "y2": "100.0"}


def description_files(unit: FmuDescription, source_files: Sequence[str], has_icon: bool) -> dict[str, bytes]:
    """Return the files by their names in the archive.

    Parameters
    ----------
    unit
        What the unit is.
    source_files
        Files among the sources that importers compile.
    has_icon
        Whether there is a picture of it.
    """
    files = {"modelDescription.xml": _model_description(unit)}
    ports = _terminals(unit)
    if has_icon or ports:
        files["terminalsAndIcons/terminalsAndIcons.xml"] = _terminals_and_icons(ports, has_icon)
    if source_files:
        files["sources/buildDescription.xml"] = _build_description(unit, source_files)
    return files


def generated_sources(unit: FmuDescription) -> dict[str, str]:
    """Return the C files, by name, with data of the description: array sizes, and variables accessible in steps."""
    sizes, reached = [0] * len(unit.variables), [0] * len(unit.variables)
    for entry in _entries(unit):
        sizes[entry.first] = entry.size
        reached[entry.first] = int(_is_intermediate(unit, unit.variables[entry.first]))
    lines = [
        "/* How many numbers begin at each variable: 1, or those of an array; 0 inside of arrays. */",
        f"static const unsigned char array_sizes[] = {{{', '.join(map(str, sizes))}}};",
        "/* Which variables can be reached during steps. */",
        f"static const unsigned char is_intermediate[] = {{{', '.join(map(str, reached))}}};",
    ]
    return {"fmi3_variables.h": "\n".join(lines) + "\n"}


def _entries(unit: FmuDescription) -> tuple[Entry, ...]:
    """Return variables and arrays; derivatives of the elements of an array are an array too."""
    variables = [each.variable for each in unit.variables]
    if not unit.arrays:
        return tuple(Entry(each.name, index, 1) for index, each in enumerate(variables))
    listed = entries(variables, unit.apart)
    if unit.integrated is None:
        return listed
    derivatives = unit.integrated.derivatives
    joined: dict[int, Entry] = {}
    apart: set[str] = set()
    for entry in listed:
        own = [derivatives.get(entry.first + index) for index in range(entry.size)]
        first = own[0]
        if entry.size == 1 or own == [None] * entry.size:
            continue
        if first is not None and own == list(range(first, first + entry.size)):
            joined |= {first: Entry(f"der({entry.name})", first, entry.size)}
        else:  # states that solvers have in another order, or beside what is no state
            apart |= {each.name for each in variables[entry.first : entry.first + entry.size]}
    inside = {entry.first + index for entry in joined.values() for index in range(1, entry.size)}
    listed = entries(variables, {*unit.apart, *apart})
    return tuple(joined.get(entry.first, entry) for entry in listed if entry.first not in inside)


def _is_intermediate(unit: FmuDescription, each: Described) -> bool:
    variable = each.variable
    exchanged = variable.causality in (Causality.INPUT, Causality.OUTPUT)
    return unit.capabilities.takes_slopes and exchanged and variable.variability is Variability.CONTINUOUS


def _model_description(unit: FmuDescription) -> bytes:
    named = {"fmiVersion": _VERSION, "modelName": unit.name, "instantiationToken": unit.identity}
    root = etree.Element("fmiModelDescription", named | root_attributes(unit))
    if unit.integrated:
        flags = _exchange_flags(unit.capabilities, unit.integrated)
        etree.SubElement(root, "ModelExchange", {"modelIdentifier": unit.identifier, **flags})
    if unit.co_simulation:
        etree.SubElement(root, "CoSimulation", {"modelIdentifier": unit.identifier, **_flags(unit)})
    add_units(root, unit, _UNIT_OF_TIME)
    add_log_categories(root)
    add_experiment(root, unit)
    _add_variables(root, unit)
    _add_structure(root, unit)
    return document(root)


def _flags(unit: FmuDescription) -> dict[str, str]:
    """Return the flags of the co-simulation interface; each must be true of the unit."""
    capabilities = unit.capabilities
    flags = {
        "needsExecutionTool": capabilities.needs_tool,
        "canBeInstantiatedOnlyOncePerProcess": capabilities.only_once,
        "canGetAndSetFMUState": capabilities.saves_state,
        "canSerializeFMUState": capabilities.saves_state and capabilities.serializes_state,
        "providesDirectionalDerivatives": capabilities.gives_derivatives,
        "providesAdjointDerivatives": capabilities.gives_derivatives,
        "providesPerElementDependencies": False,
        "canHandleVariableCommunicationStepSize": capabilities.takes_any_step,
        "maxOutputDerivativeOrder": int(capabilities.gives_rates),
        "providesIntermediateUpdate": capabilities.takes_slopes,
        "mightReturnEarlyFromDoStep": capabilities.has_events,
        "canReturnEarlyAfterIntermediateUpdate": capabilities.takes_slopes,
        "hasEventMode": True,
        "providesEvaluateDiscreteStates": False,
    }
    return {name: as_text(value) for name, value in flags.items()}


def _exchange_flags(capabilities: Capabilities, integrated: Integrated) -> dict[str, str]:
    """Return the flags of the model-exchange interface."""
    flags = {
        "needsExecutionTool": capabilities.needs_tool,
        "canBeInstantiatedOnlyOncePerProcess": False,
        "canGetAndSetFMUState": capabilities.saves_state,
        "canSerializeFMUState": capabilities.saves_state,
        "providesDirectionalDerivatives": integrated.gives_derivatives,
        "providesAdjointDerivatives": integrated.gives_derivatives,
        "providesPerElementDependencies": False,
        "needsCompletedIntegratorStep": True,
        "providesEvaluateDiscreteStates": False,
    }
    return {name: as_text(value) for name, value in flags.items()}


def _add_variables(root: etree._Element, unit: FmuDescription) -> None:
    parent = etree.SubElement(root, "ModelVariables")
    states = unit.states_of
    names = _names(unit)
    for entry, name in names.items():
        element = _add_variable(parent, unit, entry, name)
        if entry.first in states:
            element.set("derivative", str(states[entry.first]))
    time = _TIME
    while time in names.values():
        time += "_"
    attributes = {"name": time, "valueReference": str(len(unit.variables)), "description": "simulation time"}
    etree.SubElement(
        parent, "Float64", attributes, causality="independent", variability="continuous", unit=_UNIT_OF_TIME
    )
    clocks = [each.name for each in unit.clocks]
    if unit.naming == "flat":
        clocks = flat_names([*names.values(), time, *clocks])[len(names) + 1 :]
    for clock, name in zip(unit.clocks, clocks, strict=True):
        _add_clock(parent, len(unit.variables), clock, name, unit.naming == "flat")


def _add_clock(parent: etree._Element, last: int, clock: ClockVariable, name: str, flat: bool) -> None:
    """Add a clock, whose value reference follows `last`, that of time."""
    attributes = {
        "name": name,
        "valueReference": str(last + 1 + clock.number),
        "description": flat_description(clock.name, clock.description) if flat else clock.description,
        "causality": "input",
        "variability": "discrete",
        "intervalVariability": "triggered" if clock.interval is None else "constant",
    }
    if clock.interval is not None and clock.shift is not None:
        attributes |= {"intervalDecimal": as_text(clock.interval), "shiftDecimal": as_text(clock.shift)}
    etree.SubElement(parent, "Clock", attributes)


def _names(unit: FmuDescription) -> dict[Entry, str]:
    """Return variables and arrays with their names as they are written."""
    listed = _entries(unit)
    names = [entry.name for entry in listed]
    return dict(zip(listed, flat_names(names) if unit.naming == "flat" else names, strict=True))


def _terminals(unit: FmuDescription) -> list[Terminal]:
    """Return the terminals of an FMU, with its variable names."""
    names = {entry.name: name for entry, name in _names(unit).items()}
    found = terminals([each.variable for each in unit.variables])
    return [
        replace(port, members=tuple(replace(each, variable=names[each.variable]) for each in port.members))
        for port in found
    ]


def _add_variable(parent: etree._Element, unit: FmuDescription, entry: Entry, name: str) -> etree._Element:
    components = unit.variables[entry.first : entry.first + entry.size]
    first = components[0]
    variable = first.variable
    attributes = {
        "name": name,
        "valueReference": str(entry.first),
        "description": first.description if entry.size == 1 else _array_description(unit, entry),
        "causality": variable.causality.value,
        "variability": variable.variability.value,
    }
    if how := initial(variable):
        attributes["initial"] = how
    if _is_intermediate(unit, first):
        attributes["intermediateUpdate"] = "true"
    nominals = [each.nominal for each in components if each.nominal is not None]
    attributes |= quantity_attributes(variable, max(nominals, default=None))
    starts = [each.variable.start for each in components if variable.settable and each.variable.start is not None]
    if starts:
        attributes["start"] = " ".join(map(as_text, starts))
    element = etree.SubElement(parent, "Float64", attributes)
    if entry.size > 1:
        etree.SubElement(element, "Dimension", start=str(entry.size))
    return element


def _array_description(unit: FmuDescription, entry: Entry) -> str:
    """Return the description of an array: that of its components, with their order."""
    components = unit.variables[entry.first : entry.first + entry.size]
    texts = [each.variable.description for each in components]
    axes = [each.variable.name.rpartition(".")[2] for each in components]
    common = {text.removesuffix(f", {axis}") for text, axis in zip(texts, axes, strict=True)}
    text = f"{common.pop() if len(common) == 1 else texts[0]}; elements {', '.join(axes)}"
    return flat_description(entry.name, text) if unit.naming == "flat" else text


def _add_structure(root: etree._Element, unit: FmuDescription) -> None:
    structure = etree.SubElement(root, "ModelStructure")
    listed = _entries(unit)
    references = {entry.first + index: entry.first for entry in listed for index in range(entry.size)}
    rates = unit.integrated.dependencies if unit.integrated else {}
    listed_unknowns = {
        "Output": unit.outputs,
        "ContinuousStateDerivative": rates,
        "InitialUnknown": unit.initial_unknowns,
        "EventIndicator": unit.integrated.indicators if unit.integrated else {},
    }
    for tag, unknowns in listed_unknowns.items():
        for unknown, known in _by_reference(unknowns, references).items():
            etree.SubElement(structure, tag, {"valueReference": str(unknown), **dependency_attributes(known)})


def _by_reference(
    unknowns: Mapping[int, Sequence[int] | None], references: Mapping[int, int]
) -> dict[int, list[int] | None]:
    """Return dependencies by value reference; an array depends on all dependencies of its elements."""
    found: dict[int, set[int]] = {}
    for unknown, known in unknowns.items():
        found.setdefault(references[unknown], set()).update(references[each] for each in known or ())
    everything = {references[unknown] for unknown, known in unknowns.items() if known is None}
    return {unknown: None if unknown in everything else sorted(known) for unknown, known in found.items()}


def _terminals_and_icons(ports: Sequence[Terminal], has_icon: bool) -> bytes:
    root = etree.Element("fmiTerminalsAndIcons", fmiVersion=_VERSION)
    if has_icon:
        drawn = etree.SubElement(root, "GraphicalRepresentation")
        etree.SubElement(drawn, "CoordinateSystem", _EXTENT, suggestedScalingFactorTo_mm="0.1")
        etree.SubElement(drawn, "Icon", _EXTENT)
    listed = etree.SubElement(root, "Terminals") if ports else root
    for port in ports:
        terminal = etree.SubElement(listed, "Terminal", name=port.name, matchingRule="bus")
        for each in port.members:
            named = {"variableName": each.variable, "memberName": each.name, "variableKind": each.kind}
            etree.SubElement(terminal, "TerminalMemberVariable", named)
    return document(root)


def _build_description(unit: FmuDescription, source_files: Sequence[str]) -> bytes:
    root = etree.Element("fmiBuildDescription", fmiVersion=_VERSION)
    configuration = etree.SubElement(root, "BuildConfiguration", modelIdentifier=unit.identifier)
    files = etree.SubElement(configuration, "SourceFileSet", language="C99")
    for name in source_files:
        etree.SubElement(files, "SourceFile", name=name)
    return document(root)
