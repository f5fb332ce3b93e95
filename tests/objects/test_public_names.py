"""What the documents speak of, and what public functions take and give, is reachable from the two packages."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documented import PAGES, ROOT

import hydraulics
import mbsfmu
from mbsfmu import studies

PACKAGES = {
    "mbsfmu",
    "hydraulics",
    "mbsfmu.cosim",
    "mbsfmu.io.formats",
    "mbsfmu.models",
    "mbsfmu.rules",
    "mbsfmu.studies",
}
"""What users import from …"""
KINDS_OF_SYSTEMS = {
    *("mbsfmu.model.system_kinds", "mbsfmu.modelling", "mbsfmu.modelling.variables"),
    *("mbsfmu.systems.part_variables", "mbsfmu.systems.part_variables", "mbsfmu.systems.system"),
}
"""… and for a kind of systems of their own."""
REACHABLE = {
    *dir(mbsfmu),
    *dir(hydraulics),
    *mbsfmu.cosim.__all__,
    *studies.__all__,
    *mbsfmu.rules.__all__,
    "SystemData",
    "MotionlessSystem",
}


def _defined() -> set[str]:
    """Return the names of all classes and functions of the packages that could be public."""
    files = [file for package in ("mbsfmu", "hydraulics") for file in (ROOT / package).rglob("*.py")]
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files)
    nodes = (node for tree in trees for node in tree.body)
    return {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name[0] != "_"}


DEFINED = _defined()
OF_STANDARDS = {"Clock"}
"""Words of FMI and SSP that pages speak of, and classes of ours are called too."""


def code_of(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_classes_that_a_page_names_are_reachable(page: Path) -> None:
    named = set(re.findall(r"`([A-Z]\w+)[`(]", page.read_text(encoding="utf-8"))) - OF_STANDARDS
    assert sorted(name for name in named & DEFINED if name not in REACHABLE) == []


@pytest.mark.parametrize("page", [page for page in PAGES if code_of(page)], ids=lambda page: page.name)
def test_code_of_a_page_imports_from_the_packages(page: Path) -> None:
    for code in code_of(page):
        for module, names in imports(code):
            assert module in PACKAGES | KINDS_OF_SYSTEMS, f"{page.name} imports from {module}"
            package = __import__(module, fromlist=["x"])
            assert [name for name in names if not hasattr(package, name)] == []


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*.py")), ids=lambda file: file.name)
def test_examples_import_from_the_packages(file: Path) -> None:
    for module, names in imports(file.read_text(encoding="utf-8")):
        assert module in PACKAGES | KINDS_OF_SYSTEMS, f"{file.name} imports from {module}"
        assert names is not None


def imports(code: str) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("mbsfmu", "hydraulics"):
            yield node.module or "", [each.name for each in node.names]
        if isinstance(node, ast.Import):
            yield from ((each.name, []) for each in node.names if each.name.startswith(("mbsfmu.", "hydraulics.")))


def _signatures(thing: Any) -> Iterator[Any]:
    """Yield the functions by which a public thing is used."""
    if inspect.isfunction(thing):
        yield thing
    elif inspect.isclass(thing):
        for name, each in list(vars(thing).items()):  # classes of data build what they need when it is asked for
            function = getattr(each, "fget", None) or getattr(each, "__func__", each)
            if not name.startswith("_") and inspect.isfunction(function):
                yield function


USED_INSIDE = {
    "CouplingData",
    *("HtmlElement", "Machine", "ModelData", "ModelExchangeData", "NamedValues", "ReferenceRun"),
    *("RuleHistory", "RunLoop", "SignalStream", "VariableAccess"),
    *("Data", "Formulation", "FormulationOptions", "Initialization", "InputValues", "SystemContext", "LinearMap"),
    *("DerivativeSteps", "UnitOfMeasurement"),
    *(
        "Instance",
        "BlockDiagonalCorrections",
        "LoopSolution",
        "LoopsInUse",
        "Option",
        "Origin",
        "PartFile",
        "ReferenceKind",
        "Settings",
        "ExposedVariables",
        "SignalTable",
        "Solver",
        "System",
        "Concatenation",
        "LocatedComponent",
        "MachineRun",
    ),
}
"""What takes part in functions that are public for other layers; users neither make nor call it."""


@pytest.mark.parametrize("package", [hydraulics, mbsfmu], ids=lambda package: package.__name__)
def test_types_in_public_signatures_are_reachable(package: Any) -> None:
    missing = set()
    for public in package.__all__:
        for function in _signatures(getattr(package, public)):
            space = function.__globals__
            for annotation in function.__annotations__.values():
                for word in re.findall(r"\w+", str(annotation)):
                    kind = space.get(word)
                    own = inspect.isclass(kind) and kind.__module__.partition(".")[0] in ("mbsfmu", "hydraulics")
                    if own and word not in REACHABLE | USED_INSIDE:
                        missing.add(f"{public}.{function.__name__}: {word}")
    assert sorted(missing) == []
