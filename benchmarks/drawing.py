"""Figures of the documents: SVG in colours that suit a light and a dark page."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

REFERENCE = "#6b7280"
COLOURS = ("#2563eb", "#d97706", "#059669", "#c026d3", "#dc2626", "#0891b2")
INK = "#808793"  # grey that is readable on white and on black


def new_figure(rows: int, height: float, ratios: Sequence[float] | None = None) -> tuple[Figure, list[Axes]]:
    """Return a figure of rows of axes, the height in inches, and the axes."""
    figure = Figure(figsize=(8.0, height), layout="constrained")
    FigureCanvasSVG(figure)
    figure.patch.set_alpha(0.0)
    axes = np.atleast_1d(figure.subplots(rows, 1, sharex=rows > 1, height_ratios=ratios))
    for axis in axes:
        axis.patch.set_alpha(0.0)
        axis.grid(color=INK, alpha=0.25, linewidth=0.6)
        axis.tick_params(which="both", colors=INK, labelsize=9)
        for spine in axis.spines.values():
            spine.set_color(INK)
            spine.set_alpha(0.5)
        axis.xaxis.label.set_color(INK)
        axis.yaxis.label.set_color(INK)
    return figure, list(axes)


def svg(figure: Figure, axes: Sequence[Axes]) -> str:
    """Return a figure as SVG, with a legend in its first axes where something is labelled."""
    if axes[0].get_legend_handles_labels()[0]:
        legend = axes[0].legend(fontsize=8, frameon=False, ncols=2, loc="best")
        for text in legend.get_texts():
            text.set_color(INK)
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def series_colour(index: int) -> str:
    """Return one of the colours, again from the first where there are no more."""
    return COLOURS[index % len(COLOURS)]
