"""Pages of the site that are made from the code: parts, options, commands, the gallery, and files from outside."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from api_pages import api_pages
from entries import palette, with_entries
from part_kinds import kinds
from spellings import spellings
from sphinx.application import Sphinx

import mbsfmu
from mbsfmu.base.options import Number, Options, StringOption
from mbsfmu.cli.commands import COMMANDS, cli
from mbsfmu.comparison import ComparisonOptions
from mbsfmu.simulation.run_options import RunOptions

DOCS = Path(__file__).parent
ROOT = DOCS.parent
ANIMATIONS = "MBSFMU_SITE_ANIMATIONS"
"""Environment variable: 0 leaves the animations out, which takes a minute less."""

ENTRIES = {kind.page for kind in kinds()}
"""Pages with entries of parts."""
OUTSIDE = {"ARCHITECTURE.md": "architecture", "CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"}
OUTSIDE |= {"THIRD-PARTY.md": "licences"}
LISTS = ("index", "studies/index")
"""Pages with lists of pages, where `OTHERS folder` stands for those of a folder that no list has."""
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
        "env-get-outdated", lambda *_: sorted({*ENTRIES, "reference/python"})
    )  # made from classes, which may have changed
    app.connect("source-read", _linked)
    app.connect("autodoc-process-docstring", _escaped)
    return {"parallel_read_safe": True}


def make_pages(*, animated: bool) -> None:
    """Write all pages that are made, but those whose text has not changed."""
    pages = {"reference/commands": _commands(), "reference/options": _options(), "gallery": _gallery()} | api_pages()
    pages["reference/parts"] = (
        "# All parts at a glance\n\nEach leads to its entry: symbol, equations, parameters, what it takes and tells, "
        "and lines that use it. `mbsfmu schema` has all of them for programs.\n\n"
        + palette({page: (DOCS / f"{page}.md").read_text(encoding="utf-8") for page in sorted(ENTRIES)})
    )
    pages |= {page: (ROOT / file).read_text(encoding="utf-8") for file, page in OUTSIDE.items()}
    for name, text in pages.items():
        file = DOCS / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
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
    words = f" One of {', '.join(f'`{word}`' for word in option.among())}." if isinstance(option, StringOption) else ""
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
    text = source[0]
    if page in LISTS:
        text = re.sub(r"^OTHERS (\w+)$", lambda found: "\n".join(_unlisted(found[1], page)), text, flags=re.MULTILINE)
    text = text.replace("\nSPELLINGS\n", f"\n{spellings()}") if page == "reference/python" else text
    text = with_entries(text, page) if page in ENTRIES else text
    outside = page in OUTSIDE.values()
    if outside:
        text = re.sub(r"\]\(docs/([^)]*)\)", r"](\1)", text)
    up = "../" * page.count("/")
    for file, name in {**OUTSIDE, "README.md": "index", "examples/README.md": "gallery"}.items():
        text = re.sub(rf"\]\((?:\.\./)*{re.escape(file)}(#[^)]*)?\)", rf"]({up}{name}.md\1)", text)
    text = re.sub(r"\[([^\]]*)\]\(LICENSE\)", r"\1", text)
    source[0] = re.sub(
        r"\[([^\]]*)\]\((?:\.\./)*((?:examples|mbsfmu|hydraulics|tests|benchmarks)/[^)]*)\)", _named, text
    )


def _unlisted(folder: str, page: str) -> list[str]:
    """Return the pages of a folder that no list has, as a page names them."""
    listed = {
        f"{each.rpartition('/')[0]}/{line}".removeprefix("/")
        for each in LISTS
        for line in (DOCS / f"{each}.md").read_text(encoding="utf-8").splitlines()
    }
    found = [f"{folder}/{file.stem}" for file in sorted((DOCS / folder).glob("*.md"))]
    return [each.removeprefix(f"{page.rpartition('/')[0]}/") for each in found if each not in listed]


def _named(link: re.Match[str]) -> str:
    """Return what a link to a file of the repository says, and which file that is."""
    said, path = link[1].strip("`"), link[2]
    return f"`{path}`" if said in path else f"{said} (`{path}`)"
