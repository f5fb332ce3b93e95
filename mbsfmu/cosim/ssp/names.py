"""Names and schemas of SSP 1.0."""

from __future__ import annotations

from pathlib import Path

import fmpy.ssp
from lxml import etree

from mbsfmu.errors import InputError

_ROOT = "http://ssp-standard.org/SSP1/"
SSD = _ROOT + "SystemStructureDescription"
SSC = _ROOT + "SystemStructureCommon"
SSV = _ROOT + "SystemStructureParameterValues"
SSM = _ROOT + "SystemStructureParameterMapping"

STRUCTURE = "SystemStructure.ssd"
FMU_TYPE = "application/x-fmu-sharedlibrary"
SET_TYPE = "application/x-ssp-parameter-set"
MAPPING_TYPE = "application/x-ssp-parameter-mapping"

_SCHEMAS = {
    SSD: "SystemStructureDescription.xsd",
    SSV: "SystemStructureParameterValues.xsd",
    SSM: "SystemStructureParameterMapping.xsd",
}


def check_schema(root: etree._Element, namespace: str, what: str) -> None:
    """Hold a document against the schema of SSP 1.0.

    Raises
    ------
    InputError
        When it is another document, or of another version, or does not follow the schema.
    """
    name = etree.QName(root)
    if name.namespace != namespace:
        raise InputError(f"{what} is no document of SSP 1.0: its root is '{name.localname}' of {name.namespace}")
    version = root.get("version", "")
    if not version.startswith("1."):
        raise InputError(f"{what} is of version {version or 'unknown'}; SSP 1.0 is supported")
    folder = Path(str(fmpy.ssp.__file__)).parent / "schema"
    schema = etree.XMLSchema(file=str(folder / _SCHEMAS[namespace]))
    try:
        schema.assertValid(root)
    except etree.DocumentInvalid as error:
        raise InputError(f"{what} does not follow the schema of SSP 1.0: {error}") from None
