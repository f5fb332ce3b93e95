"""Responsive tables: rows become cards on narrow screens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.pages.page import filled

_STYLES = ("pages/table.css",)


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
    return HtmlElement(filled("pages/table.html", heads=heads, lines=lines, caption=caption), _STYLES)


def key_value_table(pairs: Mapping[str, str]) -> HtmlElement:
    """Return a list of labelled values."""
    return HtmlElement(filled("pages/facts.html", pairs=pairs), _STYLES)
