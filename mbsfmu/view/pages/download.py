"""Data inside a page that can be saved as a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mbsfmu.view.pages.element import HtmlElement, data_block
from mbsfmu.view.pages.page import filled

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
