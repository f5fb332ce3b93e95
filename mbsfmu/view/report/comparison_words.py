"""Sentences and tables of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from mbsfmu.comparison import Comparison, Run
from mbsfmu.comparison.coupled_reference import CoupledReference
from mbsfmu.view.pages.blocks import paragraph, section, unfolded
from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.pages.formatted_quantity import NOTHING, number, percent, quantity, step_length
from mbsfmu.view.pages.html_table import Cell, key_value_table, table
from mbsfmu.view.plots.plot import grouped

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
