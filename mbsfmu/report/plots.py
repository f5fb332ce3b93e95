"""Plots of a comparison as SVG, in colours that suit a light and a dark page."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

REFERENCE = "#6b7280"
COLOURS = ("#2563eb", "#d97706", "#059669", "#c026d3", "#dc2626", "#0891b2")
_INK = "#808793"  # grey that is readable on white and on black


def _figure(rows: int, height: float, ratios: Sequence[float] | None = None) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(8.0, height), layout="constrained")
    FigureCanvasSVG(figure)
    figure.patch.set_alpha(0.0)
    axes = np.atleast_1d(figure.subplots(rows, 1, sharex=rows > 1, height_ratios=ratios))
    for axis in axes:
        axis.patch.set_alpha(0.0)
        axis.grid(color=_INK, alpha=0.25, linewidth=0.6)
        axis.tick_params(which="both", colors=_INK, labelsize=9)
        for spine in axis.spines.values():
            spine.set_color(_INK)
            spine.set_alpha(0.5)
        axis.xaxis.label.set_color(_INK)
        axis.yaxis.label.set_color(_INK)
    return figure, list(axes)


def _svg(figure: Figure, axes: Sequence[Axes]) -> str:
    if axes[0].get_legend_handles_labels()[0]:
        legend = axes[0].legend(fontsize=8, frameon=False, ncols=2, loc="best")
        for text in legend.get_texts():
            text.set_color(_INK)
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]


def _colour(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def over_time(time: Sequence[float], signals: Mapping[str, Sequence[float]], name: str, unit: str) -> str:
    """Return a signal of the monolithic run and of coupled runs over time, and below it their difference.

    Parameters
    ----------
    time
        In s; coupled signals may be shorter where a run diverged.
    signals
        `monolithic` and one per coupled run.
    name, unit
        Of the signal.
    """
    figure, axes = _figure(2, 4.6, (3, 2))
    grid, reference = np.array(time), np.array(signals["monolithic"])
    axes[0].plot(grid, reference, color=REFERENCE, linewidth=3.0, alpha=0.55, label="monolithic")
    spread = float(np.ptp(reference)) or 1.0
    axes[0].set_ylim(reference.min() - 0.15 * spread, reference.max() + 0.15 * spread)
    coupled = {key: values for key, values in signals.items() if key != "monolithic"}
    for index, (label, values) in enumerate(coupled.items()):
        count = len(values)
        axes[0].plot(grid[:count], values, color=_colour(index), linewidth=1.0, label=label)
        axes[1].plot(grid[:count], np.array(values) - reference[:count], color=_colour(index), linewidth=1.0)
    axes[0].set_ylabel(f"{name} [{unit}]")
    axes[1].set_ylabel(f"difference [{unit}]")
    axes[1].set_xlabel("time [s]")
    return _svg(figure, axes)


def total_error(run: Mapping[str, Any]) -> float | None:
    """Return the largest error of coupling and step together; None where that is not known."""
    return max((error for error in run["error_total"].values() if error is not None), default=None)


def error_over_step(
    runs: Sequence[Mapping[str, Any]], order: Mapping[str, float | None], cost_of_step: float | None
) -> str:
    """Return the largest error of the coupling over the communication step, with the observed order in the legend.

    A line marks what the step costs by itself, where that is known.
    """
    figure, axes = _figure(1, 4.2)
    axis = axes[0]
    for index, (algorithm, slope) in enumerate(order.items()):
        points = sorted(
            (run["step"], max(run["error"].values()))
            for run in runs
            if run["algorithm"] == algorithm and run["status"] == "ok"
        )
        if not points:
            continue
        steps, errors = zip(*points, strict=True)
        label = algorithm if slope is None else f"{algorithm}: order {slope:.2f}"
        axis.loglog(steps, errors, "o-", color=_colour(index), linewidth=1.6, markersize=5, label=label)
    if cost_of_step:
        axis.axhline(cost_of_step, color=REFERENCE, linewidth=1.2, linestyle="--", label="cost of the step")
    axis.set_xlabel("communication step [s]")
    axis.set_ylabel("largest relative error")
    axis.grid(visible=True, which="minor", color=_INK, alpha=0.12, linewidth=0.5)
    return _svg(figure, axes)


def error_over_cost(runs: Sequence[Mapping[str, Any]], order: Mapping[str, float | None], accuracy: float) -> str:
    """Return the largest relative error over the processor time of a run in s; a line marks the wanted accuracy.

    The error is that of coupling and step together, or of the coupling alone where only that is known.
    """
    figure, axes = _figure(1, 4.2)
    axis = axes[0]
    for index, algorithm in enumerate(order):
        points = sorted(
            (run["cpu_seconds"], total_error(run) or max(run["error"].values()))
            for run in runs
            if run["algorithm"] == algorithm and run["status"] == "ok"
        )
        if points:
            axis.loglog(*zip(*points, strict=True), "o-", color=_colour(index), linewidth=1.6, label=algorithm)
    axis.axhline(accuracy, color=REFERENCE, linewidth=1.2, linestyle="--", label="wanted accuracy")
    axis.set_xlabel("processor time [s]")
    axis.set_ylabel("largest relative error")
    axis.grid(visible=True, which="minor", color=_INK, alpha=0.12, linewidth=0.5)
    return _svg(figure, axes)


def energy_over_time(time: Sequence[float], residuals: Mapping[str, Sequence[float]]) -> str:
    """Return the residual energy of the coupling over time in J."""
    figure, axes = _figure(1, 3.4)
    for index, (label, values) in enumerate(residuals.items()):
        axes[0].plot(time[: len(values)], values, color=_colour(index), linewidth=1.2, label=label)
    axes[0].set_xlabel("time [s]")
    axes[0].set_ylabel("residual energy [J]")
    return _svg(figure, axes)
