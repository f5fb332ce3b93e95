"""Numbers and texts as C writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable

_ESCAPED = frozenset('"\\?')
"""What has a meaning in a string; question marks begin trigraphs, by which `??/` would end no string."""


def number(value: float) -> str:
    """Write a number of C with all its digits."""
    if math.isfinite(value):
        return repr(float(value))
    return "NAN" if math.isnan(value) else "HUGE_VAL" if value > 0.0 else "-HUGE_VAL"


def numbers(values: Iterable[float]) -> str:
    """Write the initial values of an array; C has none of length zero."""
    return "{" + (", ".join(number(value) for value in values) or "0.0") + "}"


def string(text: str) -> str:
    """Write a C string, with octal bytes of UTF-8 for non-ASCII characters."""
    if text.isascii() and text.isprintable() and not _ESCAPED.intersection(text):
        return f'"{text}"'
    plain = (character.isascii() and character.isprintable() and character not in _ESCAPED for character in text)
    octal = ("".join(f"\\{byte:03o}" for byte in character.encode()) for character in text)
    return '"' + "".join(c if is_plain else o for c, is_plain, o in zip(text, plain, octal, strict=True)) + '"'


def strings(texts: Iterable[str]) -> str:
    """Write the initial values of an array of strings."""
    return "{" + (", ".join(string(text) for text in texts) or '""') + "}"
