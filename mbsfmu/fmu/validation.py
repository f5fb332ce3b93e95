"""Validation of an FMU file: schema, FMPy, and checks of archive, description, variables and structure.

Validation of an FMU file: schema, FMPy, and further checks.

Findings have a severity: errors violate the standard, or prevent use in any importer; warnings are against the
standard's advice or prevent use somewhere; hints name missing features.
"""

from __future__ import annotations

import math
import os
import posixpath
import re
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import fmpy
from fmpy.validation import validate_fmu
from lxml import etree

from mbsfmu.base.archives import opened_archive
from mbsfmu.base.errors import InputError
from mbsfmu.base.files import reason


class Severity(StrEnum):
    """Severity of a finding, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


@dataclass(frozen=True)
class Finding:
    """A finding.

    Attributes
    ----------
    severity
        How bad it is.
    rule
        Name of the rule.
    place
        Where the standard has it.
    sentence
        What is found.
    """

    severity: Severity
    rule: str
    place: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.sentence} ({self.rule}; {self.place})"


@dataclass(frozen=True)
class ValidationRule:
    """A rule: its severity, and its sections in FMI 2.0 and 3.0."""

    severity: Severity
    fmi2: str
    fmi3: str

    def place(self, version: str) -> str:
        """Return the section of a version of the standard."""
        if version.startswith("3."):
            return f"FMI 3.0, section {self.fmi3}"
        return f"FMI 2.0.4, section {self.fmi2}" if version == "2.0" else "FMI 1.0"


_ERROR, _WARNING, _HINT = Severity
RULES = {
    # the file
    "archive-path": ValidationRule(_ERROR, "2.3", "2.5"),
    "archive-compression": ValidationRule(_ERROR, "2.3", "2.5"),
    "archive-link": ValidationRule(_WARNING, "2.3", "2.5"),
    "implementation": ValidationRule(_ERROR, "2.3", "2.5"),
    "library-name": ValidationRule(_ERROR, "2.3", "2.5.1.4"),
    "platform-name": ValidationRule(_WARNING, "2.3", "2.5.1.4.1"),
    "build-description": ValidationRule(_ERROR, "2.3", "2.4.10"),
    "build-identifier": ValidationRule(_WARNING, "2.3", "2.4.10"),
    "terminals": ValidationRule(_ERROR, "2.3", "2.4.9"),
    "terminal-variable": ValidationRule(_ERROR, "2.3", "2.4.9.2.3"),
    "reference-manifest": ValidationRule(_WARNING, "2.3", "2.5"),
    # the description as a whole
    "schema": ValidationRule(_ERROR, "2.2", "2.4"),
    "readable": ValidationRule(_ERROR, "2.2", "2.4"),
    "identity": ValidationRule(_ERROR, "2.2.1", "2.4.1"),
    "date": ValidationRule(_WARNING, "2.2.1", "2.4.1"),
    "default-experiment": ValidationRule(_HINT, "2.2.5", "2.4.6"),
    # units
    "unit": ValidationRule(_ERROR, "2.2.2", "2.4.3"),
    "display-unit": ValidationRule(_ERROR, "2.2.2", "2.4.3"),
    # variables
    "name": ValidationRule(_ERROR, "2.2.9", "2.4.7.5.1"),
    "unique-name": ValidationRule(_ERROR, "2.2.7", "2.4.7.4"),
    "unique-reference": ValidationRule(_ERROR, "2.2.7", "2.4.7.4"),
    "settable-alias": ValidationRule(_ERROR, "2.2.7", "2.4.7.3"),
    "declared-type": ValidationRule(_ERROR, "2.2.7", "2.4.7.5"),
    "variability": ValidationRule(_ERROR, "2.2.7", "2.4.7.4"),
    "start": ValidationRule(_ERROR, "2.2.7", "2.4.7.5"),
    "start-range": ValidationRule(_ERROR, "2.2.7", "2.4.7.5"),
    "start-item": ValidationRule(_WARNING, "2.2.7", "2.4.7.5"),
    "start-count": ValidationRule(_ERROR, "2.2.7", "2.4.7.5"),
    "range": ValidationRule(_ERROR, "2.2.3", "2.4.4"),
    "nominal": ValidationRule(_ERROR, "2.2.3", "2.4.4"),
    "dimension": ValidationRule(_ERROR, "2.2.7", "2.4.7.2"),
    "independent": ValidationRule(_ERROR, "2.2.7", "2.4.7.4"),
    "clock": ValidationRule(_ERROR, "2.2.7", "2.4.7.5"),
    # the structure
    "structure": ValidationRule(_ERROR, "2.2.8", "2.4.8"),
    "outputs": ValidationRule(_ERROR, "2.2.8", "2.4.8"),
    "initial-unknowns": ValidationRule(_ERROR, "2.2.8", "2.4.8"),
    "dependencies": ValidationRule(_ERROR, "2.2.8", "2.4.8"),
    "no-dependencies": ValidationRule(_HINT, "2.2.8", "2.4.8"),
    "derivative": ValidationRule(_ERROR, "2.2.7", "2.4.8"),
    "state": ValidationRule(_ERROR, "2.2.7", "2.4.7.4"),
    "event-indicator": ValidationRule(_ERROR, "2.2.1", "2.4.8"),
    # what importers have to do without
    "execution-tool": ValidationRule(_WARNING, "4.3.1", "2.4.2"),
    "one-instance": ValidationRule(_WARNING, "4.3.1", "2.4.2"),
    "no-states": ValidationRule(_HINT, "4.3.1", "2.4.2"),
    "equal-steps": ValidationRule(_HINT, "4.3.1", "4.4.1"),
    "no-derivatives": ValidationRule(_HINT, "3.3.1", "2.4.2"),
    "no-co-simulation": ValidationRule(_HINT, "4.3.1", "4.4.1"),
}


def finding(rule: str, version: str, sentence: str) -> Finding:
    """Return a finding of a rule for a version of FMI."""
    known = RULES[rule]
    return Finding(known.severity, rule, known.place(version), sentence)


DESCRIPTION = "modelDescription.xml"


@dataclass(frozen=True)
class WrittenVariable:
    """A variable as its description has it.

    Attributes
    ----------
    index
        Its number, from 1 on.
    type
        Real, Float64, and so on; empty where there is none.
    attributes
        Those of the variable and of its type together, which have no names in common.
    node
        The element in the document.
    """

    index: int
    type: str
    attributes: Mapping[str, str]
    node: etree._Element

    @property
    def name(self) -> str:
        """Name, or what it is called without one."""
        return self.attributes.get("name", f"variable {self.index}")

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.type in ("Real", "Integer", "Enumeration") or self.type.startswith(("Float", "Int", "UInt"))

    def get(self, attribute: str) -> str | None:
        """Return an attribute."""
        return self.attributes.get(attribute)


class Subject:
    """A file that is checked.

    Parameters
    ----------
    path
        The FMU file.

    Attributes
    ----------
    entries
        Of the archive.
    root
        Root of the description.
    version
        Of FMI, as the description has it.

    Raises
    ------
    InputError
        When there is no such file, or it is no FMU.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        self.path = path
        try:
            with opened_archive(path, checks_names=False) as archive:
                self.entries = archive.infolist()
                self.root = etree.fromstring(archive.read(DESCRIPTION))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {reason(error)}") from None
        except (zipfile.BadZipFile, KeyError, etree.XMLSyntaxError, NotImplementedError, RuntimeError) as error:
            raise InputError(f"{path} is no FMU: {str(error).strip()}") from None
        self.version = self.root.get("fmiVersion", "")

    @property
    def names(self) -> list[str]:
        """Names of the entries."""
        return [entry.orig_filename for entry in self.entries]

    def read(self, name: str) -> bytes:
        """Return the content of an entry."""
        with opened_archive(self.path, checks_names=False) as archive:
            return archive.read(name)

    @property
    def interfaces(self) -> list[etree._Element]:
        """Elements of the FMU's interfaces in the description."""
        found = (self.root.find(name) for name in ("CoSimulation", "ModelExchange", "ScheduledExecution"))
        return [each for each in found if each is not None]

    @cached_property
    def variables(self) -> list[WrittenVariable]:
        """Its variables."""
        return list(self._variables())

    def _variables(self) -> Iterator[WrittenVariable]:
        parent = self.root.find("ModelVariables")
        nodes = [] if parent is None else [each for each in parent if isinstance(each.tag, str)]
        for index, node in enumerate(nodes, 1):
            if self.version.startswith("3."):
                yield WrittenVariable(index, str(node.tag), _texts(node), node)
                continue
            typed = next((each for each in node if each.tag != "Annotations" and isinstance(each.tag, str)), None)
            inner = {} if typed is None else _texts(typed)
            yield WrittenVariable(index, "" if typed is None else str(typed.tag), {**_texts(node), **inner}, node)


def _texts(node: etree._Element) -> dict[str, str]:
    return {str(key): str(value) for key, value in node.attrib.items()}


_ENCRYPTED = 0x1  # of the flags of an entry
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PLATFORMS_2 = {f"{system}{bits}" for system, bits in product(("win", "linux", "darwin"), ("32", "64"))}
_PROCESSORS = ("aarch32", "aarch64", "riscv32", "riscv64", "x86", "x86_64", "ppc32", "ppc64")
_PLATFORMS_3 = {f"{processor}-{system}" for processor, system in product(_PROCESSORS, ("darwin", "linux", "windows"))}


def check_archive(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on the entries of the archive."""
    known: set[str] = set()
    for entry in subject.entries:
        name = entry.orig_filename
        if name in known:
            yield "archive-path", f"the archive has two entries {name}"
        known.add(name)
        if "\\" in name:
            yield "archive-path", f"the archive's entry {name} has a backslash"
        if name.startswith("/") or ".." in PurePosixPath(name).parts:
            yield "archive-path", f"the archive's entry {name} leads out of it"
        if entry.compress_type not in _METHODS or entry.flag_bits & _ENCRYPTED:
            yield "archive-compression", f"the archive's entry {name} is neither stored nor deflated, or is encrypted"
        if stat.S_ISLNK(entry.external_attr >> 16):
            yield "archive-link", f"the archive's entry {name} is a link"
    if subject.version in ("2.0", "3.0"):
        yield from _check_libraries(subject)


def _check_libraries(subject: Subject) -> Iterator[tuple[str, str]]:
    libraries = [PurePosixPath(name) for name in subject.names]
    libraries = [each for each in libraries if each.suffix in (".so", ".dll", ".dylib", ".a", ".lib")]
    binaries = [each for each in libraries if each.parts[0] == "binaries" and len(each.parts) > 2]
    if not binaries and not any(
        name.startswith("sources/") and name.endswith((".c", ".cpp")) for name in subject.names
    ):
        yield "implementation", "there is neither a binary nor a source"
    identifiers = dict.fromkeys(each.get("modelIdentifier") for each in subject.interfaces)
    known = _PLATFORMS_3 if subject.version == "3.0" else _PLATFORMS_2
    for platform in sorted({each.parts[1] for each in binaries}):
        for identifier in identifiers:
            if not any(each.parts[1] == platform and each.stem == identifier for each in binaries):
                yield "library-name", f"binaries/{platform} has no library named after the modelIdentifier {identifier}"
        if platform not in known:
            yield "platform-name", f"binaries/{platform} is for a platform that the standard has no name for"


_UTC = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_DATE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?$")
_EXPERIMENT = ("startTime", "stopTime", "tolerance", "stepSize")
_TRUE = ("true", "1")


def check_description(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on root attributes, default experiment, and capabilities."""
    root = subject.root
    identity = "instantiationToken" if subject.version == "3.0" else "guid"
    if not (root.get(identity) or "").strip():
        yield "identity", f"the attribute {identity} is empty"
    date = root.get("generationDateAndTime")
    if date is not None and subject.version == "2.0" and not _UTC.match(date):
        yield "date", f"generationDateAndTime is {date}; it should be in UTC and end in Z"
    if date is not None and subject.version == "3.0" and not _DATE.match(date):
        yield "date", f"generationDateAndTime is {date}; it must be a date and a time as in 2009-12-08T14:33:22Z"
    experiment = root.find("DefaultExperiment")
    for attribute in _EXPERIMENT:
        if experiment is None or experiment.get(attribute) is None:
            yield "default-experiment", f"DefaultExperiment has no {attribute}"
    yield from _check_capabilities(subject)


def _check_capabilities(subject: Subject) -> Iterator[tuple[str, str]]:
    if not subject.interfaces:
        yield "schema", "it is for neither co-simulation nor model exchange nor scheduled execution"
    for interface in subject.interfaces:
        if interface.get("needsExecutionTool") in _TRUE:
            yield "execution-tool", f"{interface.tag} needs the tool that made it (needsExecutionTool)"
        if interface.get("canBeInstantiatedOnlyOncePerProcess") in _TRUE:
            yield "one-instance", f"{interface.tag} can have one instance in a process only"
    state = "canGetAndSetFMUState" if subject.version == "3.0" else "canGetAndSetFMUstate"
    co_simulation, exchange = (subject.root.find(name) for name in ("CoSimulation", "ModelExchange"))
    if any(each is not None and each.get(state) not in _TRUE for each in (co_simulation, exchange)):
        yield "no-states", f"without {state}, no master can repeat a step"
    if co_simulation is None:
        yield "no-co-simulation", "it has no co-simulation, which most importers need"
    elif co_simulation.get("canHandleVariableCommunicationStepSize") not in _TRUE:
        yield "equal-steps", "without canHandleVariableCommunicationStepSize, a master must make equal steps"


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


def check_structure(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on missing or wrong entries of the model structure."""
    listed = listed_unknowns(subject)
    known = variables_by_key(subject)
    for tag, unknowns in listed.items():
        for key, node in unknowns:
            if key not in known:
                yield "structure", f"ModelStructure/{tag} lists {key}, which is no variable"
            for needed in (node.get("dependencies") or "").split():
                if needed not in known:
                    yield (
                        "dependencies",
                        f"ModelStructure/{tag} says that {key} depends on {needed}, which is no variable",
                    )
    outputs = {key for key, each in known.items() if each.get("causality") == "output"}
    wanted = {"Outputs": outputs, "InitialUnknowns": _unknown_at_start(subject, listed)}
    for tag, expected in wanted.items():
        rule = "outputs" if tag == "Outputs" else "initial-unknowns"
        found = {key for key, _ in listed[tag]} & set(known)
        for key in sorted(expected - found, key=int):
            yield rule, f"{known[key].name} is missing in ModelStructure/{tag}"
        for key in sorted(found - expected, key=int):
            what = "no output" if tag == "Outputs" else "none that is calculated at the start"
            yield rule, f"{known[key].name} stands in ModelStructure/{tag}, but is {what}"
    without = [known[key].name for key, node in listed["Outputs"] if key in known and node.get("dependencies") is None]
    if without and any(each.get("causality") == "input" for each in subject.variables):
        others = f" and {len(without) - 1} other outputs" if without[1:] else ""
        yield (
            "no-dependencies",
            f"{without[0]}{others} may depend on all inputs, as far as the description says: masters see algebraic "
            "loops that may be none",
        )


def variables_by_key(subject: Subject) -> dict[str, WrittenVariable]:
    """Return the variables by what the structure calls them: their numbers, from FMI 3.0 on their references."""
    if subject.version == "3.0":
        return {each.get("valueReference") or "": each for each in subject.variables}
    return {str(each.index): each for each in subject.variables}


def listed_unknowns(subject: Subject) -> dict[str, list[tuple[str, etree._Element]]]:
    """Return the unknowns in each part of the structure."""
    parts = {
        "Outputs": "Output", "Derivatives": "ContinuousStateDerivative", "InitialUnknowns": "InitialUnknown",
        "ClockedStates": "ClockedState", "EventIndicators": "EventIndicator",
    }  # fmt: skip
    if subject.version == "3.0":
        return {
            part: [(each.get("valueReference", ""), each) for each in subject.root.iterfind(f"ModelStructure/{tag}")]
            for part, tag in parts.items()
        }
    return {
        part: [(each.get("index", ""), each) for each in subject.root.iterfind(f"ModelStructure/{part}/Unknown")]
        for part in list(parts)[:3]
    }


def _unknown_at_start(subject: Subject, listed: dict[str, list[tuple[str, etree._Element]]]) -> set[str]:
    """Return the unknowns of initialization: outputs, calculated parameters, states and derivatives."""
    known = variables_by_key(subject)
    derivatives = {key for key, _ in listed["Derivatives"] if key in known}
    states = {known[key].get("derivative") or "" for key in derivatives} & set(known)
    clocked = {key for key, each in known.items() if each.get("clocks")}
    outputs = {key for key, each in known.items() if each.get("causality") == "output"} - clocked
    calculated = {key for key in outputs | derivatives | states if _is_calculated(known[key])}
    return calculated | {key for key, each in known.items() if each.get("causality") == "calculatedParameter"}


def _is_calculated(variable: WrittenVariable) -> bool:
    """Return whether a variable is calculated at initialization, or has an approximate start value."""
    default = "exact" if variable.get("variability") == "constant" else "calculated"
    return (variable.get("initial") or default) != "exact"


_MAY_BE_STATES = ("local", "output", None)


def check_exchange(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on derivatives and event indicators of the model structure."""
    known, listed = variables_by_key(subject), listed_unknowns(subject)
    derivatives = [known[key] for key, _ in listed["Derivatives"] if key in known]
    states: dict[str, str] = {}
    for derivative in derivatives:
        key = derivative.get("derivative")
        state = known.get(key or "")
        if state is None:
            of = "it does not say of which variable" if key is None else f"it is that of {key}, which is no variable"
            yield "derivative", f"ModelStructure lists {derivative.name} as a derivative, but {of}"
            continue
        yield from _check_state(state, derivative)
        if state.name in states:
            yield "derivative", f"{derivative.name} and {states[state.name]} are both the derivative of {state.name}"
        states[state.name] = derivative.name
    for key, _ in listed.get("EventIndicators", ()):
        indicator = known.get(key)
        if indicator is not None and not (indicator.type.startswith("Float") and _is_continuous(indicator)):
            yield "event-indicator", f"{indicator.name} is an event indicator; it must be continuous and Float64"
    exchange = subject.root.find("ModelExchange")
    flag = f"providesDirectionalDerivative{'s' if subject.version == '3.0' else ''}"
    if derivatives and exchange is not None and exchange.get(flag) not in ("true", "1"):
        yield "no-derivatives", f"without {flag}, implicit solvers find the Jacobian by differences"


def _check_state(state: WrittenVariable, derivative: WrittenVariable) -> Iterator[tuple[str, str]]:
    """Yield reasons why a variable cannot be the state of a derivative."""
    if state.type not in ("Real", "Float64") or not _is_continuous(state):
        yield "state", f"{state.name} is the state of {derivative.name}; it must be continuous and Real or Float64"
    elif state.get("causality") not in _MAY_BE_STATES:
        yield "state", f"{state.name} is the state of {derivative.name}; its causality is {state.get('causality')}"


def _is_continuous(variable: WrittenVariable) -> bool:
    return variable.get("variability") in ("continuous", None)


_RULES = (
    (r"^(ERROR|FATAL) \(line \d+, column \d+\)", "schema"),
    (r"The variable name .* is not unique", "unique-name"),
    (r"not a legal variable name|contains an illegal .* character", "name"),
    (r'must have variability != "continuous"|combination (of )?causality=', "variability"),
    (r"has no start value|but provides a start value", "start"),
    (r"The display unit", "display-unit"),
    (r"The unit .* is not defined", "unit"),
    (r"declaredType=", "declared-type"),
    (r"Exactly one independent variable", "independent"),
    (r"has the same value reference", "unique-reference"),
    (r"ModelStructure/Outputs", "outputs"),
    (r"ModelStructure/InitialUnknowns", "initial-unknowns"),
    (r"dependenciesKind", "dependencies"),
    (r"derivative", "structure"),
)
"""Rules of FMPy's messages."""
_OURS = re.compile(
    r"contains a backslash|ModelStructure/(Outputs|InitialUnknowns)|fmiBuildDescription|buildDescription.xml"
)
"""FMPy messages replaced by more exact checks."""


def check_with_fmpy(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield FMPy's findings with their rules."""
    try:
        problems = list(validate_fmu(str(subject.path)))
    except Exception as error:  # FMPy raises bare exceptions for descriptions that it cannot read
        problems = [str(error)]
    for problem in problems:
        sentence = re.sub(r"\s+", " ", str(problem)).strip()
        if subject.version in ("2.0", "3.0") and _OURS.search(sentence):
            continue
        rule = next((rule for pattern, rule in _RULES if re.search(pattern, sentence)), None)
        if rule is None:
            rule, sentence = "readable", f"FMPy cannot read it: {sentence}"
        yield rule, sentence


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


_SETTABLE = ("input", "parameter", "structuralParameter")


def check_variables(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on single variables, and on shared value references."""
    declared = {unit.get("name") for unit in subject.root.iterfind("UnitDefinitions/Unit")}
    types = _types(subject)
    by_reference = {each.get("valueReference"): each for each in subject.variables}
    for variable in subject.variables:
        unit = variable.get("unit")
        if unit is not None and unit not in declared:
            yield "unit", f"{variable.name} has the unit {unit}, which UnitDefinitions does not declare"
        if variable.is_number:
            yield from _check_range(variable, types.get(variable.get("declaredType") or ""))
        if subject.version == "3.0":
            yield from _check_dimensions(variable, by_reference)
            yield from _check_clocks(variable, by_reference)
    if subject.version == "2.0":
        yield from _check_references(subject)


def _types(subject: Subject) -> Mapping[str, etree._Element]:
    """Return the declared types by their names; in FMI 2.0 the element has its attributes within."""
    if subject.version == "3.0":
        return {each.get("name", ""): each for each in subject.root.iterfind("TypeDefinitions/*")}
    declared = subject.root.iterfind("TypeDefinitions/SimpleType")
    return {each.get("name", ""): each[0] for each in declared if len(each)}


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None  # which the schema refuses


def _check_range(variable: WrittenVariable, declared: etree._Element | None) -> Iterator[tuple[str, str]]:
    given = {
        name: variable.get(name) or (None if declared is None else declared.get(name))
        for name in ("min", "max", "nominal")
    }
    low, high, nominal = (_number(given[name]) for name in ("min", "max", "nominal"))
    if low is not None and high is not None and low > high:
        yield "range", f"{variable.name} has the min {given['min']} above its max of {given['max']}"
    if nominal is not None and not nominal > 0.0:
        yield "nominal", f"{variable.name} has the nominal value {given['nominal']}; it must be above 0"
    starts = (variable.get("start") or "").split()
    for text in starts:
        start = _number(text)
        if start is None or math.isnan(start):
            continue
        if low is not None and start < low:
            yield "start-range", f"{variable.name} starts at {text}, below its min of {given['min']}"
        if high is not None and start > high:
            yield "start-range", f"{variable.name} starts at {text}, above its max of {given['max']}"
    if variable.type == "Enumeration" and declared is not None:
        items = {item.get("value") for item in declared.iterfind("Item")}
        for text in starts:
            if text not in items:
                yield "start-item", f"{variable.name} starts at {text}, which is no item of its type"


def _check_dimensions(
    variable: WrittenVariable, by_reference: Mapping[str | None, WrittenVariable]
) -> Iterator[tuple[str, str]]:
    sizes: list[int] = []
    for dimension in variable.node.iterfind("Dimension"):
        reference = dimension.get("valueReference")
        if (reference is None) == (dimension.get("start") is None):
            yield "dimension", f"{variable.name} has a dimension that needs either a start or a valueReference"
            return
        size = by_reference.get(reference) if reference is not None else None
        if reference is not None and (
            size is None
            or size.type != "UInt64"
            or not (size.get("causality") == "structuralParameter" or size.get("variability") == "constant")
        ):
            yield (
                "dimension",
                f"{variable.name} has a dimension by {reference}, which is no structural UInt64 parameter",
            )
            return
        text = dimension.get("start") if size is None else size.get("start")
        if text is None or not text.isdecimal() or int(text) == 0:
            yield "dimension", f"{variable.name} has a dimension of {text}; it must be an integer above 0"
            return
        sizes.append(int(text))
    starts = _starts(variable)
    if starts is not None and starts not in {1, math.prod(sizes)}:
        yield "start-count", f"{variable.name} has {math.prod(sizes)} elements, but {starts} start values"


def _starts(variable: WrittenVariable) -> int | None:
    """Return the number of start values; None where there are none."""
    if variable.type in ("String", "Binary"):
        return len(variable.node.findall("Start")) or None
    start = variable.get("start")
    return None if start is None else len(start.split())


def _check_clocks(
    variable: WrittenVariable, by_reference: Mapping[str | None, WrittenVariable]
) -> Iterator[tuple[str, str]]:
    for reference in (variable.get("clocks") or "").split():
        clock = by_reference.get(reference)
        if clock is None or clock.type != "Clock":
            yield "clock", f"{variable.name} has the clock {reference}, which is none"


def _check_references(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on settable aliases; in FMI 3.0 on equal value references."""
    setters: dict[tuple[str, str | None], str] = {}
    for variable in subject.variables:
        if variable.get("causality") not in _SETTABLE:
            continue
        kind = "Integer" if variable.type == "Enumeration" else variable.type
        key = kind, variable.get("valueReference")
        if key in setters:
            sentence = f"{variable.name} and {setters[key]} can both be set and share the value reference {key[1]}"
            yield "settable-alias", sentence
        setters[key] = variable.name


Found = Iterator[tuple[str, str]]
"""Names of rules, and what is found by them."""

_CHECKS: tuple[Callable[[Subject], Found], ...] = (
    check_archive,
    check_documents,
    check_references,
    check_with_fmpy,
)
_OF_DESCRIPTIONS: tuple[Callable[[Subject], Found], ...] = (
    check_description,
    check_variables,
    check_structure,
    check_exchange,
)


def find(path: str | os.PathLike[str]) -> Iterator[Finding]:
    """Yield all findings on a file; for FMI 1.0 those of FMPy only.

    Raises
    ------
    InputError
        When there is no such file, or it is no FMU.
    """
    subject = Subject(Path(path))
    checks = _CHECKS + (_OF_DESCRIPTIONS if subject.version in ("2.0", "3.0") else ())
    seen: set[tuple[str, str]] = set()
    for check in checks:
        for found in check(subject):
            if found not in seen:
                seen.add(found)
                yield finding(found[0], subject.version, found[1])


def validate(path: str | os.PathLike[str]) -> list[Finding]:
    """Return the findings on an FMU, the worst first; empty for a valid one.

    Parameters
    ----------
    path
        An FMU file, ours or not.

    Raises
    ------
    InputError
        When there is no such file, or it is no FMU.
    """
    return sorted(find(path), key=lambda finding: list(Severity).index(finding.severity))
