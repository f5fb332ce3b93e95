"""Pages of the documents, and what docs/reference/hydraulics.md shows of components."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import hydraulics
from hydraulics import Component

ROOT = Path(__file__).parents[1]
MADE = {f"{name}.md" for name in ("gallery", "architecture", "changelog", "contributing", "licences")}
MADE |= {f"reference/{name}.md" for name in ("api", "commands", "options", "parts")}
"""What the site makes of the code, where it was made here."""
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(
        page
        for folder in ("", "guides", "reference", "studies")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
        if page.relative_to(ROOT / "docs").as_posix() not in MADE
    ),
    *sorted((ROOT / "examples").glob("*.md")),
]
"""Pages that are written by hand."""
PAGE = (ROOT / "docs" / "reference" / "hydraulics.md").read_text(encoding="utf-8")


def documented_components() -> list[Component]:
    """Run the code of the page, and return the components that it makes."""
    names: dict[str, Any] = {name: getattr(hydraulics, name) for name in hydraulics.__all__}
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        exec(code, names)  # the page is ours
    return [each for each in names.values() if isinstance(each, Component)]
