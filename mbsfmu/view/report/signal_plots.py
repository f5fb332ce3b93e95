"""All signals of a run as plots by part, and as a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mbsfmu.io.trajectory import Trajectory
from mbsfmu.view.pages.blocks import paragraph, section, stack, unfolded
from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.pages.formatted_quantity import quantity
from mbsfmu.view.pages.html_table import table
from mbsfmu.view.plots.chosen_signals import chosen_signals
from mbsfmu.view.plots.curve import Curve
from mbsfmu.view.plots.plot import Plot, by_unit, grouped

_POINTS = 240_000  # of all signals of a report, so that it stays small
_EACH = 3  # signals of each kind that are plotted at first
GROUP = "time"
"""Word of the plots over time, which are zoomed together."""
_MATTER = (
    *(("rad", ()), ("m", ()), ("Pa", ()), ("W", ())),
    *((unit, (".error", ".command")) for unit in ("1", "V", "A", "m", "rad", "N", "N.m")),
)
"""Unit, and endings of names, of signals that matter first."""
_INNER = ("constraint.", "energy.", "hydraulic_energy.", "solver.")
"""Beginnings of names of signals on the run itself."""
_RULE = (
    f"At first: of angles, positions, pressures, powers, commands and errors of controllers the {_EACH} that change "
    "most."
)
_FEW = 3  # groups that say too little where they are all that there is


def signals_over_time(run: Trajectory) -> HtmlElement:
    """Return plots of all signals over time, one for each part of the machine, zoomed together."""
    share = _POINTS // max(len(run.names), 1)
    parts = [
        unfolded(_summary(part, names), _drawn(run, part, names, share * len(names)))
        for part, names in _parts(run.names).items()
    ]
    chosen = chosen_signals(main_signals(run), GROUP, _RULE)
    return section("Signals over time", chosen, *parts)


def main_signals(run: Trajectory) -> list[str]:
    """Return the signals that matter first: of each kind of `_MATTER` those that change most."""
    found: list[str] = []
    for unit, endings in _MATTER:
        moved = {
            name: float(np.ptp(run[name]))
            for name in run.names
            if run.unit(name) == unit
            and (not endings or name.endswith(endings))
            and not name.startswith(_INNER)
            and not name.endswith(".compression")  # the state behind a pressure
        }
        kept: list[str] = []
        for name in sorted(moved, key=lambda name: moved[name], reverse=True):
            alike = any(np.array_equal(run[name], run[other]) for other in (*found, *kept))  # under another name
            if len(kept) < _EACH and moved[name] > 0.0 and not alike:
                kept.append(name)
        found += kept
    return found


def table_of_signals(run: Trajectory) -> HtmlElement:
    """Return a table of all signals: first, last, least and greatest value."""
    rows = []
    for name in run.names:
        values, unit = run[name], run.unit(name)
        numbers = (values[0], values.min(), values.max(), values[-1])
        rows.append([name, *(quantity(float(each), unit, 5) for each in numbers)])
    made = table(("signal", "start", "least", "greatest", "end"), rows, "All signals, in five digits.")
    return unfolded(f"All {len(run.names)} signals: start, least, greatest, end", made)


def _parts(names: Sequence[str]) -> dict[str, list[str]]:
    """Return names by part of the machine: by their first word, or two if one does not separate them."""
    for depth in (1, 2):
        found: dict[str, list[str]] = {}
        for name in names:
            words = name.split(".")
            found.setdefault(".".join(words[: min(depth, len(words) - 1)]) or name, []).append(name)
        if len(found) > _FEW:
            break
    return found


def _summary(part: str, names: Sequence[str]) -> str:
    return part if names == [part] else f"{part} ({'1 signal' if len(names) == 1 else f'{len(names)} signals'})"


def _drawn(run: Trajectory, part: str, names: Sequence[str], most: int) -> HtmlElement:
    """Return the plot of some signals, without constant ones."""
    still = [name for name in names if len(run.time) and not np.ptp(run[name]) > 0]
    curves = [(Curve.of(name, run.time, run[name]), run.unit(name)) for name in names if name not in still]
    listed = ", ".join(f"{name} = {quantity(float(run[name][0]), run.unit(name), 5)}" for name in still)
    constants = [paragraph(f"Constant: {listed}.", "soft")] if still else []
    if not curves:
        return constants[0]
    plot = Plot(part, by_unit(curves), group=GROUP, most=most).element()
    return stack(plot, *constants)


def points_described(run: Trajectory) -> str:
    """Return the number of recorded times in words."""
    return f"{len(run.names)} signals at {grouped(len(run.time))} times"
