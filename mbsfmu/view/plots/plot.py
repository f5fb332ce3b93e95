"""Interactive plots: panels over a common axis, with values and units at the pointer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mbsfmu.view.pages.element import HtmlElement, data_block
from mbsfmu.view.pages.page import filled, framed, write_page
from mbsfmu.view.plots.curve import Curve, packed, packed_indices

MOST = 600_000
"""Largest number of points of all curves of a plot; a file has about seven bytes of each."""
COLOURS = 8
"""Number of distinct colours of curves in a panel."""
_FEWEST = 200  # points of one curve, whatever number there are
STYLES = ("assets/uplot/uPlot.min.css", "plots/plot.css")
"""Styles of plots."""
SCRIPTS = (
    "assets/uplot/uPlot.iife.min.js",
    "pages/quantities.js",
    "pages/download.js",
    *(f"plots/{name}.js" for name in ("data", "group", "panel", "plot")),
)
"""Scripts of plots."""


@dataclass(frozen=True)
class Axis:
    """Common axis of all panels of a plot.

    Attributes
    ----------
    label, unit
        As `time` and `s`; the unit `1` or none for pure numbers.
    logarithmic
        Whether equal lengths are equal ratios.
    ticks
        Where it is marked; even numbers by default.
    """

    label: str
    unit: str
    logarithmic: bool = False
    ticks: tuple[float, ...] = ()


TIME = Axis("time", "s")


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves of one unit.

    Attributes
    ----------
    label
        What they are; said above the panel, where the legend does not say it.
    unit
        Of all of them; `1` for pure numbers, `%` for percent.
    curves
        In the order of the legend.
    logarithmic
        Whether it is drawn so at first; None for what has no such switch. Magnitudes are drawn then.
    limits
        Beyond which values curves leave the panel, so that one that runs away does not flatten the others; no limits by
        default.
    """

    label: str
    unit: str
    curves: tuple[Curve, ...]
    logarithmic: bool | None = False
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Plot:
    """Panels over one axis, zoomed and moved together.

    A notebook shows it; `save` makes a page of it.

    Attributes
    ----------
    title
        What it shows.
    panels
        From the uppermost.
    axis
        What they are drawn over.
    group
        Plots of one page with the same word are zoomed together; none by default.
    most
        Points of all curves together; where there are more, each is thinned to its extremes, and the plot says so.
    """

    title: str
    panels: tuple[Panel, ...]
    axis: Axis = TIME
    group: str = ""
    most: int = MOST

    def __repr__(self) -> str:
        signals = sum(len(panel.curves) for panel in self.panels)
        panels = "1 panel" if len(self.panels) == 1 else f"{len(self.panels)} panels"
        return f"<Plot: {self.title}, {signals} {'curve' if signals == 1 else 'curves'} in {panels}>"

    def _repr_html_(self) -> str:
        return framed(self.title, self._whole(), 120 + 290 * min(len(self.panels), 3))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the plot as a self-contained page, atomically.

        Raises
        ------
        InputError
            When the file is not called `.html` or `.htm`.
        """
        return write_page(self.title, self._whole(), path)

    def element(self) -> HtmlElement:
        """Return the plot as an element of a page."""
        thin = self._thinned()
        grids: dict[bytes, int] = {}
        places: list[dict[str, Any]] = []
        panels = []
        for panel in thin.panels:
            curves = []
            for curve in panel.curves:
                key = curve.x.tobytes()
                if key not in grids:
                    grids[key] = len(places)
                    places.append(packed_indices(curve.x))
                told = {"label": curve.label, "kind": curve.kind, "grid": grids[key], "values": packed(curve.y)}
                curves.append(told)
            told = {name: getattr(panel, name) for name in ("label", "unit", "logarithmic", "limits")}
            panels.append({**told, "curves": curves})
        axis = {name: getattr(self.axis, name) for name in ("label", "unit", "logarithmic", "ticks")}
        data = {"title": self.title, "axis": axis, "group": self.group, "grids": places, "panels": panels}
        markup = filled("plots/plot.html", title=self.title, data=data_block(data), thinning=thin.thinning)
        return HtmlElement(markup, STYLES, SCRIPTS)

    @property
    def thinning(self) -> str:
        """Message on thinned curves; empty if complete."""
        curves = [curve for panel in self.panels for curve in panel.curves if curve.stretches]
        if not curves:
            return ""
        longest = max(curves, key=lambda curve: curve.whole)
        stretches = grouped(longest.stretches)
        return (
            f"Of curves of up to {grouped(longest.whole)} points, the least and the greatest of each of {stretches} "
            "equal stretches are here: no extreme is lost, but what is between them is."
        )

    def _thinned(self) -> Plot:
        most = max(self.most // max(sum(len(panel.curves) for panel in self.panels), 1), _FEWEST)
        panels = [replace(panel, curves=tuple(curve.thinned(most) for curve in panel.curves)) for panel in self.panels]
        return replace(self, panels=tuple(panels))

    def _whole(self) -> HtmlElement:
        return HtmlElement.around(Markup("<h1>{}</h1>{}").format(self.title, self.element().markup), [self.element()])


def by_unit(curves: Sequence[tuple[Curve, str]], most: int = COLOURS) -> tuple[Panel, ...]:
    """Return panels with a limited number of curves, grouped by unit, in order of appearance."""
    found: dict[str, list[Curve]] = {}
    for curve, unit in curves:
        found.setdefault(unit, []).append(curve)
    return tuple(
        Panel("", unit, tuple(each[begin : begin + most]))
        for unit, each in found.items()
        for begin in range(0, len(each), most)
    )


def grouped(count: int) -> str:
    """Return an integer with its digits in groups of three."""
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
