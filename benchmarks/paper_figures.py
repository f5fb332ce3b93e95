"""Figures and tables of docs/studies/paper-comparison.md: the hydraulic mechanisms of [Jaiswal2021], Figs. 6 to 14.

Run: python benchmarks/paper_figures.py [--quick] [--folder docs/studies]

10 s with steps of 1 ms, oil without air as in the paper; --quick runs 0.1 s of it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from drawing import COLOURS, INK, REFERENCE, new_figure, series_colour, svg
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import mbsfmu
from mbsfmu.io.signals import StepSignal
from mbsfmu.models import CIRCUITS
from mbsfmu.simulation.run_result import Result

Floats = NDArray[np.float64]

DOCS = Path(__file__).parents[1] / "docs" / "studies"
FORMULATIONS = ("double-step", "penalty")
STYLES = {"double-step": "-", "penalty": "--"}
VOLUMES = ("V1", "V2", "V3")
STEP = 1e-3
POINTS = 500
"""Points that a curve is drawn with, beside those of its peaks."""


@dataclass(frozen=True)
class Case:
    """A mechanism of the paper.

    Attributes
    ----------
    name, make
        Name, and what makes the model.
    angles
        The joint coordinates z₁, z₂, ….
    place
        Returns the lines that show the bodies and, last, the cylinder from the angles; each of shape (2, 2).
    height
        Of the figure of positions in inches.
    """

    name: str
    make: Callable[..., mbsfmu.CoupledModel]
    angles: tuple[str, ...]
    place: Callable[[Floats], list[Floats]]
    height: float


def _from(start: Floats, length: float, angle: float) -> Floats:
    return start + length * np.array([np.cos(angle), np.sin(angle)])


def _four_bar(angles: Floats) -> list[Floats]:
    first, second, third = np.cumsum(angles)
    origin = np.zeros(2)
    at_c = _from(origin, 3.0, first)
    at_d = _from(at_c, np.sqrt(2.0), second)
    lines = [(origin, _from(origin, 9.0, first)), (at_c, at_d), (at_d, _from(at_d, 2.0, third))]
    lines.append((np.array([0.0, -2.0]), _from(at_d, 1.0, third)))
    return [np.array(line).T for line in lines]


def _quick_return(angles: Floats) -> list[Floats]:
    origin, pivot, anchor = np.zeros(2), np.array([0.0, 3.0]), np.array([-0.96, 3.0])
    at_h = _from(origin, 5.0, angles[0])
    at_i = _from(at_h, 1.2, angles[0] + angles[1])
    lines = [(origin, at_h), (at_h, at_i), (pivot, _from(pivot, 1.0, angles[3]))]
    lines.append((anchor, _from(pivot, 0.5, angles[3])))
    return [np.array(line).T for line in lines]


CASES = (
    Case(
        "four-bar",
        mbsfmu.models.four_bar,
        ("boom.angle", "link.angle", "rocker.angle"),
        _four_bar,
        3.0,
    ),
    Case(
        "quick-return",
        mbsfmu.models.quick_return,
        ("lever.angle", "link.angle", "ram.angle", "crank.angle", "block.angle"),
        _quick_return,
        6.5,
    ),
)


def opened(model: mbsfmu.CoupledModel) -> list[tuple[float, float]]:
    """Return the times between which the valve is told to be open."""
    signal = model.signals["circuit.valve.command"]
    assert isinstance(signal, StepSignal)
    ends = [*signal.times[1:], model.stop_time]
    return [(begin, end) for begin, end, value in zip(signal.times, ends, signal.values, strict=True) if value]


def thinned(x: Floats, y: Floats, *, peaks: bool) -> tuple[Floats, Floats]:
    """Leave out points, but for the greatest of each stretch of them and, unless peaks are meant, the least."""
    stretch = ceil(2 * len(x) / POINTS)
    keep = {0, len(x) - 1}
    for begin in range(0, len(x), stretch):
        part = y[begin : begin + stretch]
        keep |= {begin + int(np.argmax(part))} | (set() if peaks else {begin + int(np.argmin(part))})
    chosen = sorted(keep - {0} if peaks else keep)
    return x[chosen], y[chosen]


def draw(axis: Axes, result: Result, values: Floats, style: str, *, peaks: bool = False, **options: Any) -> None:
    """Draw a curve over time, or the peaks of what jumps up and down by orders of magnitude."""
    axis.plot(*thinned(result.time, values, peaks=peaks), style, linewidth=1.3, **options)


def save(figure: Figure, axes: list[Axes], file: Path) -> None:
    """Write a figure; every panel with a legend of its own."""
    for axis in axes[1:]:
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8, frameon=False, ncols=2, labelcolor=INK)
    file.write_text(svg(figure, axes), encoding="utf-8")


def over_time(case: Case, rows: int, height: float) -> tuple[Figure, list[Axes]]:
    """Return panels over time, on which the time of the open valve is shaded."""
    figure, axes = new_figure(rows, height)
    for axis in axes:
        for begin, end in opened(case.make()):
            axis.axvspan(begin, end, color=COLOURS[3], alpha=0.08, linewidth=0.0)
    axes[-1].set_xlabel("time [s]")
    return figure, axes


def draw_motion(case: Case, runs: dict[str, Result], folder: Path) -> None:
    """Draw joint coordinates, pressures, and by how much the formulations differ in the former."""
    figure, axes = over_time(case, 3, 7.5)
    for formulation, result in runs.items():
        for index, name in enumerate(case.angles):
            label = f"z{index + 1}, {name.partition('.')[0]}" if formulation == FORMULATIONS[0] else None
            options = {"color": series_colour(index), "label": label}
            draw(axes[0], result, np.degrees(result[name]), STYLES[formulation], **options)
        for index, volume in enumerate(VOLUMES):
            label = f"p{index + 1}" if formulation == FORMULATIONS[0] else None
            values = 1e-6 * result[f"{volume}.pressure"]
            draw(axes[1], result, values, STYLES[formulation], color=series_colour(index), label=label)
    one, other = (runs[formulation] for formulation in FORMULATIONS)
    for index, name in enumerate(case.angles):
        difference = np.maximum(np.abs(one[name] - other[name]), 1e-16)
        draw(axes[2], one, difference, "-", color=series_colour(index))
    axes[2].set_yscale("log")
    for axis, label in zip(axes, ("joint coordinates [°]", "pressures [MPa]", "difference [rad]"), strict=True):
        axis.set_ylabel(label)
    save(figure, axes, folder / f"paper-{case.name}-motion.svg")


def draw_energies(case: Case, runs: dict[str, Result], folder: Path) -> None:
    """Draw energies and work, and what is missing in their balance, with our work and with one by rectangles."""
    figure, axes = over_time(case, 2, 6.0)
    result = runs["double-step"]
    names = ("kinetic", "potential", "work")
    for index, kind in enumerate(names):
        values = result[f"energy.{kind}"] - result[f"energy.{kind}"][0]
        label = "work of the actuator" if kind == "work" else f"{kind} energy"
        draw(axes[0], result, values, "-", color=series_colour(index), label=label)
    axes[0].set_ylabel("change [J]")
    for formulation, run in runs.items():
        label = f"drift, {formulation}"
        values = np.maximum(np.abs(run["energy.drift"]), 1e-9)
        draw(axes[1], run, values, STYLES[formulation], peaks=True, color=series_colour(0), label=label)
    values = np.maximum(np.abs(rectangle_drift(result)), 1e-9)
    draw(axes[1], result, values, "-", peaks=True, color=series_colour(1), label="with work by rectangles")
    axes[1].set_yscale("log")
    axes[1].set_ylim(1e-6, 1e2)
    axes[1].set_ylabel("magnitude [J]")
    save(figure, axes, folder / f"paper-{case.name}-energies.svg")


def draw_violations(runs: dict[str, dict[str, Result]], folder: Path) -> None:
    """Draw the magnitude of the loop equations' violation."""
    figure, axes = new_figure(len(CASES), 6.0)
    for axis, case in zip(axes, CASES, strict=True):
        for index, (formulation, result) in enumerate(runs[case.name].items()):
            values = np.maximum(result["constraint.position"], 1e-16)
            draw(axis, result, values, "-", peaks=True, color=series_colour(index), label=formulation)
        axis.set_yscale("log")
        axis.set_ylabel(f"{case.name} [m, rad]")
    axes[-1].set_xlabel("time [s]")
    save(figure, axes, folder / "paper-violations.svg")


def draw_positions(case: Case, result: Result, folder: Path) -> None:
    """Draw the mechanism at every second, later ones darker."""
    figure, axes = new_figure(1, case.height)
    instants = [index for index, at in enumerate(result.time) if abs(at - round(at)) < 0.5 * STEP]
    for index in instants:
        shade = 0.25 + 0.75 * result.time[index] / max(result.time[-1], 1.0)
        *bodies, cylinder = case.place(np.array([result[name][index] for name in case.angles]))
        for number, line in enumerate(bodies):
            axes[0].plot(*line, "o-", color=series_colour(number), alpha=shade, linewidth=1.2, markersize=2.5)
        axes[0].plot(*cylinder, color=REFERENCE, alpha=shade, linewidth=3.0)
    axes[0].set_aspect("equal")
    axes[0].set_xlabel("x [m]")
    axes[0].set_ylabel("y [m]")
    save(figure, axes, folder / f"paper-{case.name}-positions.svg")


def rectangle_drift(result: Result) -> Floats:
    """Return change of energy less work, the work being summed up as force times velocity times step, in J."""
    power = result["cylinder.force"] * result["cylinder.velocity"]
    work = np.concatenate([[0.0], np.cumsum(power[:-1] * np.diff(result.time))])
    energy = result["energy.kinetic"] + result["energy.potential"]
    drift: Floats = energy - energy[0] - work
    return drift


def print_works(stop: float, circuits: Iterable[str]) -> None:
    """Print the works with circuits and how far pressures fall."""
    print("\n| mechanism | circuit | greatest work [J] | least work [J] | lowest pressure [MPa] |")
    print("| --- | --- | --- | --- | --- |")
    for case in CASES:
        for circuit in circuits:
            for content in (0.0, 0.005):
                result = case.make(circuit, air_content=content).simulation(step=1e-3, compiled=stop > 1.0).run(stop)
                summary = result.summary()
                lowest = 1e-6 * min(result[f"{volume}.pressure"].min() for volume in VOLUMES)
                print(
                    f"| {case.name} | {circuit}, {100 * content:g} % air | {summary['actuator_work_max']:.2f} "
                    f"| {summary['actuator_work_min']:.2f} | {lowest:.2f} |"
                )


def print_runs(runs: dict[str, dict[str, Result]]) -> None:
    """Print drift, iterations and violations."""
    print("\n| | drift [J] | drift with work by rectangles [J] | iterations, mean / most | violation [m, rad] |")
    print("| --- | --- | --- | --- | --- |")
    for case in CASES:
        for formulation, result in runs[case.name].items():
            summary, drift = result.summary(), np.abs(rectangle_drift(result))
            print(
                f"| {case.name}, {formulation} | {summary['energy_drift_max']:.4f} "
                f"| {drift.max():.2f} at {result.time[drift.argmax()]:.3f} s "
                f"| {summary['newton_mean']:.2f} / {summary['newton_max']} | {summary['constraint_position_max']:.1e} |"
            )


def print_costs(stop: float, rounds: int, ways: dict[str, bool]) -> None:
    """Print what a step costs, the least of some runs, in compiled code or not."""
    print(f"\n| µs a step | {' | '.join(ways)} |\n| --- |{' --- |' * len(ways)}")
    for case in CASES:
        for formulation in FORMULATIONS:
            costs = []
            for compiled in ways.values():
                simulation = case.make(air_content=0.0).simulation(
                    formulation=formulation, step=1e-3, compiled=compiled
                )
                cost = min(_seconds(simulation, stop) for _ in range(rounds)) / (stop / STEP)
                costs.append(f"{1e6 * cost:.1f}")
            print(f"| {case.name}, {formulation} | {' | '.join(costs)} |")


def _seconds(simulation: Any, stop: float) -> float:
    """Return the processor time of a run that keeps its end only."""
    begin = time.process_time()
    simulation.run(stop, output_step=stop)
    return time.process_time() - begin


def main() -> None:
    """Draw all figures and print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="0.1 s instead of 10 s")
    parser.add_argument("--folder", type=Path, help="the documentation by default; with --quick none that is kept")
    arguments = parser.parse_args()
    folder = arguments.folder or (Path(tempfile.mkdtemp()) if arguments.quick else DOCS)
    stop, rounds = (0.1, 1) if arguments.quick else (10.0, 5)
    runs = {
        case.name: {
            formulation: case.make(air_content=0.0)
            .simulation(formulation=formulation, step=STEP, compiled=not arguments.quick)
            .run(stop)
            for formulation in FORMULATIONS
        }
        for case in CASES
    }
    for case in CASES:
        draw_positions(case, runs[case.name]["double-step"], folder)
        draw_motion(case, runs[case.name], folder)
        draw_energies(case, runs[case.name], folder)
    draw_violations(runs, folder)
    print_works(stop, ["friction"] if arguments.quick else CIRCUITS)
    print_runs(runs)
    print_costs(stop, rounds, {"interpreted": False} if arguments.quick else {"interpreted": False, "compiled": True})


if __name__ == "__main__":
    main()
