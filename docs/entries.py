"""Entries of parts: under a heading that names kinds their pictures, behind what is said of them tables of their data.

Pages say what no class knows: equations, advice, lines that use a part. Names, units, defaults, bounds, ports and
quantities are those of the classes, and stand nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape

from entry_tables import table_of_root, tables_of
from part_kinds import TITLES, Kind, named_in
from pictures import picture

from mbsfmu.model.body import Body
from mbsfmu.model.joint import Joint
from mbsfmu.modelling.data import summary

ROOTS = {"Bodies": Body, "Joints": Joint}
"""What all of a family have stands in a table of its own, under such a heading."""
_HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)


def with_entries(text: str, page: str) -> str:
    """Return the text of a page with pictures and tables."""
    made, marks = [], [*_HEADING.finditer(_without_code(text))]
    made.append(text[: marks[0].start()] if marks else text)
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        section = text[mark.start() : following.start() if following else len(text)]
        found = named_in(mark[2], page)
        made.append(_entry(section, found) if found else section)
        made += [f"\n{table_of_root(ROOTS[mark[2]])}\n"] if mark[2] in ROOTS and page == "reference/mechanics" else []
    return "".join(made)


def _without_code(text: str) -> str:
    """Return a text with blocks of code blanked, whose comments are no headings."""
    return re.sub(r"^```.*?^```$", lambda block: " " * len(block[0]), text, flags=re.MULTILINE | re.DOTALL)


def _entry(section: str, found: list[Kind]) -> str:
    heading, _, said = section.partition("\n")
    before, code, behind = re.match(r"(.*?)(^```python\n.*?^```$|\Z)(.*)", said, re.MULTILINE | re.DOTALL).groups()  # pyright: ignore[reportOptionalMemberAccess] - it matches all
    anchors = "".join(f"({kind.place})=\n" for kind in found)
    tables = "".join(f"{table}\n" for kind in found for table in tables_of(kind, titled=len(found) > 1))
    return f"{anchors}{heading}\n\n{_pictures(found)}\n{before}{tables}\n{code}{behind}"


def _pictures(found: Iterable[Kind]) -> str:
    drawn = "".join(
        f"<figure>{picture(kind.family, kind.word, f'Symbol: {kind.made.__name__}')}"
        f"<figcaption><code>{escape(kind.made.__name__)}</code></figcaption></figure>"
        for kind in found
    )
    return f':::{{raw}} html\n<div class="symbols">{drawn}</div>\n:::\n'


def palette(pages: Mapping[str, str]) -> str:
    """Return all pictures by family in the order of the pages, whose texts these are, each a link to its entry."""
    order = {
        kind: place
        for page, text in pages.items()
        for place, heading in enumerate(_HEADING.findall(_without_code(text)))
        for kind in named_in(heading[1], page)
    }
    lines = []
    for family, title in TITLES.items():
        cards = "".join(
            f'<a class="part" href="../{kind.page}.html#{kind.place}">'
            f"{picture(family, kind.word, f'Symbol: {kind.made.__name__}')}"
            f"<code>{escape(kind.made.__name__)}</code><span>{escape(_plain(summary(kind.made)))}</span></a>"
            for kind in sorted(order, key=lambda kind: order[kind])
            if kind.family == family
        )
        lines.append(f'## {title}\n\n:::{{raw}} html\n<div class="palette">{cards}</div>\n:::\n')
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Return the first clause of a sentence, without references."""
    return re.split(r"[:;,] | \[", text.removesuffix("."))[0]
