"""What the fields of data mean, as the docstrings of their classes say."""

from __future__ import annotations

import re
from functools import cache
from inspect import cleandoc

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def summary(kind: type) -> str:
    """Return the first paragraph of a class's docstring in one line; nothing where it has none of its own."""
    text = cleandoc(vars(kind).get("__doc__") or "")
    return " ".join(text.partition("\n\n")[0].split())


@cache
def field_texts(kind: type) -> dict[str, str]:
    """Return what the sections `Attributes` of a class and its bases say of fields, by name, each in one line."""
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
