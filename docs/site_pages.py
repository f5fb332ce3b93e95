"""Pages of the site that are made from the code: parts, options, commands, the gallery, and files from outside."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from collections.abc import Iterable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from entries import palette, with_entries
from part_kinds import kinds
from spellings import spellings
from sphinx.application import Sphinx

import hydraulics
import mbsfmu
from mbsfmu.base.options import Number, Options, WordOption
from mbsfmu.cli.commands import COMMANDS, cli
from mbsfmu.comparison import ComparisonOptions
from mbsfmu.modelling.kinds import FAMILIES
from mbsfmu.simulation.run_options import RunOptions

DOCS = Path(__file__).parent
ROOT = DOCS.parent
ANIMATIONS = "MBSFMU_SITE_ANIMATIONS"
"""Environment variable: 0 leaves the animations out, which takes a minute less."""

ENTRIES = {kind.page for kind in kinds()}
"""Pages with entries of parts."""
OUTSIDE = {"ARCHITECTURE.md": "architecture", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"}
OUTSIDE |= {"THIRD-PARTY.md": "licences"}
GALLERY = {
    "excavator": 20.0, "log_crane": 8.0, "press": 3.0, "stewart_platform": 4.0, "robot_arm": 3.0, "crane": 3.0,
    "four_bar": 10.0, "quick_return": 10.0, "five_bar": 5.0, "double_pentagon": 5.0, "pendulum": 5.0,
}  # fmt: skip
"""Examples that are shown in motion, with the s of it."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Make the pages before Sphinx looks for them, and mend what reads otherwise in documents than in the code."""
    animated = os.environ.get(ANIMATIONS, "1") != "0"
    if animated:
        app.tags.add("animations")
    app.connect("builder-inited", lambda _: make_pages(animated=animated))
    app.connect(
        "env-get-outdated", lambda *_: sorted({*ENTRIES, "python"})
    )  # made from classes, which may have changed
    app.connect("source-read", _linked)
    app.connect("autodoc-process-docstring", _escaped)
    return {"parallel_read_safe": True}


def make_pages(*, animated: bool) -> None:
    """Write all pages that are made, but those whose text has not changed."""
    pages = {"reference/commands": _commands(), "reference/options": _options(), "api": _api(), "gallery": _gallery()}
    pages["reference/parts"] = (
        "# All parts at a glance\n\nEach leads to its entry: symbol, equations, parameters, what it takes and tells, "
        "and lines that use it. `mbsfmu schema` has all of them for programs.\n\n"
        + palette({page: (DOCS / f"{page}.md").read_text(encoding="utf-8") for page in sorted(ENTRIES)})
    )
    pages |= {page: (ROOT / file).read_text(encoding="utf-8") for file, page in OUTSIDE.items()}
    for name, text in pages.items():
        file = DOCS / f"{name}.md"
        file.parent.mkdir(exist_ok=True)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    if animated:
        _animate()


# -- options and commands -----------------------------------------------------------------------------------


def _options() -> str:
    """Return the page on options, which Python, the command line and studies share."""
    lines = ["# Options\n", "As keywords in Python, and as `--relative-tolerance` and so on for commands.\n"]
    for kind in (RunOptions, mbsfmu.CouplingOptions, ComparisonOptions, mbsfmu.StudyOptions):
        lines += [
            f"## Of {kind.subject}: `{kind.__name__}`\n",
            "| option | unit | default | |",
            "| --- | --- | --- | --- |",
        ]
        lines += [_row(_option(kind, name)) for name in kind.known()]
        lines.append("")
    return "\n".join(lines)


def _option(kind: type[Options], name: str) -> list[str]:
    option = kind.known()[name]
    words = f" One of {', '.join(f'`{word}`' for word in option.among())}." if isinstance(option, WordOption) else ""
    help_text = kind.help(name).rstrip(".")
    return [
        f"`{name}`",
        option.unit if isinstance(option, Number) else "",
        _code(kind.default(name)),
        f"{help_text}.{words}",
    ]


def _code(value: Any) -> str:
    return "" if value is None or value in ((), {}) else f"`{getattr(value, 'value', value)}`"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _commands() -> str:
    """Return the page on commands: what each says with `--help`."""
    lines = [
        "# Commands\n",
        "`mbsfmu COMMAND --help` says the same. Results are on stdout, the log on stderr; the exit status is 0 when",
        "it was done, 1 when the work failed, 2 when the call or its input was wrong.\n",
    ]
    with click.Context(cli, info_name="mbsfmu") as root:
        for name in COMMANDS:
            command = cli.get_command(root, name)
            assert command is not None
            text = command.get_help(
                click.Context(command, info_name=name, parent=root, terminal_width=110, max_content_width=110)
            )
            lines += [f"## {name}\n", f"```text\n{text}\n```\n"]
    return "\n".join(lines)


# -- Python -------------------------------------------------------------------------------------------------


def _api() -> str:
    """Return the page on all that is public; parts are listed with their fields elsewhere."""
    kinds = {kind for family in FAMILIES for _, kind in family.known()}
    lines = ["# Python\n", "All that is public: `import mbsfmu, hydraulics`. Kinds of parts are"]
    lines.append("[listed by themselves](reference/parts.md).\n")
    seen: set[int] = set()
    for package in (mbsfmu, hydraulics):
        lines += [f"## {package.__name__}\n", "```{eval-rst}"]
        for name in package.__all__:
            thing = getattr(package, name)
            if thing in kinds or not _is_defined(thing) or id(thing) in seen:
                continue
            seen.add(id(thing))
            directive = "autoclass" if inspect.isclass(thing) else "autofunction"
            lines += [
                f".. {directive}:: {package.__name__}.{name}",
                "   :members:" if inspect.isclass(thing) else "",
                "",
            ]
        lines += ["```\n", *_others(package)]
    return "\n".join(lines)


def _others(package: ModuleType) -> list[str]:
    """Return a table of what is public and neither a class nor a function: types of fields, and modules."""
    names = [name for name in package.__all__ if not _is_defined(getattr(package, name))]
    told = _said_of_names([Path(inspect.getfile(each)).parent for each in (hydraulics, mbsfmu)])
    rows = [
        _row([f"`{name}`", inspect.getdoc(thing).partition("\n")[0] if inspect.ismodule(thing) else told[name]])  # pyright: ignore[reportOptionalMemberAccess]
        for name in names
        for thing in [getattr(package, name)]
    ]
    return ["| name | |", "| --- | --- |", *rows, ""] if rows else []


def _is_defined(thing: object) -> bool:
    return inspect.isclass(thing) or inspect.isfunction(thing)


def _said_of_names(folders: Iterable[Path]) -> dict[str, str]:
    """Return the sentences below assignments in the modules of packages, by name."""
    found = {}
    for file in (file for folder in folders for file in sorted(folder.rglob("*.py"))):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        for one, other in pairwise(body):
            if not isinstance(one, ast.Assign) or not isinstance(other, ast.Expr):
                continue
            if isinstance(other.value, ast.Constant):
                said = " ".join(str(other.value.value).split())
                found |= {each.id: said for each in one.targets if isinstance(each, ast.Name)}
    return found


def _escaped(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:  # noqa: ARG001
    """Let bars and underscores of formulas be bars and underscores; docstrings have single backticks for code."""
    for place, line in enumerate(lines):
        code = re.split(r"(``[^`]*``|`[^`]*`)", line)
        plain = [re.sub(r"(?<!\\)[|]", r"\\|", each) for each in code[::2]]
        quoted = [each if each.startswith("``") else f"`{each}`" for each in code[1::2]]
        lines[place] = "".join(one + other for one, other in zip(plain, [*quoted, ""], strict=True))


# -- examples -----------------------------------------------------------------------------------------------


def _gallery() -> str:
    """Return the page on examples."""
    lines = [
        "# Gallery\n",
        "Each is a file in `examples/`, made from the public API alone: read it, copy it, run it.\n",
    ]
    for name in GALLERY:
        text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
        told = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
        lines += [
            f"## {name.replace('_', ' ')}\n",
            f"{told}\n",
            f"`mbsfmu show examples/{name}.py:{name} --html {name}.html`\n",
            "::::{only} animations",
            ":::{raw} html",
            f'<iframe src="animations/{name}.html" title="{name} in motion" loading="lazy"',
            ' style="width: 100%; aspect-ratio: 16 / 10; border: 0"></iframe>',
            ":::",
            "::::\n",
            f"```{{literalinclude}} ../examples/{name}.py\n:language: python\n```\n",
        ]
    return "\n".join(lines)


def _animate() -> None:
    """Make the pages with examples in motion that are not there."""
    folder = DOCS / "_extra" / "animations"
    folder.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(ROOT / "examples"))
    for name, stop in GALLERY.items():
        if not (folder / f"{name}.html").exists():
            model = getattr(import_module(name), name)()
            model.simulation().run(stop=min(stop, model.stop_time)).animate().save(folder / f"{name}.html")


# -- links --------------------------------------------------------------------------------------------------


def _linked(app: Sphinx, page: str, source: list[str]) -> None:  # noqa: ARG001 - Sphinx's interface
    """Let links between pages of the site lead there, and name files that are no pages."""
    text = source[0].replace("OTHERS", "\n".join(_unlisted())) if page == "index" else source[0]
    text = text.replace("\nSPELLINGS\n", f"\n{spellings()}") if page == "python" else text
    text = with_entries(text, page) if page in ENTRIES else text
    outside = page in OUTSIDE.values()
    if outside:
        text = re.sub(r"\]\(docs/([^)]*)\)", r"](\1)", text)
    for file, name in OUTSIDE.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(file)}(#[^)]*)?\)", rf"]({name}.md\1)", text)
    text = re.sub(r"\]\((?:\.\./)?README\.md(#[^)]*)?\)", r"](index.md)", text)
    text = re.sub(r"\]\((?:\.\./)?examples/README\.md\)", r"](gallery.md)", text)
    text = re.sub(r"\[([^\]]*)\]\(LICENSE\)", r"\1", text)
    source[0] = re.sub(
        r"\[([^\]]*)\]\((?:\.\./)?((?:examples|mbsfmu|hydraulics|tests|benchmarks)/[^)]*)\)", _named, text
    )


def _unlisted() -> list[str]:
    """Return the pages that the front page does not list."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = [file.stem for file in sorted(DOCS.glob("*.md")) if file.stem != "index"]
    return [page for page in pages if page not in text.splitlines()]


def _named(link: re.Match[str]) -> str:
    """Return what a link to a file of the repository says, and which file that is."""
    said, path = link[1].strip("`"), link[2]
    return f"`{path}`" if said in path else f"{said} (`{path}`)"
