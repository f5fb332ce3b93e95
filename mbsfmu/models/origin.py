"""Origin of the built-in models."""

from typing import Any

ORIGIN: dict[str, Any] = {
    "author": "the mbsfmu authors",
    "copyright": "Copyright (c) 2026, the mbsfmu authors",
    "license": "BSD-3-Clause",
}
