"""Variable names for importers: structured (with dots), and flat (identifiers)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, get_args

Naming = Literal["structured", "flat"]
"""`variableNamingConvention` of the FMI."""
NAMINGS: tuple[Naming, ...] = get_args(Naming)
LONGEST_FLAT_NAME = 63
"""Largest length of a flat name: `namelengthmax` of MATLAB, and significant characters of C99 identifiers."""
_PART = r"(?:[A-Za-z_][A-Za-z0-9_]*(?:\[\d+(?:,\d+)*\])?)"
_NAME = rf"{_PART}(?:\.{_PART})*"
STRUCTURED_NAME = re.compile(rf"^(?:{_NAME}|der\({_NAME}\))$")
"""Names of the convention `structured` [FMI 2.0.4, section 2.2.9]."""
_C_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while"
)
_MATLAB_KEYWORDS = "catch classdef elseif end function global otherwise parfor persistent spmd try"
KEYWORDS = frozenset(f"{_C_KEYWORDS} {_MATLAB_KEYWORDS}".split())
"""Keywords of C and MATLAB, which cannot be identifiers there."""
_MIDDLE = "__"
"""Replacement of the middle of a name that is too long."""


def identifier(name: str) -> str:
    """Return a name as an identifier of C; keywords of C and MATLAB get a `_`."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{text}_" if text in KEYWORDS else text


def flat_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names as identifiers of C and MATLAB, each once, in the order of the names.

    Characters that are no letters or digits become `_`: `boom.angle` is `boom_angle`, `b.quaternion[1]` is
    `b_quaternion_1`, `der(boom.angle)` is `der_boom_angle`. Of names that would be the same the later ones get `_2`,
    `_3`, and so on. Names of more than 63 characters lose their middle.
    """
    found: dict[str, None] = {}
    for name in names:
        flat, number = _flat(name), 1
        while flat in found:
            number += 1
            flat = _flat(name, f"_{number}")
        found[flat] = None
    return tuple(found)


def flat_name(name: str) -> str:
    """Return the flat name of a variable that is alone."""
    return _flat(name)


def endings(name: str) -> tuple[str, ...]:
    """Return a structured name, and its remainders without leading parts."""
    parts = name.split(".")
    return tuple(".".join(parts[begin:]) for begin in range(len(parts)))


def flat_description(name: str, description: str) -> str:
    """Return the description of a variable with a flat name, which starts with the structured one."""
    return f"{name}: {description}" if description else name


def structured_name(flat: str, description: str) -> str:
    """Return the structured name from a description made by `flat_description`; the flat one without.

    The structured name is used only if it has a dot and gives the flat one. Names without a dot are unchanged.
    """
    name = description.partition(": ")[0]
    if name == flat or "." not in name or not STRUCTURED_NAME.match(name):
        return flat
    number = re.search(r"_\d+$", flat)
    return name if flat in {_flat(name), _flat(name, number[0] if number else "")} else flat


def _flat(name: str, ending: str = "") -> str:
    """Return a name as an identifier of at most 63 characters with an ending."""
    text = identifier(re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "v")
    if text[0].isdigit():
        text = f"v{text}"
    left = LONGEST_FLAT_NAME - len(ending)
    if len(text) > left:
        half = (left - len(_MIDDLE)) // 2
        text = text[: left - len(_MIDDLE) - half] + _MIDDLE + text[-half:]
    return text + ending
