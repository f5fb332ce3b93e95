"""Pages of the Python interface: one a subject, and a table of all of them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import hydraulics
import mbsfmu
from mbsfmu.modelling.data import summary
from mbsfmu.modelling.part import FAMILIES


class Subject(NamedTuple):
    """A page of the Python interface.

    Attributes
    ----------
    page
        Name of the page.
    title
        Its heading.
    purpose
        Sentence below the heading.
    modules
        Beginnings of the names of modules; a name belongs to the subject with the longest that fits.
    """

    page: str
    title: str
    purpose: str
    modules: tuple[str, ...]


SUBJECTS = (
    Subject("model", "Model", "Machines as data: systems, connections, bodies, model files.", (
        "mbsfmu.system_model", "mbsfmu.model", "mbsfmu.models", "mbsfmu.systems", "mbsfmu.urdf", "mbsfmu.base")),
    Subject("parts", "User-defined parts", "Base classes of user-defined parts and systems, and what they are given.", (
        "mbsfmu.model.block", "mbsfmu.model.force", "mbsfmu.model.force", "mbsfmu.model.joint",
        "mbsfmu.model.joint", "mbsfmu.model.joint", "mbsfmu.model.force", "mbsfmu.model.system_kinds",
        "mbsfmu.equations", "mbsfmu.modelling", "mbsfmu.io.part_files", "mbsfmu.rules", "mbsfmu.parts")),
    Subject("hydraulics", "Hydraulics", "Circuits, oil, characteristics of components.", ("hydraulics",)),
    Subject("running", "Running", "Simulations in process, their options, results and statistics.", (
        "mbsfmu.simulation", "mbsfmu.integration", "mbsfmu.formulations")),
    Subject("export", "Export", "FMUs of a model, and the validation of FMUs.", ("mbsfmu.exporting", "mbsfmu.fmu")),
    Subject("cosimulation", "Co-simulation", "The master, its options, results and statistics.", ("mbsfmu.cosim",)),
    Subject("analysis", "Analysis", "Static equilibrium and linear systems.", (
        "mbsfmu.analysis", "mbsfmu.equilibrium")),
    Subject("studies", "Comparisons and studies", "Errors of co-simulation, and runs over many values.", (
        "mbsfmu.comparison", "mbsfmu.studies")),
    Subject("output", "Signals and output", "Signals and trajectories, plots, animations, reports.", (
        "mbsfmu.io", "mbsfmu.view")),
    Subject("others", "Others", "What is public besides.", ("",)),
)  # fmt: skip


def api_pages() -> dict[str, str]:
    """Return the pages of all that is public, by name; parts are listed with their fields on pages of their own."""
    found = {subject: [*_names_of(subject)] for subject in SUBJECTS}
    used = {subject: names for subject, names in found.items() if names}
    pages = {f"reference/api/{subject.page}": _page(subject, names) for subject, names in used.items()}
    lines = ["# Python interface\n", "All that is public: `import mbsfmu, hydraulics`. Built-in parts are"]
    lines += ["[listed with their fields](parts.md).\n", ":::{toctree}", ":hidden:\n"]
    lines += [*(f"api/{subject.page}" for subject in used), ":::\n"]
    for subject, names in used.items():
        lines += [
            f"## [{subject.title}](api/{subject.page}.md)\n",
            f"{subject.purpose}\n",
            "| name | |",
            "| --- | --- |",
        ]
        lines += [_row(name, text) for name, text in names] + [""]
    return pages | {"reference/api": "\n".join(lines)}


def _names_of(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield the public names of a subject, with the package, and what each is."""
    built_in = {kind for family in FAMILIES for _, kind in family.known()}
    sentences = _sentences_of_names([Path(inspect.getfile(each)).parent for each in (hydraulics, mbsfmu)])
    seen: set[str] = set()
    for package in (mbsfmu, hydraulics):
        for name in package.__all__:
            thing = getattr(package, name)
            if (inspect.isclass(thing) and thing in built_in) or (name in seen and package is hydraulics):
                continue
            seen.add(name)
            if _subject_of(_module_of(thing, package.__name__)) is subject:
                yield f"{package.__name__}.{name}", _summary(name, thing, sentences)


def _subject_of(module: str) -> Subject:
    """Return the subject of a module: the one with the longest beginning of its name."""
    fits = [
        (len(each), place)
        for place, subject in enumerate(SUBJECTS)
        for each in subject.modules
        if not each or f"{module}.".startswith(f"{each}.")
    ]
    return SUBJECTS[max(fits)[1]]


def _module_of(thing: Any, package: str) -> str:
    if inspect.ismodule(thing):
        return thing.__name__
    return thing.__module__ if is_defined(thing) else "mbsfmu.modelling" if package == "mbsfmu" else package


def _summary(name: str, thing: Any, sentences: dict[str, str]) -> str:
    if inspect.isclass(thing):
        return summary(thing)
    if inspect.ismodule(thing) or is_defined(thing):
        return (inspect.getdoc(thing) or "").partition("\n")[0]
    return sentences[name]


def _page(subject: Subject, names: Iterable[tuple[str, str]]) -> str:
    """Return the page of a subject: classes and functions in full, then a table of what is neither."""
    lines, others = [f"# {subject.title}\n", f"{subject.purpose}\n", "```{eval-rst}"], []
    for path, text in names:
        package, _, name = path.partition(".")
        thing = getattr({"mbsfmu": mbsfmu, "hydraulics": hydraulics}[package], name)
        if not is_defined(thing):
            others.append(_row(path, text))
            continue
        directive = "autoclass" if inspect.isclass(thing) else "autofunction"
        lines += [f".. {directive}:: {path}", "   :members:" if inspect.isclass(thing) else "", ""]
    lines.append("```\n")
    return "\n".join([*lines, *(["| name | |", "| --- | --- |", *others, ""] if others else [])])


def _row(name: str, text: str) -> str:
    return f"| `{name}` | {text.replace('|', '&#124;')} |"


def is_defined(thing: object) -> bool:
    """Return whether something is a class or a function, which documents itself."""
    return inspect.isclass(thing) or inspect.isfunction(thing)


def _sentences_of_names(folders: Iterable[Path]) -> dict[str, str]:
    """Return the sentences below assignments in the modules of packages, by name."""
    found = {}
    for file in (file for folder in folders for file in sorted(folder.rglob("*.py"))):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        for one, other in pairwise(body):
            if not isinstance(one, ast.Assign) or not isinstance(other, ast.Expr):
                continue
            if isinstance(other.value, ast.Constant):
                sentence = " ".join(str(other.value.value).split())
                found |= {each.id: sentence for each in one.targets if isinstance(each, ast.Name)}
    return found
