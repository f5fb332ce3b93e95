"""Interactive plots: panels over a common axis, curves with their extremes preserved, chosen signals."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.view.pages.page import HtmlElement, data_block, filled, framed, write_page

Floats = NDArray[np.float64]
_EQUAL_STEPS = 1e-9  # by so much of a step times may stand off an even grid and count as on it
_LONG = 255  # the byte for a jump over so many times or more: it goes on in the next one


class Kind(StrEnum):
    """Drawing style of a curve."""

    LINE = "line"
    REFERENCE = "reference"
    """Wide and grey, below the others."""
    MARKED = "marked"
    """A line with a mark at each of its points."""
    POINTS = "points"
    """Marks alone."""
    BOUND = "bound"
    """Dashed and grey reference line without values."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve of numbers over numbers.

    Attributes
    ----------
    label
        What its legend says.
    x, y
        Shape (k,), x ascending; where y is no finite number the curve has a gap.
    kind
        How it is drawn.
    whole, stretches
        How many points it had before it was thinned, and into how many stretches it was divided then; 0 if it was not.
    """

    label: str
    x: Floats
    y: Floats
    kind: Kind = Kind.LINE
    whole: int = 0
    stretches: int = 0

    @classmethod
    def of(cls, label: str, x: ArrayLike, y: ArrayLike, kind: Kind = Kind.LINE) -> Curve:
        """Return a curve from arrays or sequences.

        Raises
        ------
        InputError
            When x and y have not as many numbers.
        """
        abscissas, ordinates = np.asarray(x, dtype=float).ravel(), np.asarray(y, dtype=float).ravel()
        if len(abscissas) != len(ordinates):
            raise InputError(f"the curve '{label}' has {len(ordinates)} values at {len(abscissas)} places")
        return cls(label, abscissas, ordinates, kind, len(abscissas))

    @classmethod
    def through(cls, label: str, points: Iterable[tuple[float, float]], kind: Kind) -> Curve:
        """Return a curve through points with ascending x."""
        table = np.array(list(points), dtype=float).reshape(-1, 2)
        return cls.of(label, table[:, 0], table[:, 1], kind)

    def thinned(self, most: int) -> Curve:
        """Return the curve with about `most` points: the least and the greatest of equal intervals."""
        kept = extremes(self.y, most)
        stretches = 0 if len(kept) == len(self.y) else -(-len(self.y) // _width(len(self.y), most))
        return Curve(self.label, self.x[kept], self.y[kept], self.kind, self.whole, stretches or self.stretches)


def extremes(values: Floats, most: int) -> NDArray[np.intp]:
    """Return the indices of values that preserve the covered range at a lower resolution.

    Parameters
    ----------
    values
        Shape (k,).
    most
        How many to keep at most, but for the two ends and the first of each gap; all where there are no more.

    Returns
    -------
    NDArray
        Ascending: both ends, and of each of equal stretches the places of the least and the greatest value. In no
        stretch does a value lie outside of those that are kept there.
    """
    count = len(values)
    if count <= max(most, 4):
        return np.arange(count)
    width = _width(count, most)
    starts = np.arange(0, count, width)
    padded = np.full(len(starts) * width, np.nan)
    padded[:count] = values
    table = padded.reshape(-1, width)
    gaps = ~np.isfinite(table)
    least = np.where(gaps, np.inf, table).argmin(axis=1)
    greatest = np.where(gaps, -np.inf, table).argmax(axis=1)
    inside = np.flatnonzero(~np.isfinite(values))
    first_of_gaps = inside[np.unique(inside // width, return_index=True)[1]]
    return np.unique(np.concatenate([[0, count - 1], starts + least, starts + greatest, first_of_gaps]))


def _width(count: int, most: int) -> int:
    """Return the number of values in an interval with two kept values."""
    return -(-count // max(most // 2, 1))


def packed(values: Floats) -> str:
    """Return numbers in seven digits as text for pages: four bytes each, little-endian, in base 64."""
    with np.errstate(over="ignore"):
        return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")


def packed_indices(x: Floats) -> dict[str, Any]:
    """Return ascending numbers for pages: as indices of a uniform grid if possible, otherwise in eight bytes each."""
    steps = np.diff(x)
    step = float(steps.min()) if len(steps) else 0.0
    jumps = np.rint(steps / step) if step > 0 else steps
    if step > 0 and bool(np.all(np.abs(np.cumsum(jumps) * step - (x[1:] - x[0])) <= _EQUAL_STEPS * step * len(x))):
        return {"start": float(x[0]), "step": float(x[-1] - x[0]) / float(jumps.sum()), "jumps": _bytes(jumps)}
    return {"values": base64.b64encode(x.astype("<f8").tobytes()).decode("ascii")}


def _bytes(jumps: Floats) -> str:
    """Return integers as bytes in base64, one byte each below 255."""
    long, rest = np.divmod(jumps.astype(np.int64), _LONG)
    if not long.any():
        return base64.b64encode(rest.astype(np.uint8).tobytes()).decode("ascii")
    pieces = (bytes([_LONG]) * int(times) + bytes([int(left)]) for times, left in zip(long, rest, strict=True))
    return base64.b64encode(b"".join(pieces)).decode("ascii")


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
    *(f"plots/{name}.js" for name in ("data", "panel", "plot")),
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
    return HtmlElement(markup, STYLES, SCRIPTS)
