"""Files of pages: our own, and libraries in `assets`.

`assets/manifest.json` says of each library what it is called in the npm registry, its version and licence, and of
each of its files where that stands in the package, and its SHA-256.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

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
