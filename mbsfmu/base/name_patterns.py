"""Names of variables in texts, and patterns of them.

Names of variables in texts: separators inside of brackets, parentheses and quotes belong to the name.

Structured names of the FMI have such: `a[1,2]`, `der(x,2)`, `'p = q, r'` [FMI 3.0.2, section 2.4.7.6].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from mbsfmu.modelling import closest_match

_INSIDE = r"""\[[^\]]*\] | \([^()]*\) | (?<!\w)'(?:[^'\\]|\\.)*'"""


def names_between_commas(text: str) -> list[str]:
    """Return the names of a list as `a.y,a[1,2]`, without blanks around them."""
    names = re.findall(rf"(?:{_INSIDE} | [^,])+", text, re.VERBOSE)
    return [name.strip() for name in names] or [text.strip()]


def parted(text: str, separator: str) -> tuple[str, str, str]:
    """Return what stands before a separator behind a name, it, and the rest, as `str.partition` does."""
    match = re.match(rf"(?:{_INSIDE} | [^{re.escape(separator)}])*", text, re.VERBOSE)
    end = 0 if match is None else match.end()
    return text[:end], text[end : end + 1], text[end + 1 :]


_WILD = frozenset("*?")


def means(pattern: str, names: Iterable[str]) -> bool:
    """Return whether a pattern matches one of the names of a thing; `*` is any letters, `?` is one."""
    literal = pattern.replace("[", "[[]")  # `y[1]` is an element, not `y1`
    return any(each == pattern or fnmatchcase(each, literal) for each in names)


def nearest(pattern: str, known: Collection[str], names: Callable[[str], Sequence[str]]) -> str:
    """Return the closest names to a pattern without a match; patterns too, if one of these matches.

    Parameters
    ----------
    pattern
        What was asked for.
    known
        What there is.
    names
        Gives the names that each of these goes by.
    """
    candidates = [name for each in known for name in names(each)] if _WILD & set(pattern) else known
    alike = [each for each in _alike(pattern, candidates) if means(each, candidates)]
    return closest_match(pattern, alike or known)


def _alike(pattern: str, names: Iterable[str]) -> Iterable[str]:
    """Yield names as patterns with the same wildcards: of `boom.angle` and `cylindr.*`, `boom.*`; each once."""
    asked = pattern.split(".")
    wild = [bool(_WILD & set(part)) for part in asked]
    if not any(wild):
        yield from names
        return
    told: dict[str, None] = {}
    for name in names:
        parts = name.split(".")
        if len(parts) >= len(asked):
            beside = parts[-len(asked) :] if wild[0] else parts[: len(asked)]
            told[".".join(map(lambda one, other, free: one if free else other, asked, beside, wild))] = None
    yield from (each for each in told if each != pattern)
