"""The hydraulic circuits in a report."""

from __future__ import annotations

import numpy as np

from mbsfmu.io.trajectory import Trajectory
from mbsfmu.model.machine import Machine
from mbsfmu.view.circuit.circuit_diagram import circuit_diagrams, recorded_reader
from mbsfmu.view.circuit.circuit_element import circuit_elements
from mbsfmu.view.pages.blocks import paragraph, section, unfolded
from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.plots.curve import Curve
from mbsfmu.view.plots.plot import Plot, by_unit
from mbsfmu.view.report.signal_plots import GROUP

_POINTS = 60_000  # of curves that stand in a page for its circuit alone


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
    plot = Plot("Pressures and flows of the circuit", by_unit(curves), group=GROUP, most=_POINTS)
    return unfolded(f"Pressures and flows of the circuit ({len(names)})", plot.element())
