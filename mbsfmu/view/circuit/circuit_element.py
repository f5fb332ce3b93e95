"""Schematics of circuits as an element of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mbsfmu.view.pages.blocks import stack
from mbsfmu.view.pages.element import HtmlElement, data_block
from mbsfmu.view.pages.page import filled
from mbsfmu.view.plots.plot import SCRIPTS

_SCRIPTS = (
    *("pages/quantities.js", "pages/pressure_colours.js", "assets/dagre/dagre.min.js"),
    *("circuit/symbols.js", "circuit/layout.js", "circuit/diagram.js"),
)
_RECORDED = (*SCRIPTS, "circuit/recorded.js")


def circuit_elements(diagrams: Sequence[Mapping[str, Any]], group: str = "") -> HtmlElement:
    """Return the schematics of circuits, one below the other.

    Parameters
    ----------
    diagrams
        What `circuit_diagrams` gave.
    group
        The word of the plots that have the signals, whose time they follow; without one a script gives them values.
    """
    scripts = (*_SCRIPTS, *(_RECORDED if group else ()))
    return stack(
        *(
            HtmlElement(
                filled("circuit/circuit.html", name=each["name"], data=data_block({**each, "group": group})),
                ("circuit/circuit.css",),
                scripts,
            )
            for each in diagrams
        )
    )
