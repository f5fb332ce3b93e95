"""Every rule of the validation finds what it is about, with its severity, and nothing in files that are good."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from foreign_fmus import SOURCES
from model_exchange_fmus import describe_jumper

import mbsfmu
from mbsfmu.cli import main
from mbsfmu.fmu.validation import RULES, Severity

PLATFORMS = {"feed_through": "linux64", "vectors": "x86_64-linux"}
BUILD = "sources/buildDescription.xml"
TERMINALS = "terminalsAndIcons/terminalsAndIcons.xml"
BUILD_TEXT = (
    '<fmiBuildDescription fmiVersion="3.0"><BuildConfiguration modelIdentifier="vectors"><SourceFileSet>'
    '<SourceFile name="all.c"/></SourceFileSet></BuildConfiguration></fmiBuildDescription>'
)
TERMINAL_TEXT = (
    '<fmiTerminalsAndIcons fmiVersion="3.0"><Terminals><Terminal name="tip" matchingRule="plug">'
    '<TerminalMemberVariable variableName="force" memberName="f" variableKind="inflow"/>'
    '<TerminalMemberVariable variableName="point" memberName="x" variableKind="signal"/>'
    "</Terminal></Terminals></fmiTerminalsAndIcons>"
)


def parts_of(name: str) -> dict[str, str]:
    """Return a file that nothing is to be said of but what it suggests for its experiment."""
    text = (SOURCES / f"{name}.xml").read_text()
    return {"modelDescription.xml": text, f"binaries/{PLATFORMS[name]}/{name}.so": ""}


def packed(parts: dict[str, str], folder: Path, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    path = folder / "unit.fmu"
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", PLATFORMS)
def test_good_files_have_hints_at_most(tmp_path: Path, name: str) -> None:
    assert {each.severity for each in mbsfmu.validate(packed(parts_of(name), tmp_path))} <= {Severity.HINT}


def test_a_manifest_of_related_files_may_lead_elsewhere(tmp_path: Path) -> None:
    parts = {**parts_of("vectors"), MANIFEST: MANIFEST_TEXT}
    assert {each.rule for each in mbsfmu.validate(packed(parts, tmp_path))} == {"default-experiment"}


def test_one_start_value_is_that_of_all_elements(tmp_path: Path) -> None:
    parts = parts_of("vectors")
    parts["modelDescription.xml"] = parts["modelDescription.xml"].replace('start="1 0 0 1"', 'start="1"')
    assert {each.rule for each in mbsfmu.validate(packed(parts, tmp_path))} == {"default-experiment"}


@pytest.mark.parametrize("missing", ["x", "der(x)"])
def test_states_and_their_derivatives_are_unknown_at_the_start(tmp_path: Path, missing: str) -> None:
    more = (
        '<Float64 name="x" valueReference="90" causality="local" initial="approx" start="0"/>'
        '<Float64 name="der(x)" valueReference="91" causality="local" derivative="90"/></ModelVariables>'
    )
    listed = {"x": '<InitialUnknown valueReference="90"/>', "der(x)": '<InitialUnknown valueReference="91"/>'}
    parts = parts_of("vectors")
    text = parts["modelDescription.xml"].replace("</ModelVariables>", more)
    text = text.replace("<InitialUnknown", '<ContinuousStateDerivative valueReference="91"/><InitialUnknown', 1)
    unknowns = "".join(each for name, each in listed.items() if name != missing)
    parts["modelDescription.xml"] = text.replace("</ModelStructure>", f"{unknowns}</ModelStructure>")
    found = [each.sentence for each in mbsfmu.validate(packed(parts, tmp_path)) if each.severity == Severity.ERROR]
    assert found == [f"{missing} is missing in ModelStructure/InitialUnknowns"]


def test_good_documents_beside_the_description(tmp_path: Path) -> None:
    parts = {**parts_of("vectors"), BUILD: BUILD_TEXT, "sources/all.c": "", TERMINALS: TERMINAL_TEXT}
    assert {each.rule for each in mbsfmu.validate(packed(parts, tmp_path))} == {"default-experiment"}


Change = tuple[str, str, str, str, str]
"""Rule, file, what is replaced by what, and what is then said."""
DESCRIPTIONS: list[Change] = [
    ("identity", "vectors", 'Token="{8d0b0a4e-vectors}"', 'Token=" "', "instantiationToken is empty"),
    ("identity", "feed_through", '{6f0f2f1e-4c29-4d6e-9a39-feedthrough}', "", "guid is empty"),
    ("date", "vectors", "modelName=", 'generationDateAndTime="2026-11-22T08:00" modelName=', "must be a date"),
    ("date", "feed_through", "modelName=", 'generationDateAndTime="2026-11-22T08:00:00" modelName=', "end in Z"),
    ("default-experiment", "vectors", ' stepSize="0.1"', "", "has no stepSize"),
    ("schema", "vectors", 'causality="independent"', 'causality="dependent"', "dependent"),
    ("readable", "feed_through", 'fmiVersion="2.0"', 'fmiVersion="7.0"', "Unsupported FMI version"),
    ("unit", "vectors", 'initial="exact"', 'initial="exact" unit="m"', "point has the unit m, which"),
    ("display-unit", "vectors", 'initial="exact"', 'initial="exact" unit="N" displayUnit="lbf"', "lbf"),
    ("name", "vectors", 'name="float32_in"', 'name="float 32"', "float 32"),
    ("unique-name", "vectors", 'name="float32_in"', 'name="float32_out"', "float32_out"),
    ("unique-reference", "vectors", "</ModelVariables>", '<Float64 name="again" valueReference="0"/></ModelVariables>',
     "again"),
    ("settable-alias", "feed_through", 'name="jumping_in" valueReference="2"', 'name="jumping_in" valueReference="0"',
     "jumping_in and real_in can both be set and share the value reference 0"),
    ("declared-type", "vectors", 'declaredType="Mode"', 'declaredType="Other"', "Other"),
    ("variability", "vectors", 'causality="parameter" variability="tunable"',
     'causality="parameter" variability="discrete"', ""),
    ("start", "vectors", 'causality="input" start="0 0 0"', 'causality="input"', "force"),
    ("start-range", "vectors", 'start="0 0 0" unit="N"', 'start="0 0 7" max="5" unit="N"',
     "force starts at 7, above its max of 5"),
    ("start-range", "feed_through", '<Integer start="0"/>', '<Integer start="0" min="1"/>', "below its min of 1"),
    ("start-item", "vectors", 'causality="input" start="1"', 'causality="input" start="5"', "mode_in starts at 5"),
    ("start-count", "vectors", 'start="1 0 0 1"', 'start="1 0 0"', "matrix has 4 elements, but 3 start values"),
    ("range", "vectors", 'start="0 0 0" unit="N"', 'start="3" min="5" max="1" unit="N"', "min 5 above its max of 1"),
    ("nominal", "vectors", 'start="0 0 0" unit="N"', 'start="0" nominal="0" unit="N"', "nominal value 0; it must be"),
    ("dimension", "vectors", '<Dimension start="2"/><Dimension start="2"/>', '<Dimension valueReference="8"/>',
     "matrix has a dimension by 8, which is no structural UInt64 parameter"),
    ("dimension", "vectors", '<Dimension start="2"/><Dimension start="2"/>', '<Dimension start="0"/>', "sion of 0"),
    ("independent", "vectors", 'causality="independent" variability="continuous"', 'causality="local"', ""),
    ("clock", "vectors", 'name="float32_in" valueReference="6"', 'name="float32_in" clocks="1" valueReference="6"',
     "float32_in has the clock 1, which is none"),
    ("structure", "feed_through", '<Unknown index="2"', '<Unknown index="99"', "lists 99, which is no variable"),
    ("outputs", "vectors", '<Output valueReference="5" dependencies="1 3 4"/>', "", "product is missing in"),
    ("outputs", "vectors", '<Output valueReference="5"', '<Output valueReference="3"/><Output valueReference="5"',
     "matrix stands in ModelStructure/Outputs, but is no output"),
    ("initial-unknowns", "vectors", '<InitialUnknown valueReference="5" dependencies="1 3 4"/>', "",
     "product is missing"),
    ("initial-unknowns", "vectors", '<InitialUnknown valueReference="5"',
     '<InitialUnknown valueReference="2"/><InitialUnknown valueReference="5"', "but is none that is calculated"),
    ("dependencies", "vectors", 'valueReference="5" dependencies="1 3 4"', 'valueReference="5" dependencies="1 3 99"',
     "depends on 99, which is no variable"),
    ("no-dependencies", "vectors", 'valueReference="5" dependencies="1 3 4"', 'valueReference="5"', "product may dep"),
    ("execution-tool", "vectors", "canHandle", 'needsExecutionTool="true" canHandle', "needs the tool"),
    ("one-instance", "vectors", "canHandle", 'canBeInstantiatedOnlyOncePerProcess="true" canHandle', "one instance"),
    ("no-states", "vectors", ' canGetAndSetFMUState="true"', "", "without canGetAndSetFMUState"),
    ("equal-steps", "vectors", ' canHandleVariableCommunicationStepSize="true"', "", "must make equal steps"),
    ("no-co-simulation", "vectors",
     '<CoSimulation modelIdentifier="vectors" canHandleVariableCommunicationStepSize="true"',
     '<ModelExchange modelIdentifier="vectors"', "no co-simulation"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "name", "old", "new", "sentence"), DESCRIPTIONS)
def test_damaged_descriptions(tmp_path: Path, rule: str, name: str, old: str, new: str, sentence: str) -> None:
    parts = parts_of(name)
    text = parts["modelDescription.xml"]
    assert old in text
    parts["modelDescription.xml"] = text.replace(old, new)
    check(packed(parts, tmp_path), rule, sentence)


EXCHANGED: list[tuple[str, int, str, str, str]] = [
    ("derivative", 2, ' derivative="1"', "", "rate_x as a derivative, but it does not say of which variable"),
    (
        "derivative",
        3,
        ' derivative="0"',
        ' derivative="77"',
        "rate_x as a derivative, but it is that of 77, which is no",
    ),
    ("derivative", 3, ' derivative="1"', ' derivative="0"', "rate_v and rate_x are both the derivative of x"),
    ("state", 2, ' derivative="1"', ' derivative="16"', "ticks is the state of rate_x; it must be continuous and Real"),
    ("state", 3, ' derivative="1"', ' derivative="4"', "force is the state of rate_v; its causality is input"),
    (
        "event-indicator",
        3,
        '<EventIndicator valueReference="0"',
        '<EventIndicator valueReference="15"',
        "ticks is an event",
    ),
    (
        "structure",
        3,
        '<EventIndicator valueReference="0"',
        '<EventIndicator valueReference="77"',
        "lists 77, which is no",
    ),
    ("no-states", 2, ' canGetAndSetFMUstate="true"', "", "without canGetAndSetFMUstate"),
    (
        "no-derivatives",
        2,
        ' providesDirectionalDerivative="true"',
        "",
        "without providesDirectionalDerivative, implicit",
    ),
    ("no-derivatives", 3, ' providesDirectionalDerivatives="true"', "", "without providesDirectionalDerivatives, impl"),
]


@pytest.mark.parametrize(("rule", "version", "old", "new", "sentence"), EXCHANGED)
def test_damaged_descriptions_of_units_for_model_exchange(
    tmp_path: Path, rule: str, version: int, old: str, new: str, sentence: str
) -> None:
    text = describe_jumper(version)
    assert old in text
    parts = {"modelDescription.xml": text.replace(old, new, 1), "binaries/linux64/jumper.so": ""}
    check(packed(parts, tmp_path), rule, sentence)


@pytest.mark.parametrize("version", [2, 3])
def test_good_units_for_model_exchange_have_hints_at_most(tmp_path: Path, version: int) -> None:
    folder = {2: "linux64", 3: "x86_64-linux"}[version]
    parts = {"modelDescription.xml": describe_jumper(version), f"binaries/{folder}/jumper.so": ""}
    found = mbsfmu.validate(packed(parts, tmp_path))
    assert {each.rule for each in found} == {"default-experiment", "no-co-simulation"}


def check(path: Path, rule: str, sentence: str) -> None:
    found = [each for each in mbsfmu.validate(path) if each.rule == rule]
    assert any(sentence in each.sentence for each in found), found
    assert {each.severity for each in found} == {RULES[rule].severity}
    assert all(each.place.startswith("FMI ") for each in found)


MANIFEST = "extra/org.fmi-standard.fmi-ls-ref/fmi-ls-manifest.xml"
MANIFEST_TEXT = (
    '<fmiReferences xmlns:fmi-ls="http://fmi-standard.org/fmi-ls-manifest" '
    'fmi-ls:fmi-ls-name="org.fmi-standard.fmi-ls-ref" fmi-ls:fmi-ls-version="1.0.0-alpha.1">'
    '<Related source="https://elsewhere.org/a.pdf" role="document"/>'
    '<Related type="text/csv" source="../../modelDescription.xml" role="result"/></fmiReferences>'
)
FILES: list[tuple[str, dict[str, str], str]] = [
    ("reference-manifest", {MANIFEST: "no document"}, "is no XML"),
    (
        "reference-manifest",
        {MANIFEST: MANIFEST_TEXT.replace("fmi-ls-ref", "fmi-ls-xcp")},
        "is no element fmiReferences",
    ),
    ("reference-manifest", {MANIFEST: MANIFEST_TEXT.replace('"result"', '"results"')}, "the role 'results'"),
    ("reference-manifest", {MANIFEST: MANIFEST_TEXT.replace("../..", "..")}, "which is not in the archive"),
    ("reference-manifest", {MANIFEST: MANIFEST_TEXT.replace("source=", "from=")}, "without source"),
    ("archive-path", {"resources\\table.txt": ""}, "has a backslash"),
    ("archive-path", {"../table.txt": ""}, "leads out of it"),
    ("library-name", {"binaries/x86_64-windows/other.dll": ""}, "no library named after the modelIdentifier vectors"),
    ("platform-name", {"binaries/linux64/vectors.so": ""}, "binaries/linux64 is for a platform"),
    ("build-description", {"sources/all.c": ""}, f"there are sources without {BUILD}"),
    ("build-description", {BUILD: BUILD_TEXT}, "names all.c, which there is not"),
    ("build-description", {BUILD: BUILD_TEXT.replace("SourceFileSet", "Files")}, "line 1"),
    ("build-identifier", {BUILD: BUILD_TEXT.replace('"vectors"', '"other"'), "sources/all.c": ""}, "builds other"),
    ("terminals", {TERMINALS: TERMINAL_TEXT.replace("Terminal ", "End ")}, "line 1"),
    ("terminals", {TERMINALS: "no document"}, "is no XML"),
    (
        "terminal-variable",
        {TERMINALS: TERMINAL_TEXT.replace('"force"', '"torque"')},
        "the variable torque, which there",
    ),
    ("terminal-variable", {TERMINALS: TERMINAL_TEXT.replace('"x"', '"f"')}, "needs a name of its own for each member"),
]


@pytest.mark.parametrize(("rule", "more", "sentence"), FILES)
def test_damaged_archives(tmp_path: Path, rule: str, more: dict[str, str], sentence: str) -> None:
    check(packed({**parts_of("vectors"), **more}, tmp_path), rule, sentence)


def test_archives_that_importers_cannot_open(tmp_path: Path) -> None:
    check(packed(parts_of("vectors"), tmp_path, zipfile.ZIP_LZMA), "archive-compression", "neither stored nor deflated")
    parts = parts_of("vectors")
    del parts["binaries/x86_64-linux/vectors.so"]
    check(packed(parts, tmp_path), "implementation", "neither a binary nor a source")
    path = packed(parts_of("vectors"), tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("resources/link")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "../modelDescription.xml")
    check(path, "archive-link", "resources/link is a link")


def test_every_rule_is_tested() -> None:
    tested = {rule for rule, *_ in (*DESCRIPTIONS, *EXCHANGED, *FILES)}
    assert tested | {"archive-compression", "implementation", "archive-link"} == set(RULES)


def test_the_worst_comes_first(tmp_path: Path) -> None:
    parts = parts_of("feed_through")
    parts["modelDescription.xml"] = parts["modelDescription.xml"].replace(
        "modelName=", 'generationDateAndTime="2026-11-22T08:00:00" modelName='
    ).replace("{6f0f2f1e-4c29-4d6e-9a39-feedthrough}", "")  # fmt: skip
    order = [each.severity for each in mbsfmu.validate(packed(parts, tmp_path))]
    assert order == sorted(order, key=list(Severity).index)
    assert {Severity.ERROR, Severity.WARNING, Severity.HINT} <= set(order)


@pytest.fixture
def validated(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[object, str]]:
    """Return a function that validates by the command line, and returns its status and what it says."""

    def run(*arguments: str) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", ["mbsfmu", "validate", *arguments])
        status: object = 0
        try:
            main()
        except SystemExit as ended:
            status = ended.code
        return status, capsys.readouterr().out

    return run


def test_errors_alone_decide_on_the_exit_status(tmp_path: Path, validated: Callable[..., tuple[object, str]]) -> None:
    parts = parts_of("vectors")
    path = str(packed({**parts, "binaries/linux64/vectors.so": ""}, tmp_path))
    status, said = validated(path, "--json", str(tmp_path / "findings.json"))
    assert status == 0
    assert "unit.fmu: 1 warning, 1 hint" in said
    (warning, hint) = json.loads((tmp_path / "findings.json").read_text())[path]
    assert warning == {
        "severity": "warning", "rule": "platform-name", "place": "FMI 3.0, section 2.5.1.4.1",
        "sentence": "binaries/linux64 is for a platform that the standard has no name for",
    }  # fmt: skip
    assert hint["rule"] == "default-experiment"
    assert validated(path, "--strict")[0] == 1
    packed({**parts, "resources\\table.txt": ""}, tmp_path)
    status, said = validated(path)
    assert (status, "1 error, 1 hint" in said) == (1, True)
