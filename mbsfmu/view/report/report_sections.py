"""Sections of several reports: provenance, signals, animation, circuits."""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.base.physical_units import quantity
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.modelling import DataError
from mbsfmu.view.circuit.circuit_diagram import circuit_diagrams, circuit_elements, recorded_reader
from mbsfmu.view.pages.page import HtmlElement, call, key_value_table, notes, paragraph, section, stack, table, unfolded
from mbsfmu.view.play.play_page import PlayPage
from mbsfmu.view.plots.plot import Curve, Plot, by_unit, chosen_signals, grouped
from mbsfmu.view.scene import Animation

_PACKAGES = ("mbsfmu", "numpy", "scipy", "casadi", "fmpy")
_ADDRESS, _FOLDERS = r"[A-Za-z][A-Za-z0-9+.-]*://\S+", r"(?:[A-Za-z]:)?[^\s=:,]*[/\\]"


@dataclass(frozen=True)
class Circumstances:
    """Provenance and warnings of a report.

    Attributes
    ----------
    command
        The call it came from, as one types it; nothing where it came from Python.
    warnings
        What was warned of on the way.
    ended
        Why the run ended before its time; nothing where it did not.
    live
        The running machine, for the page of a run in process or of a comparison.
    """

    command: str = ""
    warnings: Sequence[str] = ()
    ended: str = ""
    live: PlayPage | None = None

    def live_machine(self) -> list[HtmlElement]:
        """Return the running machine; empty without one."""
        return [self.live.inside] if self.live is not None else []

    def warning_notes(self) -> list[HtmlElement]:
        """Return the warnings; empty without any."""
        return [notes("Warnings", self.warnings)] if self.warnings else []

    def provenance(self) -> HtmlElement:
        """Return the provenance, without names of folders, users or machines."""
        known = {
            "versions": ", ".join(_versions()),
            "machine": machine(),
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        }
        return section("Where this comes from", call(self.command or "mbsfmu.write_report(…)"), key_value_table(known))


def command_line(arguments: Sequence[str]) -> str:
    """Return a call of `mbsfmu` as typed, with file names only and without addresses."""
    return shlex.join(["mbsfmu", *(re.sub(_FOLDERS, "", re.sub(_ADDRESS, "...", each)) for each in arguments)])


def machine() -> str:
    """Return processor, number of processors and system, without the machine's name."""
    count = os.cpu_count() or 1
    processors = "1 processor" if count == 1 else f"{count} processors"
    return ", ".join(filter(None, (_processor(), processors, f"{platform.system()} {platform.machine()}".strip())))


def _processor() -> str:
    cpus = Path("/proc/cpuinfo")
    if cpus.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", cpus.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
        return " ".join(found[1].split()) if found else ""
    return platform.processor()


def _versions() -> list[str]:
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return found


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


_CIRCUIT_POINTS = 60_000  # of curves that stand in a page for its circuit alone


def circuit_section(machine: Machine | None, run: Trajectory, *, label: str = "", hint: str = "") -> list[HtmlElement]:
    """Return the schematics of a machine's circuits; empty without any, or where nobody knows the machine.

    Parameters
    ----------
    machine
        The machine.
    run
        A run of it, whose values the schematics show.
    label
        What the run is called, in a page whose plots have not all of its signals: those that the schematics show are
        plotted then.
    hint
        What tells more, where the run has no flow of the circuits.
    """
    if machine is None:
        return []
    shown: dict[str, None] = {}
    recorded = recorded_reader(run)

    def read(name: str) -> str | float:
        found = recorded(name)
        shown.update({name: None} if found == name else {})
        return found

    diagrams = circuit_diagrams(machine, run, read)
    if not diagrams:
        return []
    whose = f"{label.capitalize()}, at" if label else "At"
    flows = any(port["flow"] for diagram in diagrams for each in diagram["components"] for port in each["ports"])
    words = f"{whose} the time of the motion, or where the pointer is in a plot."
    told = paragraph(words if flows or not hint else f"{words} {hint}", "soft")
    plots = [_plotted(run, list(shown))] if label and shown else []
    return [section("Hydraulic circuit", circuit_elements(diagrams, GROUP), told, *plots)]


def _plotted(run: Trajectory, names: list[str]) -> HtmlElement:
    """Return a plot of the signals that schematics show."""
    curves = [(Curve.of(name, run.time, np.asarray(run[name])), run.unit(name)) for name in names]
    plot = Plot("Pressures and flows of the circuit", by_unit(curves), group=GROUP, most=_CIRCUIT_POINTS)
    return unfolded(f"Pressures and flows of the circuit ({len(names)})", plot.element())


def moving(animate: Callable[[], Animation], caption: str = "") -> list[HtmlElement]:
    """Return the machine in motion; where it cannot be shown, a sentence says why, or nothing where nothing moves.

    Parameters
    ----------
    animate
        Gives the motion.
    caption
        What it shows.
    """
    try:
        made = animate()
    except (InputError, DataError) as error:
        return [paragraph(f"No moving picture: {error}.", "soft")]
    return [section("The machine in motion", made.element, *([paragraph(caption, "soft")] if caption else []))]
