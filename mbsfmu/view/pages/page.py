"""Skeleton of all pages, their elements, scripts and libraries: one self-contained file for paper, screen and phone.

Files of pages: our own, and libraries in `assets`.

`assets/manifest.json` says of each library what it is called in the npm registry, its version and licence, and of
each of its files where that stands in the package, and its SHA-256.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file
from mbsfmu.base.identity import plain

_HOME = files("mbsfmu.view")
_ASSETS = "assets"


@cache
def text_of(name: str) -> str:
    """Return the text of a file by its path in this package: `plot.js`, `assets/uplot/uPlot.min.css`."""
    return _HOME.joinpath(*name.split("/")).read_text(encoding="utf-8")


def libraries() -> list[dict[str, Any]]:
    """Return the manifest of the libraries."""
    return json.loads(text_of(f"{_ASSETS}/manifest.json"))


def libraries_of(names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the manifest entries of the libraries of some files."""
    used = {name.removeprefix(f"{_ASSETS}/") for name in names}
    return [library for library in libraries() if used & {each["file"] for each in library["files"]}]


# What could end or hide the rest of a page; in JSON these stand in texts only, where they may be written so.
_ESCAPES = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class HtmlElement:
    """An element of a page.

    Attributes
    ----------
    markup
        Its HTML. Scripts find it by its class, and read its data from the `data_block` inside it.
    styles, scripts
        Files of this package by their paths, in the order in which they are needed. A page has each once, whatever
        number of elements need it: styles in its head, scripts at its end, as classic scripts.
    computes
        Whether its scripts run WebAssembly in workers, which a page allows then.
    connects
        Whether its scripts speak with the server that the page comes from, which a page allows then.
    """

    markup: Markup
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    computes: bool = False
    connects: bool = False

    @classmethod
    def around(cls, markup: Markup, parts: Iterable[HtmlElement]) -> Self:
        """Return an element whose markup contains other elements, with their needs."""
        inside = list(parts)
        styles = dict.fromkeys(name for each in inside for name in each.styles)
        scripts = dict.fromkeys(name for each in inside for name in each.scripts)
        computes, connects = any(each.computes for each in inside), any(each.connects for each in inside)
        return cls(markup, tuple(styles), tuple(scripts), computes, connects)


def data_block(data: Any, kind: str = "data") -> Markup:
    """Return escaped JSON data for scripts of a page.

    Parameters
    ----------
    data
        Mappings, sequences, NumPy arrays, texts, numbers; numbers that are not finite become null.
    kind
        Class by which scripts find it.
    """
    text = json.dumps(plain(data), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup('<script type="application/json" class="{}">{}</script>').format(
        kind, Markup(text.translate(_ESCAPES))
    )


def page(title: str, content: HtmlElement) -> str:
    """Return a complete page.

    What it has inside it may use; a rule in its head forbids it to load anything else.

    Parameters
    ----------
    title
        What a browser calls it.
    content
        What it shows; headings begin with `h1`.
    """
    names = (*content.styles, *content.scripts)
    return (
        environment()
        .from_string(text_of("pages/page.html"))
        .render(
            title=title,
            content=content.markup,
            computes=content.computes,
            connects=content.connects,
            styles=[Markup(text_of(name)) for name in ("pages/page.css", *content.styles)],
            scripts=[Markup(text_of(name)) for name in content.scripts],
            libraries=libraries_of(names),
        )
    )


def write_page(title: str, content: HtmlElement, path: str | os.PathLike[str]) -> Path:
    """Write a complete page to an HTML file, atomically.

    Raises
    ------
    InputError
        When the file is not called `.html` or `.htm`.
    """
    if not os.fspath(path).lower().endswith((".html", ".htm")):
        raise InputError(f"{os.fspath(path)} is refused as a page: its name must end in .html or .htm")
    text = page(title, content)
    with complete_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return Path(path)


@cache
def environment() -> Environment:
    """Return the template environment, which escapes text."""
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)


def filled(template: str, **values: Any) -> Markup:
    """Return a template of this package by its path, filled."""
    return Markup(environment().from_string(text_of(template)).render(**values))


def framed(title: str, content: HtmlElement, height: int) -> str:
    """Return markup that embeds a page in another one, such as a notebook's, in isolation.

    Parameters
    ----------
    title, content
        As for `page`.
    height
        Of the frame in pixels; the page in it scrolls.
    """
    return Markup(
        '<iframe title="{}" srcdoc="{}" style="width: 100%; height: {}px; border: 0" loading="lazy"></iframe>'
    ).format(title, page(title, content), height)


# -- building blocks of pages: sections, lists, tables, data to be saved -----------------------------------------------

_STYLES = ("pages/blocks.css",)


def stack(*parts: HtmlElement) -> HtmlElement:
    """Return elements one below the other."""
    return HtmlElement.around(Markup("\n").join(part.markup for part in parts), parts)


def heading(text: str) -> HtmlElement:
    """Return the heading of a page."""
    return HtmlElement(Markup("<h1>{}</h1>").format(text))


def section(title: str, *parts: HtmlElement) -> HtmlElement:
    """Return elements under a heading."""
    inside = stack(*parts)
    return HtmlElement.around(Markup("<section><h2>{}</h2>\n{}\n</section>").format(title, inside.markup), [inside])


def paragraph(text: str, kind: str = "") -> HtmlElement:
    """Return a paragraph; `soft`, `good`, `warn` and `bad` colour it."""
    return HtmlElement(Markup('<p class="{}">{}</p>').format(kind, text) if kind else Markup("<p>{}</p>").format(text))


def as_sentence(text: str) -> str:
    """Return a note with a full stop, and a capital letter unless it begins with the name of a variable or file."""
    first = text.partition(" ")[0]
    return f"{text if '.' in first else text[:1].upper() + text[1:]}."


def answer(sentences: Iterable[tuple[str, str]]) -> HtmlElement:
    """Return the main result of a page: sentences, each with its kind as of a paragraph."""
    paragraphs = stack(*(paragraph(text, kind) for text, kind in sentences))
    return HtmlElement(
        Markup('<section class="answer" aria-label="In short">{}</section>').format(paragraphs.markup), _STYLES
    )


def notes(title: str, texts: Iterable[str]) -> HtmlElement:
    """Return a list of warnings."""
    items = Markup("").join(Markup("<li>{}</li>").format(text) for text in texts)
    return HtmlElement(Markup('<section class="notes"><h2>{}</h2><ul>{}</ul></section>').format(title, items), _STYLES)


def unfolded(summary: str, *parts: HtmlElement, opened: bool = False) -> HtmlElement:
    """Return collapsible elements, open if requested."""
    inside = stack(*parts)
    markup = Markup("<details{}><summary>{}</summary>\n{}\n</details>")
    made = markup.format(Markup(" open") if opened else "", summary, inside.markup)
    return HtmlElement(made, (*_STYLES, *inside.styles), inside.scripts)


def beside(*parts: HtmlElement) -> HtmlElement:
    """Return small elements in a row."""
    inside = stack(*parts)
    markup = Markup('<div class="row">{}</div>').format(inside.markup)
    return HtmlElement(markup, (*_STYLES, *inside.styles), inside.scripts)


def call(text: str) -> HtmlElement:
    """Return a command line without word breaks."""
    words = Markup(" ").join(Markup("<span>{}</span>").format(word) for word in text.split(" "))
    return HtmlElement(Markup('<p><code class="call">{}</code></p>').format(words), _STYLES)


_TABLE_STYLES = ("pages/table.css",)


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes
    ----------
    text
        What it says.
    kind
        `good`, `warn` or `bad`, by which it is coloured; or nothing.
    span
        Over how many columns it goes.
    """

    text: str
    kind: str = ""
    span: int = 1


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str | Cell]], caption: str, *, texts: Iterable[int] = (0,)
) -> HtmlElement:
    """Return a table.

    Parameters
    ----------
    columns
        What stands over them.
    rows
        One cell a column, but for those that go over several.
    caption
        What it shows.
    texts
        Which columns are words, the first by default; the others are numbers and stand to the right.
    """
    words, lines = frozenset(texts), []
    for row in rows:
        cells, place = [], 0
        for each in row:
            cell = each if isinstance(each, Cell) else Cell(each)
            numeric = place not in words and cell.span == 1
            cells.append({"cell": cell, "label": columns[place], "numeric": numeric})
            place += cell.span
        lines.append(cells)
    heads = [{"text": text, "numeric": index not in words} for index, text in enumerate(columns)]
    return HtmlElement(filled("pages/table.html", heads=heads, lines=lines, caption=caption), _TABLE_STYLES)


def key_value_table(pairs: Mapping[str, str]) -> HtmlElement:
    """Return a list of labelled values."""
    return HtmlElement(filled("pages/facts.html", pairs=pairs), _TABLE_STYLES)


_TYPES = {".csv": "text/csv", ".json": "application/json"}


def download(label: str, name: str, data: Any) -> HtmlElement:
    """Return a button that saves data of the page.

    Parameters
    ----------
    label
        What it says.
    name
        Of the file; what is none of a name in it is left out. Its suffix says what it is: of `.csv` the data are the
        text, of `.json` what is written as such.
    data
        What is saved.
    """
    kind = _TYPES["." + name.rpartition(".")[2]]
    markup = filled("pages/download.html", label=label, name=name, kind=kind, data=data_block(data))
    return HtmlElement(markup, (), ("pages/download.js",))


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as CSV text: numbers with all digits, empty for missing ones."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(columns)
    writer.writerows([row.get(name) for name in columns] for row in rows)
    return stream.getvalue()
