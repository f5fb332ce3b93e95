"""Names of variables in texts: separators inside of brackets, parentheses and quotes belong to the name.

Structured names of the FMI have such: `a[1,2]`, `der(x,2)`, `'p = q, r'` [FMI 3.0.2, section 2.4.7.6].
"""

from __future__ import annotations

import re

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
