"""Plots of signals that readers choose from all plots of a page, with a search for names."""

from __future__ import annotations

from collections.abc import Sequence

from mbsfmu.view.pages.element import HtmlElement, data_block
from mbsfmu.view.pages.page import filled
from mbsfmu.view.plots.plot import SCRIPTS, STYLES


def chosen_signals(names: Sequence[str], group: str, rule: str) -> HtmlElement:
    """Return plots of chosen signals, which stand in the same section as the plots that they are chosen from.

    Parameters
    ----------
    names
        Signals that are chosen at first.
    group
        Plots with this word are chosen from, and zoomed together with these.
    rule
        By what they are chosen at first, as a sentence.
    """
    data = data_block({"names": names, "group": group})
    markup = filled("plots/chosen.html", data=data, rule=rule, list=f"signals-of-{group}")
    return HtmlElement(markup, STYLES, (*SCRIPTS, "plots/chosen.js"))
