"""Descriptions of data fields from the docstrings of their classes."""

from __future__ import annotations

import re
from functools import cache
from inspect import cleandoc

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def summary(kind: type) -> str:
    """Return the first paragraph of a class's own docstring in one line; empty without one."""
    text = cleandoc(vars(kind).get("__doc__") or "")
    return " ".join(text.partition("\n\n")[0].split())


@cache
def field_texts(kind: type) -> dict[str, str]:
    """Return the texts of the `Attributes` sections of a class and its bases, by field name."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        found |= _attributes(cleandoc(vars(each).get("__doc__") or ""))
    return found


def _attributes(text: str) -> dict[str, str]:
    """Return the entries of the section `Attributes` of a docstring."""
    parts = _HEADING.split(text)
    section = dict(zip(parts[1::2], parts[2::2], strict=True)).get("Attributes", "")
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.split(",")]
        elif line.strip():
            found |= {name: f"{found.get(name, '')} {line.strip()}".strip() for name in names}
    return found
