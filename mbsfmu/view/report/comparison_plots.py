"""Plots of a comparison: errors over step and cost, outputs and errors over time."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from mbsfmu.comparison import Comparison, Run
from mbsfmu.view.pages.blocks import paragraph, section, unfolded
from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.pages.formatted_quantity import percent
from mbsfmu.view.plots.curve import Curve, Kind
from mbsfmu.view.plots.plot import Axis, Panel, Plot

_POINTS = 200_000  # of all curves over time, so that a report stays small
_OPENED = 2  # outputs that are open at first


def error_over_step(comparison: Comparison) -> list[HtmlElement]:
    """Return a plot of the largest error over the communication step; nothing without motion."""
    if not comparison.moves:
        return []
    steps = sorted({run.step for run in comparison.runs})
    curves = [
        Curve.through(_ordered(comparison, name), points, Kind.MARKED)
        for name in comparison.order
        if (points := sorted((run.step, 100.0 * run.worst_error) for run in _of(comparison, name) if run.worst_error))
    ]
    if not curves:
        return []
    curves += _bounds(comparison, steps, "cost of the step alone")
    axis = Axis("communication step", "s", logarithmic=True, ticks=tuple(steps))
    plot = Plot(
        "Error over communication step", (Panel("largest error of the coupling", "%", tuple(curves), True),), axis
    )
    return [section("Error over communication step", plot.element())]


def error_over_cost(comparison: Comparison) -> list[HtmlElement]:
    """Return a plot of the largest error over the cost of steps; nothing without motion."""
    curves = [
        Curve.through(name, points, Kind.MARKED)
        for name in comparison.order
        if (
            points := sorted(
                (1e3 * run.cost, 100.0 * run.judged) for run in _of(comparison, name) if run.cost and run.judged
            )
        )
    ]
    if not curves or not comparison.moves:
        return []
    times = sorted(float(x) for curve in curves for x in curve.x)
    wanted = Curve.of("wanted", (times[0], times[-1]), [100.0 * comparison.accuracy] * 2, Kind.BOUND)
    judged = "error of coupling and step" if comparison.tight.solver else "error of the coupling"
    panel = Panel(f"largest {judged}", "%", (*curves, wanted), True)
    axis = Axis(
        "processor time per simulated second", "ms/s", logarithmic=True, ticks=_round_numbers(times[0], times[-1])
    )
    plot = Plot("Error over cost", (panel,), axis)
    told = paragraph("Processor time of stepping; loading the FMUs comes on top, once.", "soft")
    return [section("Error over cost", plot.element(), told)]


def _round_numbers(low: float, high: float) -> tuple[float, ...]:
    """Return 1, 2 and 5 times the powers of ten in a range of positive numbers."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    return tuple(float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5))


def _bounds(comparison: Comparison, steps: Sequence[float], label: str) -> list[Curve]:
    """Return a line at the error of the step alone, if known."""
    known = [error for error in comparison.reference.get("error", {}).values() if error]
    ends = (steps[0], steps[-1])
    return [Curve.of(label, ends, [100.0 * max(known)] * 2, Kind.BOUND)] if known and len(steps) > 1 else []


def _of(comparison: Comparison, algorithm: str) -> list[Run]:
    return [run for run in comparison.runs if run.algorithm == algorithm and run.status == "ok"]


def _ordered(comparison: Comparison, algorithm: str) -> str:
    order = comparison.order[algorithm]
    return algorithm if order is None else f"{algorithm}: order {order:.2f}"


def outputs_over_time(comparison: Comparison) -> list[HtmlElement]:
    """Return plots of each output, reference and coupled runs, and their differences, the largest errors first."""
    shown = _finest(comparison.runs)
    if not shown:
        return []
    share = _POINTS // max(len(comparison.outputs), 1)

    def largest(name: str) -> float:
        return max((run.error.get(name) or 0.0 for run in shown), default=0.0)

    parts = []
    for place, name in enumerate(sorted(comparison.outputs, key=largest, reverse=True)):
        unit = comparison.outputs[name]
        runs = [run for run in shown if name in run.curves.outputs]
        whole = comparison.reference_run
        low, high = float(whole[name].min()), float(whole[name].max())
        beyond = max(high - low, 1e-9 * max(abs(low), abs(high)))
        reference = Curve.of(comparison.label, whole.time, whole[name], Kind.REFERENCE)
        curves = (reference, *(run.curves.outputs[name] for run in runs))
        off = tuple(run.curves.deviations[name] for run in runs)
        panels = (
            Panel(name, unit, curves, limits=(low - beyond, high + beyond)),
            Panel(f"coupled − {comparison.label}", unit, off, limits=(-beyond, beyond)),
        )
        told = f": off by {percent(largest(name), 2)} at most" if largest(name) else ""
        made = Plot(name, panels, group="time", most=share).element()
        parts.append(unfolded(f"{name}{told}", made, opened=place < _OPENED))
    words = "The smallest step of each algorithm; runs that broke off are drawn as far as they came"
    if any(run.status != "ok" for run in shown):
        words += ", and what is off by more than the range of an output leaves its panel"
    return [section("Outputs over time", paragraph(f"{words}.", "soft"), *parts)]


def energy_over_time(comparison: Comparison) -> list[HtmlElement]:
    """Return a plot of the residual coupling energy over time; nothing without power bonds."""
    curves = [run.curves.energy_residual for run in _finest(comparison.runs)]
    drawn = tuple(curve for curve in curves if curve is not None)
    if not drawn:
        return []
    plot = Plot("Residual energy", (Panel("residual energy", "J", drawn),), group="time", most=_POINTS // 10)
    told = paragraph(
        "Energy that the exchange of held values brings in (positive) or takes out; smallest step of each algorithm.",
        "soft",
    )
    return [section("Energy at the coupling", plot.element(), told)]


def _finest(runs: Sequence[Run]) -> list[Run]:
    """Return the run of each algorithm with the smallest step."""
    finest = min((run.step for run in runs), default=0.0)
    return [run for run in runs if run.step == finest]
