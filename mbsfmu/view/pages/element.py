"""Elements of a page: markup with its styles, scripts and data."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from markupsafe import Markup

from mbsfmu.base.plain import plain

# What could end or hide the rest of a page; in JSON these stand in texts only, where they may be written so.
_ESCAPES = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class HtmlElement:
    """An element of a page.

    Attributes
    ----------
    markup
        Its HTML. Scripts find it by its class, and read its data from the `data_block` inside it.
    styles, scripts
        Files of this package by their paths, in the order in which they are needed. A page has each once, whatever
        number of elements need it: styles in its head, scripts at its end, as classic scripts.
    computes
        Whether its scripts run WebAssembly in workers, which a page allows then.
    connects
        Whether its scripts speak with the server that the page comes from, which a page allows then.
    """

    markup: Markup
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    computes: bool = False
    connects: bool = False

    @classmethod
    def around(cls, markup: Markup, parts: Iterable[HtmlElement]) -> Self:
        """Return an element whose markup contains other elements, with their needs."""
        inside = list(parts)
        styles = dict.fromkeys(name for each in inside for name in each.styles)
        scripts = dict.fromkeys(name for each in inside for name in each.scripts)
        computes, connects = any(each.computes for each in inside), any(each.connects for each in inside)
        return cls(markup, tuple(styles), tuple(scripts), computes, connects)


def data_block(data: Any, kind: str = "data") -> Markup:
    """Return escaped JSON data for scripts of a page.

    Parameters
    ----------
    data
        Mappings, sequences, NumPy arrays, texts, numbers; numbers that are not finite become null.
    kind
        Class by which scripts find it.
    """
    text = json.dumps(plain(data), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup('<script type="application/json" class="{}">{}</script>').format(
        kind, Markup(text.translate(_ESCAPES))
    )
