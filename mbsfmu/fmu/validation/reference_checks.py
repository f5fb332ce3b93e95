"""The manifest of related files: FMI-LS-REF 1.0.0-alpha.1, a draft."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from lxml import etree

from mbsfmu.fmu.validation.subject import Subject

FOLDER = "extra/org.fmi-standard.fmi-ls-ref"
MANIFEST = f"{FOLDER}/fmi-ls-manifest.xml"
LAYERED = "http://fmi-standard.org/fmi-ls-manifest"
NAME = "org.fmi-standard.fmi-ls-ref"
_ROLES = re.compile(
    "(document|requirement|specification|model|parameter|system|testcase|"
    "experiment(/(smoke-test|validation|uncertainty-analysis))?|result|method|rationale|report|request|delivery|"
    "configuration|signature|serialized-state(/.*)?|meta-data|other)"
)
"""As the schema of the layered standard has them."""


def entry_of(source: str) -> str | None:
    """Return the entry of the archive that a relative URI of a manifest means; None for an absolute URI."""
    parts = urlsplit(source)
    return None if parts.scheme or parts.netloc else posixpath.normpath(f"{FOLDER}/{unquote(parts.path)}")


def check_references(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the manifest of related files."""
    if MANIFEST not in subject.names:
        return
    try:
        root = etree.fromstring(subject.read(MANIFEST))
    except etree.XMLSyntaxError as error:
        yield "reference-manifest", f"{MANIFEST} is no XML: {error}"
        return
    if root.tag != "fmiReferences" or root.get(f"{{{LAYERED}}}fmi-ls-name") != NAME:
        yield "reference-manifest", f"{MANIFEST} is no element fmiReferences with the fmi-ls-name {NAME}"
        return
    for related in root.iterfind("Related"):
        source, role = related.get("source"), related.get("role") or ""
        if not source:
            yield "reference-manifest", f"{MANIFEST} has a related file without source"
            continue
        if not _ROLES.fullmatch(role):
            yield "reference-manifest", f"{MANIFEST} gives {source} the role '{role}', which the layered standard lacks"
        entry = entry_of(source)
        if entry is not None and entry not in subject.names:
            yield "reference-manifest", f"{MANIFEST} names {source}, which is not in the archive"
