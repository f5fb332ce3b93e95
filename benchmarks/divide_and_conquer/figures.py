"""Figures of these studies in the style of the toolkit's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mbsfmu.report import plots

DOCS = Path(__file__).parents[2] / "docs"
STYLES = {"dca": "--", "hdca": "-"}


def curves(
    file: str,
    points: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    labels: tuple[str, str],
    styles: Mapping[str, tuple[str, str]],
) -> None:
    """Draw curves on logarithmic axes into the documentation.

    Parameters
    ----------
    file
        Name of the file.
    points
        Abscissas and ordinates by label.
    labels
        Of the axes.
    styles
        Colour and style of the line by label.
    """
    figure, axes = plots._figure(1, 4.2)
    for label, (abscissas, ordinates) in points.items():
        colour, style = styles[label]
        axes[0].loglog(abscissas, ordinates, style, color=colour, linewidth=1.4, markersize=4, label=label)
    axes[0].set_xlabel(labels[0])
    axes[0].set_ylabel(labels[1])
    (DOCS / file).write_text(plots._svg(figure, axes), encoding="utf-8")
