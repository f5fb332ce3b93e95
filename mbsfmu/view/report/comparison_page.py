"""Report of a comparison: cost of coupling and of the step, in sentences, tables and plots."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from mbsfmu.base.physical_units import NOTHING, number, percent, quantity, step_length
from mbsfmu.comparison import Comparison, Run
from mbsfmu.comparison.reference_run import CoupledReference
from mbsfmu.view.pages.page import (
    Cell,
    HtmlElement,
    answer,
    beside,
    csv_text,
    download,
    heading,
    key_value_table,
    paragraph,
    section,
    stack,
    table,
    unfolded,
)
from mbsfmu.view.plots.plot import Axis, Curve, Kind, Panel, Plot, grouped
from mbsfmu.view.report.report_sections import Circumstances, circuit_section, moving

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


_ALIKE = 1.05
"""Ratio of errors below which they are stated once: equal with two digits."""


def sentences(comparison: Comparison, ended: str) -> list[tuple[str, str]]:
    """Return the cost of coupling, the error of the step, the least expensive setting, and unknowns."""
    lost = [f"{algorithm} diverges at {steps}." for algorithm, steps in _diverged(comparison.runs).items()]
    told = [(ended, "bad"), (headline(comparison), ""), (" ".join(lost), "bad"), (comparison.step_verdict, "")]
    told += [(comparison.verdict if comparison.runs else "", ""), (comparison.same_runs_sentence, "soft")]
    told += [(_unknown(comparison), "soft")]
    return [(text, kind) for text, kind in told if text]


def headline(comparison: Comparison) -> str:
    """Return the coupling error at the smallest step, at best and at worst.

    Nothing where every run diverged, or nothing moves.
    """
    good = [run for run in comparison.runs if run.worst_error is not None and comparison.moves]
    if not good:
        return ""
    step = min(run.step for run in good)
    at_step = sorted((run for run in good if run.step == step), key=_worst)
    best, worst = at_step[0], at_step[-1]
    sentence = (
        f"Coupling costs {percent(_worst(best))} of the {_measure(comparison, best)} of an output at most "
        f"({worst_output(best)}) with {best.algorithm} and a communication step of {step_length(step)}"
    )
    if _worst(best) > 0 and (ratio := _worst(worst) / _worst(best)) > _ALIKE:
        times = number(ratio, 2)
        sentence += f"; with {worst.algorithm} it costs {percent(_worst(worst))}, {times} times as much"
    return f"{sentence}."


def _measure(comparison: Comparison, run: Run) -> str:
    return "magnitude" if worst_output(run) in comparison.reference.get("still", ()) else "range"


def energy_of_bonds(comparison: Comparison) -> list[HtmlElement]:
    """Return a table of the residual energy of each power bond, smallest step of each algorithm; nothing without."""
    step = min((run.step for run in comparison.runs), default=0.0)
    rows = [
        [
            bond,
            run.algorithm,
            quantity(energy.exchanged, "J"),
            quantity(energy.residual, "J"),
            quantity(energy.largest, "J"),
            percent(energy.share, 2),
        ]
        for run in comparison.runs
        if run.step == step
        for bond, energy in run.bonds.items()
    ]
    if not rows:
        return []
    caption = (
        f"Communication step {step_length(step)}. Residual: energy that the coupling has brought in (positive) or "
        "taken out at a bond by the end; largest: its magnitude over time, and as a share of the exchanged energy."
    )
    columns = ("bond", "algorithm", "exchanged", "residual at the end", "largest", "of the exchanged")
    return [section("Energy at each bond", table(columns, sorted(rows), caption, texts=(0, 1)))]


def _unknown(comparison: Comparison) -> str:
    steps = sorted({run.step for run in comparison.runs})
    told = f"at other steps than {', '.join(step_length(step) for step in steps)}, " if steps else ""
    stop = quantity(comparison.reference["stop"], "s")
    return (
        f"Not known: what coupling costs {told}with other inputs, or after {stop}; computing times are those of one "
        "machine."
    )


def _worst(run: Run) -> float:
    return run.worst_error or 0.0


def worst_output(run: Run) -> str:
    """Return the output with the largest error of a run; None if it diverged."""
    errors = {name: error for name, error in run.error.items() if error is not None}
    return max(errors, key=lambda name: errors[name], default="")


def _diverged(runs: Sequence[Run]) -> dict[str, str]:
    """Return the diverging steps of each algorithm."""
    lost: dict[str, list[float]] = {}
    for run in runs:
        if run.status != "ok":
            lost.setdefault(run.algorithm, []).append(run.step)
    return {name: " and ".join(step_length(step) for step in sorted(steps)) for name, steps in lost.items()}


def algorithms(comparison: Comparison) -> HtmlElement:
    """Return a table of the algorithms at the smallest step, the best one first."""
    step = min((run.step for run in comparison.runs), default=0.0)
    lost = _diverged(comparison.runs)
    shown = sorted(
        (run for run in comparison.runs if run.step == step), key=lambda run: (run.status != "ok", _worst(run))
    )
    rows = [
        [
            run.algorithm,
            Cell(percent(run.worst_error)) if run.status == "ok" else Cell(run.status, "bad"),
            worst_output(run) or NOTHING,
            percent(run.worst_total),
            number(comparison.order.get(run.algorithm)),
            Cell(lost.get(run.algorithm, "none of those run"), "bad" if run.algorithm in lost else ""),
        ]
        for run in shown
    ]
    columns = ("algorithm", "largest error", "of", comparison.total_label, "observed order", "diverges at")
    caption = (
        f"Communication step {step_length(step)}. The error of coupling is the largest deviation of an output from "
        f"the {comparison.label} run, in percent of its range"
        f"{_beside_coupling(comparison)}. Order: over all steps."
    )
    return table(columns, rows, caption, texts=(0, 2, 5))


def _beside_coupling(comparison: Comparison) -> str:
    """Return what else a table of errors has beside those of coupling."""
    found = comparison.coupled_reference
    if found is None:
        return "; with the step's: from the tight run"
    told = any(run.worst_inside is not None for run in comparison.runs)
    return ", with refined internal steps; with that inside: with the usual ones" if told else ""


def all_runs(comparison: Comparison) -> HtmlElement:
    """Return a table of all coupled runs, those that diverged with the reason."""
    rows: list[list[str | Cell]] = []
    for run in sorted(comparison.runs, key=lambda run: (run.algorithm, run.step)):
        line: list[str | Cell] = [run.algorithm, step_length(run.step)]
        if run.status == "ok":
            line += [Cell("ok", "good"), percent(run.worst_error), percent(run.worst_total)]
        else:
            line += [Cell(run.status, "bad"), Cell(run.message, span=2)]
        share = percent(run.energy_residual_share, 2)
        line += [quantity(run.energy_residual, "J"), share, grouped(run.steps)]
        line += [_per_second(run.cost), quantity(run.loading_seconds, "s")]
        rows.append(line)
    columns = ["algorithm", "step", "status", "largest error", comparison.total_label]
    columns += ["residual energy", "of the exchanged", "steps", "cost", "loading"]
    repeated = max((len(run.costs) for run in comparison.runs), default=0)
    caption = (
        "Residual energy: what the exchange of held values brings in or takes out, at most. Cost: processor time of "
        f"stepping per simulated second, the median of up to {repeated} repetitions made in turn where a run is "
        "accurate enough. Loading: processor time until the FMUs have made their first step."
    )
    return table(columns, rows, caption, texts=(0, 2))


def _per_second(cost: float | None) -> str:
    return NOTHING if cost is None else f"{quantity(cost, 's')}/s"


def errors_of_outputs(comparison: Comparison) -> HtmlElement:
    """Return a table for each step: the errors of all outputs with all algorithms, the largest first."""
    tables = []
    for place, step in enumerate(sorted({run.step for run in comparison.runs})):
        runs = [run for run in comparison.runs if run.step == step]
        columns = ["output", *(run.algorithm for run in runs), "step alone"]
        alone = comparison.reference.get("error", {})

        def largest(name: str, runs: Sequence[Run] = runs) -> float:
            return max((run.error.get(name) or 0.0 for run in runs), default=0.0)

        rows = [
            [name, *(percent(run.error.get(name)) for run in runs), percent(alone.get(name))]
            for name in sorted(comparison.outputs, key=largest, reverse=True)
        ]
        caption = (
            f"Largest error of the coupling in percent of the output's range; communication step {step_length(step)}."
        )
        summary = f"Error of each output, communication step {step_length(step)}"
        tables.append(unfolded(summary, table(columns, rows, caption), opened=place == 0))
    return section("Outputs", *tables)


def stability(comparison: Comparison) -> list[HtmlElement]:
    """Return the stability limit of each algorithm; nothing if not searched."""
    if not comparison.stability:
        return []
    rows = [
        [name, step_length(limit.stable), step_length(limit.diverging)] for name, limit in comparison.stability.items()
    ]
    caption = (
        "Found by bisection: a run is stable that does not break off and stays within the range of the "
        f"{comparison.label} run. A dash: no such step was found."
    )
    return [section("Stability", table(("algorithm", "stable up to", "diverges from"), rows, caption))]


def reference(comparison: Comparison) -> HtmlElement:
    """Return the reference run with its cost, and its error in each output."""
    told = comparison.reference
    if comparison.coupled_reference is not None:
        return _coupled_reference(comparison, comparison.coupled_reference)
    known = {
        "step": step_length(told["step"]),
        "simulated time": quantity(told["stop"], "s"),
        "Newton iterations a step, mean / most": f"{number(told['newton_mean'])} / {told['newton_max']}",
        "largest energy drift": quantity(told["energy_drift_max"], "J"),
        "actuator work, least": quantity(told["actuator_work_min"], "J"),
        "actuator work, greatest": quantity(told["actuator_work_max"], "J"),
        "computing time": quantity(told["wall_seconds"], "s"),
        "processor time per simulated second": quantity(told["cost"], "s"),
    }
    parts = [key_value_table(known)]
    tight = comparison.tight
    if tight.solver:
        errors = {name: error or 0.0 for name, error in told["error"].items()}
        rows = [
            [name, percent(told["error"][name]), percent(tight.uncertainty.get(name), 2)]
            for name in sorted(errors, key=lambda name: -errors[name])
        ]
        caption = (
            f"Largest deviation of the monolithic run from {tight.formulation} with {tight.solver} and a tolerance of "
            f"{number(tight.tolerance)}, in percent of the output's range. Known to: how far that run is from one with "
            "ten times the tolerance."
        )
        parts.append(unfolded("What the step costs", table(("output", "cost of the step", "known to"), rows, caption)))
    return section("The monolithic reference", *parts)


def _coupled_reference(comparison: Comparison, found: CoupledReference) -> HtmlElement:
    """Return the reference run of FMUs with the error of each output."""
    told = comparison.reference
    known = {
        "algorithm": found.algorithm,
        "step": step_length(found.step),
        "simulated time": quantity(told["stop"], "s"),
        "processor time per simulated second": quantity(found.cost, "s"),
        "processor time of all runs for it": quantity(found.cpu_seconds, "s"),
    }
    rows = [[name, percent(error, 2)] for name, error in sorted(found.uncertainty.items(), key=lambda each: -each[1])]
    caption = (
        "Error of the reference itself in percent of the output's range: by how much the output changed where the step "
        "was halved, over the ratio of the last two changes less one."
    )
    parts = [key_value_table(known), unfolded("How good it is", table(("output", "good to about"), rows, caption))]
    if comparison.left_out:
        parts.append(
            paragraph(
                f"Not compared, because they are discrete and jump at other times in each run: "
                f"{', '.join(comparison.left_out)}.",
                "soft",
            )
        )
    return section("The reference", *parts)


def comparison_page(comparison: Comparison, circumstances: Circumstances) -> tuple[str, HtmlElement]:
    """Return title and content of the report of a comparison."""
    title = f"{comparison.model}: what coupling costs"
    formulation = f"formulation {comparison.formulation}" if comparison.formulation else ""
    about = ", ".join(filter(None, (comparison.description, formulation)))
    compared = "coupled FMUs compared with the same model as one system"
    if comparison.coupled_reference is not None:
        compared = "compared with a coupled run of small steps, for there is no model"
    content = stack(
        heading(title),
        paragraph(f"{about}; {compared}", "soft"),
        answer(sentences(comparison, circumstances.ended)),
        *circumstances.warning_notes(),
        *moving(
            comparison.animate,
            f"{comparison.label.capitalize()}; ghosts are the coupled runs of the largest step that did not diverge.",
        ),
        *circumstances.live_machine(),
        section("Algorithms", algorithms(comparison)),
        *error_over_step(comparison),
        *outputs_over_time(comparison),
        *circuit_section(comparison.machine, comparison.reference_run, label=comparison.label),
        *energy_over_time(comparison),
        *energy_of_bonds(comparison),
        *error_over_cost(comparison),
        errors_of_outputs(comparison),
        section("All coupled runs", all_runs(comparison)),
        *stability(comparison),
        reference(comparison),
        _downloads(comparison),
        circumstances.provenance(),
    )
    return title, content


def _downloads(comparison: Comparison) -> HtmlElement:
    rows = comparison.rows
    return section(
        "Numbers",
        beside(
            download("All numbers, JSON", f"{comparison.model}.json", comparison.to_dict()),
            download(
                "Coupled runs, CSV", f"{comparison.model}-runs.csv", csv_text(list(rows[0]) if rows else [], rows)
            ),
        ),
    )
