"""Building blocks of pages: sections, lists, tables, data to be saved."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from mbsfmu.view.pages.page import HtmlElement, data_block, filled

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
