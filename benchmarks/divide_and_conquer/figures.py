"""Figures of these studies in the style of the toolkit's own."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from drawing import COLOURS, new_figure, svg

DOCS = Path(tempfile.mkdtemp()) if "--quick" in sys.argv else Path(__file__).parents[2] / "docs" / "studies"
STYLES = {"dca": "--", "hdca": "-"}


def put_table(page: str, mark: str, table: str) -> None:
    """Put a table into a page of the documentation, between its marks.

    Parameters
    ----------
    page
        Name of the file.
    mark
        What stands in the comment before the table.
    table
        The table, with what stands under it.
    """
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    before, rest = (DOCS / page).read_text(encoding="utf-8").split(begin)
    text = f"{before}{begin}\n{table}\n\n{end}{rest.split(end)[1]}"
    (DOCS / page).write_text(text, encoding="utf-8")


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
    figure, axes = new_figure(1, 4.2)
    for label, (abscissas, ordinates) in points.items():
        colour, style = styles[label]
        axes[0].loglog(abscissas, ordinates, style, color=colour, linewidth=1.4, markersize=4, label=label)
    axes[0].set_xlabel(labels[0])
    axes[0].set_ylabel(labels[1])
    (DOCS / file).write_text(svg(figure, axes), encoding="utf-8")


def panels(
    file: str, tolerances: Sequence[float], kappas: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]
) -> None:
    """Draw κ over the tolerance, one panel for each case: solver by colour, published dashed.

    Parameters
    ----------
    file
        Name of the file.
    tolerances
        Of the solvers.
    kappas
        κ by case, solver, and `ours` or `published`.
    """
    figure, axes = new_figure(len(kappas), 7.0)
    for axis, (case, by_solver) in zip(axes, kappas.items(), strict=True):
        for colour, (solver, sources) in zip(COLOURS, by_solver.items(), strict=False):
            for source, values in sources.items():
                style = "o-" if source == "ours" else "s--"
                axis.loglog(
                    tolerances, values, style, color=colour, linewidth=1.2, markersize=3, label=f"{solver}, {source}"
                )
        axis.set_ylabel(f"κ, {case}")
        axis.set_yticks([0.5, 1.0, 2.0, 5.0], ["0.5", "1", "2", "5"])
        axis.minorticks_off()
    axes[-1].set_xlabel("tolerance")
    (DOCS / file).write_text(svg(figure, axes), encoding="utf-8")
