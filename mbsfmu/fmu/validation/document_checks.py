"""Checks of further documents: terminals and icons, build description."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fmpy
from lxml import etree

from mbsfmu.fmu.validation.subject import Subject

_TERMINALS = "terminalsAndIcons/terminalsAndIcons.xml"
_BUILD = "sources/buildDescription.xml"
_SCHEMAS = {
    _TERMINALS: ("terminals", "fmi3TerminalsAndIcons.xsd"),
    _BUILD: ("build-description", "fmi3BuildDescription.xsd"),
}


def check_documents(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on documents of FMI 3.0; terminals may exist in FMI 2.0 too."""
    for name, (rule, schema) in _SCHEMAS.items():
        if name not in subject.names:
            if (
                name == _BUILD
                and subject.version == "3.0"
                and any(each.startswith("sources/") for each in subject.names)
            ):
                yield rule, f"there are sources without {_BUILD}"
            continue
        try:
            root = etree.fromstring(subject.read(name))
        except etree.XMLSyntaxError as error:
            yield rule, f"{name} is no XML: {error}"
            continue
        document = etree.XMLSchema(file=str(Path(str(fmpy.__file__)).parent / "schema" / "fmi3" / schema))
        if not document.validate(root):
            errors: Any = document.error_log  # whose stubs have no iteration
            yield from ((rule, f"{name}, line {entry.line}: {entry.message}") for entry in errors)
        elif name == _TERMINALS:
            yield from _check_terminals(subject, root)
        else:
            yield from _check_build(subject, root)


def _check_terminals(subject: Subject, root: etree._Element) -> Iterator[tuple[str, str]]:
    variables = {each.get("name") for each in subject.variables}
    variables |= {alias.get("name") for each in subject.variables for alias in each.node.iterfind("Alias")}
    for terminal in root.iter("Terminal"):
        where = f"the terminal {terminal.get('name')}"
        members = terminal.findall("TerminalMemberVariable")
        for member in members:
            if member.get("variableName") not in variables:
                yield "terminal-variable", f"{where} has the variable {member.get('variableName')}, which there is not"
        if terminal.get("matchingRule") in ("plug", "bus"):
            names = [member.get("memberName") for member in members]
            if None in names or len(set(names)) < len(names):
                yield "terminal-variable", f"{where} needs a name of its own for each member, to be matched by names"


def _check_build(subject: Subject, root: etree._Element) -> Iterator[tuple[str, str]]:
    for source in root.iter("SourceFile"):
        if f"sources/{source.get('name')}" not in subject.names:
            yield "build-description", f"{_BUILD} names {source.get('name')}, which there is not"
    identifiers = {each.get("modelIdentifier") for each in subject.interfaces}
    for build in root.iter("BuildConfiguration"):
        if build.get("modelIdentifier") not in identifiers:
            built = build.get("modelIdentifier")
            yield "build-identifier", f"{_BUILD} builds {built}, which is no modelIdentifier of the description"
