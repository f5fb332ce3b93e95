"""The size of the code, and what a step of an FMU costs, of this tree and of revisions of it before.

Prints the tables of docs/studies/code-size.md; `--write` puts the counts of this tree there. Code is what is left of
`mbsfmu` and `hydraulics` without blank lines, comments and docstrings, and without the libraries of others. Needs git,
and for the FMUs gcc and valgrind.
Run: python benchmarks/before_after.py [--revisions 38867a8f] [--quick | --write]
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from c_host import compile_host, host_command
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "studies" / "code-size.md"
PACKAGES = ("mbsfmu", "hydraulics")
LANGUAGES = {"Python": (".py",), "C": (".c", ".h"), "JavaScript": (".js",)}
LIBRARIES = "mbsfmu/view/assets"
"""Of others, in pages."""
FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
MODEL, STEP, STEPS = "four-bar", 1e-3, 200
BEFORE = "38867a8f"
"""The last revision before every subject got a room of its own."""
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
"""Tokens that do not make a line one of code."""
C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
EXPORT = """
import sys, mbsfmu
model, formulation, folder = sys.argv[1:]
print(mbsfmu.export(mbsfmu.models.built_in(model), folder, layout="monolithic", formulation=formulation)[0])
"""


@dataclass(frozen=True)
class SourceFile:
    """A file of Python, C or JavaScript.

    Attributes
    ----------
    path
        From the root of the tree.
    text
        All of it.
    """

    path: Path
    text: str

    @property
    def is_python(self) -> bool:
        """Whether it is Python."""
        return self.path.suffix == ".py"

    @property
    def lines(self) -> int:
        """Number of all lines."""
        return self.text.count("\n")

    @property
    def code(self) -> int:
        """Number of lines of code."""
        if not self.is_python:
            return sum(bool(line.strip()) for line in C_COMMENT.sub("", self.text).splitlines())
        documented: set[int] = set()
        for node in ast.walk(ast.parse(self.text)):
            for each in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
                if (
                    isinstance(each, ast.Expr)
                    and isinstance(each.value, ast.Constant)
                    and isinstance(each.value.value, str)
                ):
                    documented.update(range(each.lineno, (each.end_lineno or each.lineno) + 1))
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in LAYOUT:
                lines.update(range(token.start[0], token.end[0] + 1))
        return len(lines - documented)

    @property
    def module(self) -> str:
        """Name of the module."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def imported(self, known: set[str]) -> set[str]:
        """Return the known modules that the file imports."""
        found: set[str] = set()
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.Import):
                found |= {each.name for each in node.names} & known
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = {f"{node.module}.{each.name}" for each in node.names}
                found |= names & known or {node.module} & known
        return found - {self.module}


def source_files(tree: Path) -> list[SourceFile]:
    """Read the sources of the packages in a tree."""
    suffixes = {suffix for each in LANGUAGES.values() for suffix in each}
    paths = sorted(path for package in PACKAGES for path in (tree / package).rglob("*") if path.suffix in suffixes)
    files = [SourceFile(path.relative_to(tree), path.read_text(encoding="utf-8")) for path in paths]
    return [each for each in files if not each.path.is_relative_to(LIBRARIES)]


def circles(files: list[SourceFile]) -> int:
    """Return how many groups of files import each other, directly or by way of others."""
    modules = {each.module: index for index, each in enumerate(files) if each.is_python}
    known = {*modules}
    pairs = [
        (modules[each.module], modules[other]) for each in files if each.is_python for other in each.imported(known)
    ]
    rows, columns = zip(*pairs, strict=True)
    graph = coo_array(([1] * len(pairs), (rows, columns)), shape=(len(files), len(files)))
    _, labels = connected_components(graph, connection="strong")
    return sum(number > 1 for number in Counter(labels.tolist()).values())


def public_names(tree: Path) -> int:
    """Return how many names the packages offer."""
    asked = "import mbsfmu, hydraulics; print(len({*mbsfmu.__all__}) + len({*hydraulics.__all__}))"
    return int(in_tree(tree, "-c", asked))


def twice(files: list[SourceFile]) -> tuple[int, int]:
    """Return how many names of classes that are not private, and of files, stand more than once."""
    classes = Counter(
        node.name
        for each in files
        if each.is_python
        for node in ast.parse(each.text).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    names = Counter(each.path.name for each in files if each.path.name != "__init__.py")
    return sum(number > 1 for number in classes.values()), sum(number > 1 for number in names.values())


def in_tree(tree: Path, *arguments: str, cache: Path | None = None) -> str:
    """Run Python with the packages of a tree, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(tree)} | ({"MBSFMU_CACHE": str(cache)} if cache else {})
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def size_rows(tree: Path) -> dict[str, str]:
    """Return what is counted in the sources of a tree."""
    files = source_files(tree)
    folders = Counter(each.path.parent.as_posix() for each in files)
    largest, number = folders.most_common(1)[0]
    loose = sum(each.path.parent.as_posix() == "mbsfmu" for each in files)
    classes, names = twice(files)
    return {
        **{
            f"{language}: files, lines, lines of code": three([each for each in files if each.path.suffix in suffixes])
            for language, suffixes in LANGUAGES.items()
        },
        "folders": str(len(folders)),
        "largest folder": f"`{largest}`, {number} files",
        "modules loose in `mbsfmu`": str(loose),
        "circles of files that import each other": str(circles(files)),
        "public names": str(public_names(tree)),
        "names of classes, of files that stand twice": f"{classes}, {names}",
    }


def three(files: list[SourceFile]) -> str:
    """Return files, lines and lines of code."""
    return f"{len(files)}, {sum(each.lines for each in files):,}, {sum(each.code for each in files):,}"


def folder_rows(tree: Path) -> list[tuple[str, str]]:
    """Return packages with files, lines and lines of code."""
    found: dict[str, list[SourceFile]] = {}
    for each in source_files(tree):
        parts = each.path.parts
        found.setdefault("/".join(parts[: 2 if len(parts) > 2 else 1]), []).append(each)
    return [(name, three(files)) for name, files in sorted(found.items())]


def fmu_rows(tree: Path, formulations: tuple[str, ...]) -> dict[str, str]:
    """Return instructions of a step of 1 ms, and sizes of FMUs, that a tree exports."""
    rows: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        host = compile_host(folder)
        for formulation in formulations:
            out = folder / formulation
            unit = Path(
                in_tree(tree, "-c", EXPORT, MODEL, formulation, str(out), cache=folder / "cache").splitlines()[-1]
            )
            counts = [
                instructions(host_command(host, unit, out / "unpacked", STEP, steps, 1), folder)
                for steps in (STEPS, 2 * STEPS)
            ]
            step = (counts[1] - counts[0]) / STEPS
            rows[f"`{formulation}`: instructions of a step, kB of the FMU"] = (
                f"{step:,.0f}, {unit.stat().st_size / 1e3:.1f}"
            )
    return rows


def instructions(command: list[str], folder: Path) -> int:
    """Return how many instructions a program takes, by callgrind."""
    call = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'callgrind'}", *command]
    said = subprocess.run(call, check=True, capture_output=True, text=True).stderr
    return int(re.findall(r"Collected : (\d+)", said)[0])


def extracted(revision: str, folder: Path) -> Path:
    """Write the packages of a revision into a folder, and return it."""
    archive = subprocess.run(["git", "archive", revision, *PACKAGES], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def written(page: str) -> str:
    """Return a page with the counts of this tree: the last column, and the table of folders."""
    for name, cell in size_rows(ROOT).items():
        page, rows = re.subn(rf"^(\| {re.escape(name)} \|.*\|)[^|]*\|$", rf"\g<1> {cell} |", page, flags=re.MULTILINE)
        assert rows == 1, name
    head, _, _ = page.partition("| folder |")
    return f"{head}{folders()}\n"


def folders() -> str:
    """Return the table of the folders of this tree."""
    return table(["folder", "files, lines, lines of code"], [[f"`{name}`", cells] for name, cells in folder_rows(ROOT)])


def main() -> None:
    """Print what is counted, side by side, and the folders of this tree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--revisions", nargs="*", default=[BEFORE], help="revisions to compare with")
    parser.add_argument("--quick", action="store_true", help="this tree alone, one FMU")
    parser.add_argument("--write", action="store_true", help="put the counts of this tree into the study")
    chosen = parser.parse_args()
    if chosen.write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    measures = bool(shutil.which("valgrind") and shutil.which("gcc"))
    with tempfile.TemporaryDirectory() as name:
        trees = {} if chosen.quick else {each: extracted(each, Path(name) / each) for each in chosen.revisions}
        trees["now"] = ROOT
        columns = [
            size_rows(tree) | (fmu_rows(tree, FORMULATIONS[:1] if chosen.quick else FORMULATIONS) if measures else {})
            for tree in trees.values()
        ]
    print(table(["", *trees], [[row, *(each[row] for each in columns)] for row in columns[-1]]), end="\n\n")
    print(folders())


if __name__ == "__main__":
    main()
