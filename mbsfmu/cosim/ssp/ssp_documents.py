"""Documents of SSP packages: reader, which refuses unsupported features, and writer."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from lxml import etree

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.ssp.annotations import add_joints, add_place, read_joints, read_place
from mbsfmu.cosim.ssp.structure import (
    BASIC_TYPES,
    FMU_TYPE,
    IMPLEMENTATIONS,
    KINDS,
    MAPPING_TYPE,
    SET_TYPE,
    SSC,
    SSD,
    SSM,
    SSV,
    STRUCTURE,
    TYPES,
    Binding,
    Connector,
    Faults,
    Mapping,
    MappingEntry,
    ParameterSet,
    ParameterValue,
    SspComponent,
    SspSystem,
    SspWire,
    SystemStructure,
    check_schema,
)
from mbsfmu.modelling.measurement_units import BASE_UNITS, IDENTITY, LinearMap, UnitOfMeasurement

_SSD, _SSC, _SSV, _SSM = (f"{{{each}}}" for each in (SSD, SSC, SSV, SSM))


class StructureReader:
    """Reader of an unpacked package.

    Parameters
    ----------
    folder
        Where it lies.
    name
        Name of the package, for messages.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._faults = Faults(name)

    def read(self) -> SystemStructure:
        """Return the structure of the package.

        Raises
        ------
        InputError
            When it is no SSP, or has parts that are not supported; all of them are told.
        """
        root = self._parse(STRUCTURE, SSD)
        experiment = root.find(f"{_SSD}DefaultExperiment")
        times = {} if experiment is None else dict(experiment.attrib)
        system = root.find(f"{_SSD}System")
        assert system is not None  # the schema says so
        read = self._system(system)
        units = self._faults.each(_unit, root.iterfind(f"{_SSD}Units/{_SSC}Unit"))
        self._faults.check()
        return SystemStructure(
            root.get("name", ""),
            read,
            units,
            tuple(
                (
                    each.get("name", ""),
                    tuple((item.get("name", ""), int(item.get("value", 0))) for item in each.iterfind(f"{_SSC}Item")),
                )
                for each in root.iterfind(f"{_SSD}Enumerations/{_SSC}Enumeration")
            ),
            float(times["startTime"]) if "startTime" in times else None,
            float(times["stopTime"]) if "stopTime" in times else None,
            root.get("version", ""),
        )

    def _parse(self, file: str, namespace: str) -> etree._Element:
        path = self._path(file)
        if not path.is_file():
            missing = f"is no SSP package: it holds no {file}" if file == STRUCTURE else f"holds no file '{file}'"
            raise InputError(f"{self._name} {missing}")
        try:
            root = etree.parse(path).getroot()
        except etree.XMLSyntaxError as error:
            raise InputError(f"{self._name}: {file} is no XML: {error}") from None
        check_schema(root, namespace, f"{self._name}: {file}")
        return root

    def _path(self, source: str) -> Path:
        """Return the file that a reference means; it must lie in the package."""
        path = (self._folder / unquote(source)).resolve()
        if ":" in source or "#" in source or not path.is_relative_to(self._folder.resolve()):
            raise InputError(f"{self._name} refers to '{source}'; only files inside the package are supported")
        return path

    def _refuse(self, what: str) -> InputError:
        return InputError(f"{self._name} {what}, which is not supported")

    # -- systems ----------------------------------------------------------------------------------------------

    def _system(self, system: etree._Element) -> SspSystem:
        name = system.get("name", "")
        if system.find(f"{_SSD}SignalDictionaries") is not None:
            self._faults.note(str(self._refuse(f"has signal dictionaries in '{name}'")))
        elements = self._faults.each(self._element, system.iterfind(f"{_SSD}Elements/*"))
        names = [element.name for element in elements]
        for element in names:
            if names.count(element) > 1:
                self._faults.note(f"{self._name}: '{name}' has two elements called '{element}'")
        return SspSystem(
            name,
            self._connectors(system),
            self._bindings(system),
            elements,
            self._faults.each(self._wire, system.iterfind(f"{_SSD}Connections/{_SSD}Connection")),
            tuple(read_joints(system, self._name)),
        )

    def _element(self, element: etree._Element) -> SspComponent | SspSystem:
        if element.tag == f"{_SSD}System":
            return self._system(element)
        if element.tag == f"{_SSD}Component":
            return self._component(element)
        raise self._refuse(f"refers to a signal dictionary as '{element.get('name')}'")

    def _component(self, component: etree._Element) -> SspComponent:
        name, source = component.get("name", ""), component.get("source", "")
        if component.get("type", FMU_TYPE) != FMU_TYPE:
            raise self._refuse(f"has a component '{name}' of type {component.get('type')}")
        if component.get("implementation") == "ScheduledExecution":
            raise self._refuse(f"wants '{name}' run by scheduled execution")
        if "." in name or "/" in name:
            raise self._refuse(f"has a component '{name}' with a dot or slash in its name")
        if not source:
            raise InputError(f"{self._name} has a component '{name}' without a source; there is nothing of it to run")
        if not self._path(source).is_file():
            raise InputError(f"{self._name} holds no file '{source}' for its component '{name}'")
        exchanged = {word: how for how, word in IMPLEMENTATIONS.items()}.get(component.get("implementation", "any"))
        worker = read_place(component, self._name)
        return SspComponent(name, source, self._connectors(component), self._bindings(component), exchanged, worker)

    def _connectors(self, element: etree._Element) -> tuple[Connector, ...]:
        return self._faults.each(self._connector, element.iterfind(f"{_SSD}Connectors/{_SSD}Connector"))

    def _connector(self, connector: etree._Element) -> Connector:
        name, kind = connector.get("name", ""), connector.get("kind", "")
        if kind not in KINDS:
            raise self._refuse(f"has a connector '{name}' of kind {kind}")
        dimensions = tuple(_dimension(each) for each in connector.iterfind(f"{_SSC}Dimension"))
        common = (each for each in connector.iterfind(f"{_SSC}*"))
        typed = next((each for each in common if etree.QName(each).localname in (*BASIC_TYPES, "Clock")), None)
        if typed is None:
            return Connector(name, kind, dimensions=dimensions)
        type_ = etree.QName(typed).localname
        enumeration = typed.get("name") if type_ == "Enumeration" else None
        return Connector(name, kind, type_, typed.get("unit"), enumeration, dimensions)

    def _wire(self, connection: etree._Element) -> SspWire:
        wire = SspWire(
            (connection.get("startElement") or None, connection.get("startConnector", "")),
            (connection.get("endElement") or None, connection.get("endConnector", "")),
            convert_units=connection.get("suppressUnitConversion", "false") not in ("true", "1"),
        )
        transformation = self._transformation(connection, f"on the connection {wire}")
        return SspWire(wire.start, wire.end, transformation, wire.convert_units)

    def _transformation(self, parent: etree._Element, where: str) -> LinearMap:
        for each in parent:
            name = etree.QName(each).localname
            if name == "LinearTransformation":
                factor, offset = float(each.get("factor", 1.0)), float(each.get("offset", 0.0))
                if factor == 0.0:
                    raise InputError(f"{self._name}: the transformation {where} has the factor 0")
                return LinearMap(factor, offset)
            if name.endswith("Transformation"):
                raise self._refuse(f"has a {name} {where}")
        return IDENTITY

    # -- parameters -------------------------------------------------------------------------------------------

    def _bindings(self, element: etree._Element) -> tuple[Binding, ...]:
        where = f"of '{element.get('name')}'"
        bindings = element.iterfind(f"{_SSD}ParameterBindings/{_SSD}ParameterBinding")
        return self._faults.each(lambda each: self._binding(each, where), bindings)

    def _binding(self, binding: etree._Element, where: str) -> Binding:
        self._check_source(binding, SET_TYPE, f"a parameter binding {where}")
        inline = binding.find(f"{_SSD}ParameterValues/{_SSV}ParameterSet")
        values = self._given(binding, inline, SSV, f"a parameter set {where}")
        if values is None:
            raise InputError(f"{self._name}: a parameter binding {where} has neither values nor a source")
        mapping = binding.find(f"{_SSD}ParameterMapping")
        return Binding(
            self._parameter_set(values),
            binding.get("prefix", ""),
            binding.get("source"),
            None if mapping is None else self._mapping(mapping, where),
        )

    def _given(
        self, element: etree._Element, inline: etree._Element | None, namespace: str, what: str
    ) -> etree._Element | None:
        """Return the content of an element, from its file or inline; None without content."""
        source = element.get("source")
        if source is not None:
            return self._parse(source, namespace)
        if inline is not None:
            check_schema(inline, namespace, f"{self._name}: {what}")
        return inline

    def _check_source(self, element: etree._Element, expected: str, what: str) -> None:
        if element.get("type", expected) != expected:
            raise self._refuse(f"has {what} of type {element.get('type')}")
        if element.get("sourceBase", "SSD") != "SSD":
            raise self._refuse(f"has {what} with its source inside the component")

    def _parameter_set(self, element: etree._Element) -> ParameterSet:
        values = self._faults.each(self._value, element.iterfind(f"{_SSV}Parameters/{_SSV}Parameter"))
        units = self._faults.each(_unit, element.iterfind(f"{_SSV}Units/{_SSC}Unit"))
        return ParameterSet(element.get("name", ""), values, units)

    def _value(self, parameter: etree._Element) -> ParameterValue:
        name = parameter.get("name", "")
        typed = next((each for each in parameter if etree.QName(each).localname in BASIC_TYPES), None)
        type_ = "Binary" if typed is None else etree.QName(typed).localname
        if typed is None or type_ not in TYPES:
            raise self._refuse(f"has a parameter '{name}' of type {type_}")
        dimensions = [each.get("size", "") for each in parameter if etree.QName(each).localname == "Dimension"]
        if not all(size.isdecimal() for size in dimensions):
            raise InputError(f"{self._name}: the value of '{name}' is an array without sizes")
        enumeration = typed.get("name") if type_ == "Enumeration" else None
        value, unit = typed.get("value", ""), typed.get("unit")
        return ParameterValue(name, type_, value, unit, enumeration, tuple(int(size) for size in dimensions))

    def _mapping(self, element: etree._Element, where: str) -> Mapping:
        self._check_source(element, MAPPING_TYPE, f"a parameter mapping {where}")
        root = self._given(element, element.find(f"{_SSM}ParameterMapping"), SSM, f"a parameter mapping {where}")
        if root is None:
            raise InputError(f"{self._name}: a parameter mapping {where} has neither entries nor a source")
        entries = tuple(
            MappingEntry(
                each.get("source", ""),
                each.get("target", ""),
                self._transformation(each, f"of the parameter '{each.get('source')}'"),
                each.get("suppressUnitConversion", "false") not in ("true", "1"),
            )
            for each in root.iterfind(f"{_SSM}MappingEntry")
        )
        return Mapping(entries, element.get("source"))


def _dimension(dimension: etree._Element) -> int | str | None:
    """Return the size of a dimension, or the connector that has it; None where nothing is said."""
    size = dimension.get("size")
    return dimension.get("sizeConnector") if size is None else int(size)


def _unit(unit: etree._Element) -> UnitOfMeasurement:
    base = unit.find(f"{_SSC}BaseUnit")
    assert base is not None  # the schema says so
    return UnitOfMeasurement.of_attributes(unit.get("name", ""), dict(base.attrib))


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
