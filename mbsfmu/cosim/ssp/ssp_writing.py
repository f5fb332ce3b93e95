"""Writer of a package's structure description, reproducible."""

from __future__ import annotations

from lxml import etree

from mbsfmu.cosim.ssp.joint_annotation import add_joints
from mbsfmu.cosim.ssp.place_annotation import add_place
from mbsfmu.cosim.ssp.ssp_names import FMU_TYPE, SSC, SSD, SSM, SSV, check_schema
from mbsfmu.cosim.ssp.structure import (
    IMPLEMENTATIONS,
    Binding,
    Connector,
    Mapping,
    ParameterSet,
    SspComponent,
    SspSystem,
    SspWire,
    SystemStructure,
)
from mbsfmu.modelling.measurement_units import BASE_UNITS, IDENTITY, LinearMap, UnitOfMeasurement

_SSD, _SSC, _SSV, _SSM = (f"{{{each}}}" for each in (SSD, SSC, SSV, SSM))
_PREFIXES = {"ssd": SSD, "ssc": SSC, "ssv": SSV, "ssm": SSM}


def structure_xml(structure: SystemStructure) -> bytes:
    """Return the document `SystemStructure.ssd`, validated against its schema."""
    root = etree.Element(
        f"{_SSD}SystemStructureDescription", nsmap=_PREFIXES, version=structure.version, name=structure.name
    )
    _add_system(root, structure.system, structure.version)
    if structure.enumerations:
        parent = etree.SubElement(root, f"{_SSD}Enumerations")
        for name, items in structure.enumerations:
            enumeration = etree.SubElement(parent, f"{_SSC}Enumeration", name=name)
            for item, value in items:
                etree.SubElement(enumeration, f"{_SSC}Item", name=item, value=str(value))
    _add_units(root, f"{_SSD}Units", structure.units)
    times = {"startTime": structure.start, "stopTime": structure.stop}
    given = {name: repr(time) for name, time in times.items() if time is not None}
    if given:
        etree.SubElement(root, f"{_SSD}DefaultExperiment", given)
    check_schema(root, SSD, "the package to be written")
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True, pretty_print=True)


def _add_system(parent: etree._Element, system: SspSystem, version: str) -> None:
    node = etree.SubElement(parent, f"{_SSD}System", name=system.name)
    _add_connectors(node, system.connectors)
    _add_bindings(node, system.bindings, version)
    if system.elements:
        elements = etree.SubElement(node, f"{_SSD}Elements")
        for element in system.elements:
            if isinstance(element, SspSystem):
                _add_system(elements, element, version)
            else:
                _add_component(elements, element, version)
    if system.wires:
        connections = etree.SubElement(node, f"{_SSD}Connections")
        for wire in system.wires:
            _add_wire(connections, wire)
    add_joints(node, system.joints)


def _add_component(parent: etree._Element, component: SspComponent, version: str) -> None:
    node = etree.SubElement(
        parent,
        f"{_SSD}Component",
        name=component.name,
        type=FMU_TYPE,
        source=component.source,
        implementation=IMPLEMENTATIONS[component.exchanged],
    )
    _add_connectors(node, component.connectors)
    _add_bindings(node, component.bindings, version)
    add_place(node, component.worker)


def _add_connectors(parent: etree._Element, connectors: tuple[Connector, ...]) -> None:
    if not connectors:
        return
    node = etree.SubElement(parent, f"{_SSD}Connectors")
    for connector in connectors:
        child = etree.SubElement(node, f"{_SSD}Connector", name=connector.name, kind=connector.kind)
        if connector.type is not None:
            typed = {"unit": connector.unit, "name": connector.enumeration}
            given = {name: value for name, value in typed.items() if value is not None}
            etree.SubElement(child, f"{_SSC}{connector.type}", given)
        _add_dimensions(child, connector.dimensions)


def _add_dimensions(parent: etree._Element, dimensions: tuple[int | str | None, ...]) -> None:
    for each in dimensions:
        given = {} if each is None else {"size": str(each)} if isinstance(each, int) else {"sizeConnector": each}
        etree.SubElement(parent, f"{_SSC}Dimension", given)


def _add_wire(parent: etree._Element, wire: SspWire) -> None:
    ends = {
        "startElement": wire.start[0],
        "startConnector": wire.start[1],
        "endElement": wire.end[0],
        "endConnector": wire.end[1],
        "suppressUnitConversion": None if wire.convert_units else "true",
    }
    node = etree.SubElement(
        parent, f"{_SSD}Connection", {name: value for name, value in ends.items() if value is not None}
    )
    _add_transformation(node, wire.transformation)


def _add_transformation(parent: etree._Element, transformation: LinearMap) -> None:
    if transformation != IDENTITY:
        etree.SubElement(
            parent,
            f"{_SSC}LinearTransformation",
            factor=repr(transformation.factor),
            offset=repr(transformation.offset),
        )


def _add_bindings(parent: etree._Element, bindings: tuple[Binding, ...], version: str) -> None:
    if not bindings:
        return
    node = etree.SubElement(parent, f"{_SSD}ParameterBindings")
    for binding in bindings:
        named = {"source": binding.source, "prefix": binding.prefix or None}
        child = etree.SubElement(
            node, f"{_SSD}ParameterBinding", {name: value for name, value in named.items() if value is not None}
        )
        if binding.source is None:
            _add_parameter_set(etree.SubElement(child, f"{_SSD}ParameterValues"), binding.values, version)
        if binding.mapping is not None:
            _add_mapping(child, binding.mapping, version)


def _add_parameter_set(parent: etree._Element, values: ParameterSet, version: str) -> None:
    node = etree.SubElement(parent, f"{_SSV}ParameterSet", version=version, name=values.name)
    parameters = etree.SubElement(node, f"{_SSV}Parameters")
    for each in values.values:
        parameter = etree.SubElement(parameters, f"{_SSV}Parameter", name=each.name)
        typed = {"value": each.value, "unit": each.unit, "name": each.enumeration}
        etree.SubElement(
            parameter, f"{_SSV}{each.type}", {name: value for name, value in typed.items() if value is not None}
        )
        _add_dimensions(parameter, each.dimensions)
    _add_units(node, f"{_SSV}Units", values.units)


def _add_mapping(parent: etree._Element, mapping: Mapping, version: str) -> None:
    if mapping.source is not None:
        etree.SubElement(parent, f"{_SSD}ParameterMapping", source=mapping.source)
        return
    node = etree.SubElement(
        etree.SubElement(parent, f"{_SSD}ParameterMapping"), f"{_SSM}ParameterMapping", version=version
    )
    for entry in mapping.entries:
        child = etree.SubElement(node, f"{_SSM}MappingEntry", source=entry.source, target=entry.target)
        if not entry.convert_units:
            child.set("suppressUnitConversion", "true")
        _add_transformation(child, entry.transformation)


def _add_units(parent: etree._Element, tag: str, units: tuple[UnitOfMeasurement, ...]) -> None:
    if not units:
        return
    node = etree.SubElement(parent, tag)
    for unit in units:
        attributes = {
            base: str(exponent) for base, exponent in zip(BASE_UNITS, unit.exponents or (), strict=False) if exponent
        }
        if unit.factor != 1.0:
            attributes["factor"] = repr(unit.factor)
        if unit.offset != 0.0:
            attributes["offset"] = repr(unit.offset)
        etree.SubElement(etree.SubElement(node, f"{_SSC}Unit", name=unit.name), f"{_SSC}BaseUnit", attributes)
