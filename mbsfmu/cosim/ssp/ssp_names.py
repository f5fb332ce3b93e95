"""Names and schemas of SSP 1.0 and 2.0, which have the same namespaces."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import fmpy.ssp
from lxml import etree

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.ssp.structure import BASIC_TYPES

_ROOT = "http://ssp-standard.org/SSP1/"
SSD = _ROOT + "SystemStructureDescription"
SSC = _ROOT + "SystemStructureCommon"
SSV = _ROOT + "SystemStructureParameterValues"
SSM = _ROOT + "SystemStructureParameterMapping"

STRUCTURE = "SystemStructure.ssd"
FMU_TYPE = "application/x-fmu-sharedlibrary"
SET_TYPE = "application/x-ssp-parameter-set"
MAPPING_TYPE = "application/x-ssp-parameter-mapping"

VERSIONS = ("1.0", "2.0")
_SCHEMAS = {
    SSD: "SystemStructureDescription.xsd",
    SSV: "SystemStructureParameterValues.xsd",
    SSM: "SystemStructureParameterMapping.xsd",
}
_ONLY_2 = ("Dimension", "MetaData", "Signature")
"""Elements that SSP 1.0 does not have, and whose absence changes nothing in the rest."""
_KINDS_2 = {"structuralParameter": "parameter", "local": "output", "constant": "output", "unspecified": "inout"}


def check_schema(root: etree._Element, namespace: str, what: str) -> str:
    """Validate a document against the schema of SSP 1.0; one of SSP 2.0 without its new elements.

    Returns
    -------
    str
        Its version, one of `VERSIONS`.

    Raises
    ------
    InputError
        When it is another document, or of another version, or does not follow the schema.
    """
    name = etree.QName(root)
    if name.namespace != namespace:
        raise InputError(f"{what} is no document of SSP: its root is '{name.localname}' of {name.namespace}")
    version = root.get("version", "")
    if version not in VERSIONS:
        raise InputError(f"{what} is of version {version or 'unknown'}; SSP 1.0 and 2.0 are supported")
    folder = Path(str(fmpy.ssp.__file__)).parent / "schema"
    schema = etree.XMLSchema(file=str(folder / _SCHEMAS[namespace]))
    if not schema.validate(root if version == "1.0" else _reduced(root)):
        entries: Any = schema.error_log  # whose stubs have no iteration
        faults = "; ".join(dict.fromkeys(f"line {entry.line}: {entry.message}" for entry in entries))
        raise InputError(f"{what} does not follow the schema of SSP {version}: {faults}")
    return version


def _reduced(root: etree._Element) -> etree._Element:
    """Return a document of SSP 2.0 without what SSP 1.0 does not have, for its schema."""
    copy = deepcopy(root)
    for node in list(copy.iter(etree.Element)):
        name = etree.QName(node)
        parent = node.getparent()
        if node.get("version") == "2.0":
            node.set("version", "1.0")
        if parent is not None and (name.localname in _ONLY_2 or _is_clock_of_connector(node, parent)):
            parent.remove(node)
        elif name.localname in BASIC_TYPES and name.namespace in (SSC, SSV):
            node.tag = f"{{{name.namespace}}}{BASIC_TYPES[name.localname]}"
            _keep_one_value(node)
        elif name.localname == "Connector":
            node.set("kind", _KINDS_2.get(node.get("kind", ""), node.get("kind", "")))
        elif name.localname == "Component":
            node.set("source", node.get("source", ""))
            if node.get("implementation") == "ScheduledExecution":
                node.set("implementation", "any")
        elif name.localname == "ConnectorGeometry":
            node.attrib.pop("systemInnerX", "")
            node.attrib.pop("systemInnerY", "")
    return copy


def _is_clock_of_connector(node: etree._Element, parent: etree._Element) -> bool:
    return etree.QName(node).localname == "Clock" and etree.QName(parent).localname in ("Connector", "DictionaryEntry")


def _keep_one_value(node: etree._Element) -> None:
    """Leave the first of the values of an array."""
    values = node.get("value", "").split()
    if len(values) > 1 and etree.QName(node).localname != "String":
        node.set("value", values[0])
