"""Name patterns: `boom.angle`, `cylinder.*`, `*.pressure_*`; brackets are those of elements, as `force[1]`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from mbsfmu.modelling import closest_match

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
