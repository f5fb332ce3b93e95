"""One translation unit of the C sources of an FMU, for importers that take one file a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

_INCLUDE = re.compile(r'^#include (?:"(\w+\.[ch])"|(\w+))\s*(?:/\*.*)?$')
_DIRECTIVE = re.compile(r"^#\s*(\w+)\s*(\w*)")
_GUARD = re.compile(r"^#ifndef (MBSFMU_\w+)\n#define \1\n", re.MULTILINE)
_TOKEN = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|((?:->|\.)\s*)?\b([A-Za-z_]\w*)", re.DOTALL)
_STATIC = re.compile(r"^(?:static|typedef)\b[^(\[;={]*?\b(\w+)\s*(?=[(\[;=])", re.MULTILINE)
_FUNCTION_TYPE = re.compile(r"^typedef\b[^;{]*?\(\*(\w+)\)", re.MULTILINE)
_TYPE = re.compile(r"^\} (\w+);", re.MULTILINE)
_ENUMERATION = re.compile(r"^(?:typedef )?enum \{(.*?)\}", re.MULTILINE | re.DOTALL)
_ENUMERATOR = re.compile(r"(?:^|,)\s*(\w+)")
_FUNCTION = re.compile(
    r"^(?:/\*(?:(?!\*/).)*\*/\n)?static [^;{}#=]*?\b(\w+)\([^;{}]*\) \{(?:[^\n]*\}\n|\n.*?^\}\n)\n?",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TYPES = {"void", "int", "double", "size_t"}
_LAST = "flow.c"
"""Equations for the solver of a host replace functions by macros, so nothing comes behind them."""


def single_source(texts: Mapping[str, str], mains: Sequence[str]) -> str:
    """Return one C file that is compiled to the same as several.

    Each header is in it once. Names and macros that several of the files define for themselves are kept apart by an
    ending.

    Parameters
    ----------
    texts
        Files by name, those that are included among them.
    mains
        Names of the files that are compiled.
    """
    order = sorted(mains, key=lambda name: name == _LAST)
    formulation = re.search(r'#define FORMULATION_FILE "(\w+\.c)"', texts["model.h"])
    macros = {"FORMULATION_FILE": formulation.group(1)} if formulation else {}
    seen: set[str] = set()
    parts = [_joined(_expanded(main, texts, macros, seen, 0)) for main in order]
    own = [_defined("".join(text for text, shared in part if not shared)) for part in parts]
    times = Counter(name for names in own for name in names)
    written = ["/* All of the model in one file. */\n"]
    for main, part, names in zip(order, parts, own, strict=True):
        ending = f"_in_{main.removesuffix('.c')}"
        again = {name for name in names if times[name] > 1}
        written += [f"\n/* -- {main} -- */\n"]
        written += [text if shared else _renamed(text, again, ending) for text, shared in part]
        if main == _LAST:
            continue
        own_macros = dict.fromkeys(
            found.group(2)
            for text, shared in part
            if not shared
            for line in text.splitlines()
            if (found := _DIRECTIVE.match(line)) and found.group(1) == "define"
        )
        written += [f"#undef {name}\n" for name in own_macros]
    return _without_unused("".join(written))


def _expanded(
    name: str, texts: Mapping[str, str], macros: Mapping[str, str], seen: set[str], depth: int
) -> Iterator[tuple[str, bool]]:
    """Give the lines of a file with what it includes, and whether they are of a header, which all parts share.

    A header that is included under a condition may not be there for the next part: it is written again, and its guard
    decides.
    """
    text = texts[name]
    shared = name.endswith(".h")
    guarded = bool(_GUARD.search(text))
    for line in text.splitlines(keepends=True):
        found = _INCLUDE.match(line.rstrip("\n"))
        if found is None:
            directive = _DIRECTIVE.match(line)
            word = directive.group(1) if directive else ""
            depth += word in ("if", "ifdef", "ifndef")
            depth -= word == "endif"
            yield line, shared
            continue
        included = found.group(1) or macros[found.group(2)]
        if included in seen or included not in texts:  # what an FMU lacks stands under a condition that is false
            continue
        if included.endswith(".h") and depth - guarded == 0:
            seen.add(included)
        yield from _expanded(included, texts, macros, seen, depth - guarded)


def _joined(lines: Iterator[tuple[str, bool]]) -> list[tuple[str, bool]]:
    return [("".join(text for text, _ in those), shared) for shared, those in groupby(lines, lambda line: line[1])]


def _defined(text: str) -> set[str]:
    """Return the names that a text defines for itself at file scope."""
    bare = _COMMENT.sub(" ", text)
    names = {*_STATIC.findall(bare), *_FUNCTION_TYPE.findall(bare), *_TYPE.findall(bare)}
    for inside in _ENUMERATION.findall(bare):
        names |= set(_ENUMERATOR.findall(inside))
    return names - _TYPES  # which stand before the bracket of a pointer to a function


def _without_unused(text: str) -> str:
    """Return a text without unused static functions, about which compilers would warn."""
    times = Counter(re.findall(r"\b[A-Za-z_]\w*", _COMMENT.sub(" ", text)))
    kept = _FUNCTION.sub(lambda found: found.group() if times[found.group(1)] > 1 else "", text)
    return text if kept == text else _without_unused(kept)


def _renamed(text: str, names: set[str], ending: str) -> str:
    """Return a text with an ending for some names, where these are no members."""

    def replaced(match: re.Match[str]) -> str:
        member, name = match.group(1), match.group(2)
        return f"{name}{ending}" if name in names and not member else match.group()

    return _TOKEN.sub(replaced, text)
