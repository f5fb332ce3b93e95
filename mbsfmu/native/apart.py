"""Long functions in separate C files, to limit compiler memory and choose optimization levels.

A function in pieces is spread over several files, piece by piece; a header declares all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

HEADER = "model_apart.h"
FILE = "model_apart_"
"""How the names of the files begin."""
LEVEL = "-Og"
"""How much they are optimized: gcc takes 1.4 times as long with -O1 and twice as long with -O2, and a Jacobian takes no
less time for it; without any it is twice as large."""
_LONG = 25_000
"""Characters from which on a function stands apart; where it is shorter, a declaration saves little."""
_FILE = 700_000
"""Characters of a file: gcc takes some 100 MB for it."""
_OTHERS = ("solve_linear(", "solve_loop(")
"""Static functions of the runtime that the files do not have."""
_DEFINITION = re.compile(r"^static (?:PIECE )?void (\w+)\(([^)]*)\) \{\n.*?^\}", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class _Function:
    """A function of C.

    Attributes
    ----------
    declaration
        What makes it known.
    text
        Its definition, which everybody can call.
    helpers
        What it calls, defined in each file.
    """

    declaration: str
    text: str
    helpers: Mapping[str, str]


class ApartCode:
    """The functions of a model that stand in files of their own."""

    def __init__(self) -> None:
        self._functions: list[_Function] = []

    def taken(self, code: str, helpers: Mapping[str, str]) -> str | None:
        """Move a function with its pieces to a separate file; return a forwarding one, or None if it stays.

        It does so where it is short, or calls what other files alone have.

        Parameters
        ----------
        code
            Its definition.
        helpers
            Functions that it may call, by name.
        """
        called = {name: text for name, text in helpers.items() if f"{name}(" in code}
        if len(code) < _LONG or any(each in text for text in (code, *called.values()) for each in _OTHERS):
            return None
        found = list(_DEFINITION.finditer(code))
        names = re.compile(rf"\b({'|'.join(each[1] for each in found)})\(")
        for each in found:
            body = names.sub(r"NAMED(mbsfmu_\1)(", each[0])
            text = re.sub(r"^static (?:PIECE )?", "", body)
            own = {name: helper for name, helper in called.items() if f"{name}(" in text}
            declaration = f"INTERNAL void NAMED(mbsfmu_{each[1]})({each[2]});"
            self._functions.append(_Function(declaration, text, own))
        name, parameters = found[-1][1], found[-1][2]
        handed = ", ".join(re.findall(r"(\w+)(?:,|$)", parameters))
        return f"static void {name}({parameters}) {{ NAMED(mbsfmu_{name})({handed}); }}"

    def files(self) -> dict[str, str]:
        """Return the files by name: the header, and those with the functions."""
        guard = HEADER.upper().replace(".", "_")
        declarations = "\n".join(each.declaration for each in self._functions)
        header = f"#ifndef {guard}\n#define {guard}\n\n{declarations}\n\n#endif\n"
        made, room = list[list[_Function]](), 0
        for each in self._functions:
            if room < len(each.text):
                made.append([])
                room = _FILE
            made[-1].append(each)
            room -= len(each.text)
        return {HEADER: header} | {f"{FILE}{number}.c": _file(functions) for number, functions in enumerate(made)}


def _file(functions: list[_Function]) -> str:
    helpers: dict[str, str] = {}
    for each in functions:
        helpers |= each.helpers
    parts = ['#include "model.h"', f'#include "{HEADER}"', *helpers.values(), *(each.text for each in functions)]
    return "\n\n".join(parts) + "\n"
