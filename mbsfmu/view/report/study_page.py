"""Reports of studies and fits: points and their results; parameters with intervals, residuals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.analysis.fitting import FitResult
from mbsfmu.analysis.residuals import FitSignal
from mbsfmu.base.errors import InputError
from mbsfmu.base.physical_units import number, percent, quantity, step_length
from mbsfmu.studies import StudyResult
from mbsfmu.view.pages.page import (
    Cell,
    HtmlElement,
    answer,
    as_sentence,
    beside,
    csv_text,
    download,
    heading,
    paragraph,
    section,
    stack,
    table,
    unfolded,
)
from mbsfmu.view.plots.plot import COLOURS, Axis, Curve, Kind, Panel, Plot, grouped
from mbsfmu.view.report.report_sections import Circumstances

Floats = NDArray[np.float64]
_FINAL, _KINDS = "final.", {"ok": "good", "diverged": "bad", "failed": "bad"}
_SHOWN = 8  # outputs that are drawn
_ROUND_OFF = 1e-12  # final values that are no larger are nothing but that
_DRAWN = 4  # outputs and parameters of samples that are drawn
_INTERVALS = 8  # of a parameter, of which the main effect has a mean each
_LEAST_SAMPLES = 10  # of which a correlation says something
_MOST_ROWS = 400  # of the table of points


def study_page(study: StudyResult, circumstances: Circumstances) -> tuple[str, HtmlElement]:
    """Return title and content of the report of a study."""
    rows, model = study.rows, study.model
    varied = study.varied
    title = f"{model}: {len(rows)} {'point' if len(rows) == 1 else 'points'}"
    content = stack(
        heading(title),
        paragraph(f"over {', '.join(varied) or 'nothing'}", "soft"),
        answer(_sentences(study, rows, varied)),
        *circumstances.warning_notes(),
        *(_influences(study, rows, varied) if study.sampled else _plots(study, rows, varied)),
        *_ranges(study, rows, varied),
        *_failures(study, rows, varied),
        _points(study, rows, varied),
        section(
            "Numbers",
            beside(
                download("All points, CSV", f"{model}-points.csv", csv_text(list(study), rows)),
                download("All points, JSON", f"{model}-points.json", {"rows": rows}),
            ),
        ),
        circumstances.provenance(),
    )
    return title, content


def _sentences(study: StudyResult, rows: Sequence[dict[str, Any]], varied: Sequence[str]) -> list[tuple[str, str]]:
    counts = Counter(row["status"] for row in rows)
    good = counts["ok"]
    told = [f"{grouped(good)} of {grouped(len(rows))} points ran to the end"]
    told += [f"{grouped(count)} {status}" for status, count in counts.items() if status != "ok"]
    sentences = [(f"{', '.join(told)}.", "" if good == len(rows) else "bad" if not good else "warn")]
    for message, count in Counter(row["message"] for row in rows if row["message"]).most_common(3):
        sentences.append((message if count == 1 else f"{grouped(count)} times: {message}", "bad"))
    errors = [row for row in rows if row.get("error") is not None and row["status"] == "ok"]
    if errors:
        best, worst = (pick(errors, key=lambda row: row["error"]) for pick in (min, max))
        sentences.append(
            (
                f"Coupling costs {percent(best['error'])} of the range of an output at least "
                f"({_where(study, best, varied)}) and {percent(worst['error'])} at most "
                f"({_where(study, worst, varied)}).",
                "",
            )
        )
    elif final := _most_varied(study, rows):
        name, low, high = final[0]
        unit = study.unit(name)
        sentences.append(
            (
                f"At the end {name.removeprefix(_FINAL)} is between {quantity(low[name], unit)} "
                f"({_where(study, low, varied)}) and {quantity(high[name], unit)} ({_where(study, high, varied)}).",
                "",
            )
        )
    unknown = "Not known: what is between the points and beyond them"
    if not errors:
        unknown += ", and how far each run is from the exact solution"
    return [*sentences, (f"{unknown}.", "soft")]


def _where(study: StudyResult, row: dict[str, Any], varied: Sequence[str]) -> str:
    return ", ".join(f"{name} {_shown(row[name], study.unit(name))}" for name in varied) or "the one point"


def _shown(value: Any, unit: str) -> str:
    if isinstance(value, float):
        return step_length(value) if unit == "s" else quantity(value, unit, 5)
    return "–" if value is None else str(value)


def _most_varied(
    study: StudyResult, rows: Sequence[dict[str, Any]]
) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return the varying final values, with the points of the least and the greatest; the most variable first."""
    good = [row for row in rows if row["status"] == "ok"]
    found = []
    for name in (name for name in study if name.startswith(_FINAL)):
        told = [row for row in good if isinstance(row.get(name), float) and np.isfinite(row[name])]
        if len({row[name] for row in told}) > 1 and max(abs(row[name]) for row in told) > _ROUND_OFF:
            low, high = (pick(told, key=lambda row: row[name]) for pick in (min, max))
            found.append((name, low, high))
    return sorted(found, key=lambda each: -_spread(*each))


def _spread(name: str, low: dict[str, Any], high: dict[str, Any]) -> float:
    """Return the range of a final value relative to its magnitude."""
    return (high[name] - low[name]) / max(abs(high[name]), abs(low[name]))


def _ranges(study: StudyResult, rows: Sequence[dict[str, Any]], varied: Sequence[str]) -> list[HtmlElement]:
    found = _most_varied(study, rows)
    if not found:
        return []
    lines = [
        [
            name.removeprefix(_FINAL),
            quantity(low[name], study.unit(name)),
            _where(study, low, varied),
            quantity(high[name], study.unit(name)),
            _where(study, high, varied),
        ]
        for name, low, high in found
    ]
    made = table(
        ("output", "least", "at", "greatest", "at"), lines, "Final values, those that vary most first.", texts=(0, 2, 4)
    )
    return [section("Final values", made)]


def _influences(study: StudyResult, rows: Sequence[dict[str, Any]], varied: Sequence[str]) -> list[HtmlElement]:
    """Return the distribution of final values, and Spearman's rank correlation with each numeric parameter."""
    good = [row for row in rows if row["status"] == "ok"]
    names = [name for name in varied if all(isinstance(row[name], (int, float)) for row in good)]
    varying = [name for name, *_ in _most_varied(study, good)]
    found = varying[:_SHOWN]
    if len(good) < _LEAST_SAMPLES or not found:
        return []
    spread, related = [], []
    for name in found:
        told = [row for row in good if isinstance(row.get(name), float) and np.isfinite(row[name])]
        values = [row[name] for row in told]
        called, unit = name.removeprefix(_FINAL), study.unit(name)
        spread.append([called, *(quantity(float(each), unit) for each in np.quantile(values, (0.05, 0.5, 0.95)))])
        related.append([called, *(_correlation(values, [row[each] for row in told]) for each in names)])
    shown = f" The {len(found)} outputs of {len(varying)} that vary most." if len(varying) > len(found) else ""
    caption = f"Spearman's rank correlation: 1 rises and -1 falls with the parameter, 0 does neither.{shown}"
    values_of = f"Final values of all samples.{shown}"
    return [
        section(
            "Distribution",
            table(("output", "5 %", "median", "95 %"), spread, values_of),
            *(_histogram(name, study, good) for name in found[:_DRAWN]),
        ),
        *_indices(study, found),
        section(
            "Influence of the parameters",
            table(("output", *names), related, caption),
            *(_scatter(each, found[:_DRAWN], study, good) for each in names[:_DRAWN] if _varies(good, each)),
        ),
    ]


def _varies(rows: Sequence[dict[str, Any]], name: str) -> bool:
    return len({row[name] for row in rows}) > 1


def _values(rows: Sequence[dict[str, Any]], *names: str) -> Floats:
    """Return finite values of columns together, shape (number of names, k)."""
    told = [[row.get(name) for name in names] for row in rows]
    table = np.array([row for row in told if all(isinstance(each, (int, float)) for each in row)], dtype=float)
    table = table.reshape(-1, len(names))
    return table[np.isfinite(table).all(axis=1)].T


def _histogram(name: str, study: StudyResult, rows: Sequence[dict[str, Any]]) -> HtmlElement:
    """Return how many final values lie in equal intervals."""
    (values,) = _values(rows, name)
    counts, edges = np.histogram(values, bins="sturges")
    called = name.removeprefix(_FINAL)
    steps = Curve.of("points", np.repeat(edges, 2), np.concatenate([[0.0], np.repeat(counts, 2), [0.0]]))
    over = Axis(called, study.unit(name))
    return Plot(f"distribution of {called}", (Panel(f"points by {called}", "1", (steps,)),), over).element()


def _scatter(parameter: str, outputs: Sequence[str], study: StudyResult, rows: Sequence[dict[str, Any]]) -> HtmlElement:
    """Return final values over a parameter, and its main effect: their mean in intervals of as many points each."""
    panels = []
    for name in outputs:
        x, y = _values(rows, parameter, name)
        order = np.argsort(x, kind="stable")
        x, y = x[order], y[order]
        parts = np.array_split(np.arange(len(x)), min(_INTERVALS, len(x)))
        means = [(float(x[part].mean()), float(y[part].mean())) for part in parts]
        curves = Curve.of("points", x, y, Kind.POINTS), Curve.through("main effect", means, Kind.MARKED)
        panels.append(Panel(name.removeprefix(_FINAL), study.unit(name), curves))
    return Plot(f"over {parameter}", tuple(panels), Axis(parameter, study.unit(parameter))).element()


def _indices(study: StudyResult, names: Sequence[str]) -> list[HtmlElement]:
    """Return Sobol indices where the samples are for them."""
    try:
        found = study.sobol_indices(*names)
    except InputError:  # of other samples, or without SALib
        return []
    lines: list[list[str | Cell]] = []
    for each in found:
        numbers = zip(each.parameters, each.first, each.first_error, each.total, each.total_error, strict=True)
        for parameter, first, first_error, total, total_error in numbers:
            called = each.output.removeprefix(_FINAL)
            lines.append([called, parameter, f"{first:.3f} ± {first_error:.3f}", f"{total:.3f} ± {total_error:.3f}"])
    caption = "Share of the variance that a parameter has alone (first order), and with the others (total); ± 95 %."
    left_out = found[0].left_out
    if left_out:
        caption += f" {left_out} of {left_out + found[0].samples} base samples are left out, as a run of them failed."
    return [
        section("Sobol indices", table(("output", "parameter", "first order", "total"), lines, caption, texts=(0, 1)))
    ]


def _failures(study: StudyResult, rows: Sequence[dict[str, Any]], varied: Sequence[str]) -> list[HtmlElement]:
    """Return where points failed: the ranges of numeric parameters that these have, beside those of all points."""
    failed = [row for row in rows if row["status"] != "ok"]
    names = [name for name in varied if all(isinstance(row[name], (int, float)) for row in rows)]
    if not failed or len(failed) == len(rows) or not names:
        return []

    def bounds(name: str, among: Sequence[dict[str, Any]]) -> list[str]:
        values = [float(row[name]) for row in among]
        return [_shown(min(values), study.unit(name)), _shown(max(values), study.unit(name))]

    lines: list[list[str | Cell]] = [[name, *bounds(name, rows), *bounds(name, failed)] for name in names]
    heads = ("parameter", "least of all", "greatest of all", "least that failed", "greatest that failed")
    caption = f"{grouped(len(failed))} of {grouped(len(rows))} points did not run to the end."
    return [section("Failures", table(heads, lines, caption))]


def _correlation(values: Sequence[float], parameters: Sequence[float]) -> str:
    from scipy import stats  # noqa: PLC0415 - takes long to load

    return "–" if len(set(parameters)) < 2 else f"{stats.spearmanr(values, parameters).statistic:.2f}"


def _plots(study: StudyResult, rows: Sequence[dict[str, Any]], varied: Sequence[str]) -> list[HtmlElement]:
    """Return plots over the first numeric parameter or setting; nothing without one."""
    axis = next((name for name in varied if all(isinstance(value, (int, float)) for value in study.axes[name])), None)
    if axis is None:
        return []
    drawn = [("error", 100.0, "%")] if any(row.get("error") is not None for row in rows) else []
    drawn += [(name, 1.0, study.unit(name)) for name, *_ in _most_varied(study, rows)[:_SHOWN]]
    others = [name for name in varied if name != axis]
    families = list(product(*(study.axes[name] for name in others)))
    panels = []
    for name, factor, unit in drawn:
        curves = []
        for family in families[:COLOURS]:
            told = sorted(
                (row[axis], factor * row[name])
                for row in rows
                if row["status"] == "ok"
                and row.get(name) is not None
                and [row[each] for each in others] == list(family)
            )
            if told:
                label = ", ".join(_labelled(study, each, value) for each, value in zip(others, family, strict=True))
                curves.append(
                    Curve.through(label or ("coupled" if name == "error" else "at the end"), told, Kind.MARKED)
                )
        called = "largest error of the coupling" if name == "error" else name.removeprefix(_FINAL)
        panels.append(Panel(called, unit, tuple(curves), name == "error"))
    panels = [panel for panel in panels if panel.curves]
    if not panels:
        return []
    values = sorted(study.axes[axis])
    ticks = tuple(map(float, values)) if len(values) <= 12 else ()
    over = Axis(axis, study.unit(axis), axis == "step" and len(values) > 2, ticks)
    left = len(families) - COLOURS
    told = (
        [paragraph(f"{left} more combinations of the other values are in the table alone.", "soft")] if left > 0 else []
    )
    return [section(f"Over {axis}", Plot(f"{axis} varied", tuple(panels), over).element(), *told)]


def _labelled(study: StudyResult, name: str, value: Any) -> str:
    return f"{name} {_shown(value, study.unit(name))}" if isinstance(value, float) else str(value)


def _points(study: StudyResult, rows: Sequence[dict[str, Any]], varied: Sequence[str]) -> HtmlElement:
    told = [name for name in ("error", "energy_residual_max", "energy_drift_max", "cpu_seconds") if name in list(study)]
    ordered = sorted(rows, key=lambda row: row["status"] == "ok")
    lines: list[list[str | Cell]] = []
    for row in ordered[:_MOST_ROWS]:
        line: list[str | Cell] = [_shown(row[name], study.unit(name)) for name in varied]
        line.append(Cell(row["status"], _KINDS.get(row["status"], "")))
        if row["message"] or not told:
            line.append(Cell(row["message"], span=max(len(told), 1)))
        else:
            line += [percent(row[name]) if name == "error" else quantity(row[name], study.unit(name)) for name in told]
        lines.append(line)
    names = {"error": "largest error", "cpu_seconds": "processor time", "energy_drift_max": "largest energy drift"}
    names["energy_residual_max"] = "largest residual energy"
    heads = [*varied, "status", *([names[name] for name in told] or ["why"])]
    caption = "Those that did not run to the end come first." if any(row["message"] for row in rows) else ""
    if len(lines) < len(rows):
        caption += f" {number(len(lines))} of {grouped(len(rows))} points; the files below have all."
    made = table(heads, lines, caption, texts=range(len(varied) + 1))
    return section("Points", unfolded(f"All {len(rows)} points", made, opened=len(rows) <= 40))


_TOLD = 3
"""Parameters that are told at the top of the page."""
_OPENED = 3
"""Signals that are open at first."""
_HIGH, _ALIKE = 0.9, 0.99
"""Correlations from which on two parameters are hard to tell apart, and hardly at all."""
_BAND = 2.0
"""Standard deviations between which 95 % of the residuals of normal noise lie."""


def fit_page(result: FitResult, circumstances: Circumstances) -> tuple[str, HtmlElement]:
    """Return title and content of the report of a fit."""
    name = "model" if result.model is None else result.model.name
    count = len(result.names)
    title = f"{name}: {count} fitted {'parameter' if count == 1 else 'parameters'}"
    samples = sum(len(each.times) for each in result.signals)
    experiments = len({each.experiment for each in result.signals})
    made = "1 experiment" if experiments == 1 else f"{experiments} experiments"
    data = f"{samples} values of {len(result.signals)} signals in {made}"
    content = stack(
        heading(title),
        paragraph(f"{data}; {result.runs} runs", "soft"),
        answer(_fit_sentences(result)),
        *circumstances.warning_notes(),
        section("Parameters", _parameters(result)),
        *_parameter_correlation(result),
        section("Measured and fitted", *_signals(result)),
        section("Residuals", _residuals(result), _quantiles(result)),
        section("Numbers", beside(*_downloads(result, name))),
        circumstances.provenance(),
    )
    return title, content


def _fit_sentences(result: FitResult) -> list[tuple[str, str]]:
    """Return the first parameters with their intervals, and undetermined ones, in words."""
    told = []
    for place, (name, unit) in enumerate(zip(result.names, result.units, strict=True)):
        if place < _TOLD:
            told.append(f"{name} = {quantity(float(result.values[place]), unit, 4)}, {_interval(result, place)}")
    left = len(result.names) - len(told)
    more = f"; {left} more below" if left > 0 else ""
    sentences = [(f"{'; '.join(told)}{more}.", "")]
    sentences += [(as_sentence(each), "warn") for each in result.sentences]
    unknown = "Not known: whether another model would follow the data as well; intervals hold where residuals are noise"
    return [*sentences, (f"{unknown}.", "soft")]


def _interval(result: FitResult, place: int) -> str:
    low, high, unit = float(result.lower[place]), float(result.upper[place]), result.units[place]
    if not np.isfinite([low, high]).all():
        return "of which the data do not say how far it is off"
    return f"between {quantity(low, unit, 4)} and {quantity(high, unit, 4)} with 95 %"


def _parameters(result: FitResult) -> HtmlElement:
    rows: list[list[str | Cell]] = []
    for place, (name, unit) in enumerate(zip(result.names, result.units, strict=True)):
        value, deviation = float(result.values[place]), float(result.deviations[place])
        known = np.isfinite(deviation)
        ends = (float(result.lower[place]), float(result.upper[place]))
        interval = f"{quantity(ends[0], unit, 5)} to {quantity(ends[1], unit, 5)}" if known else "none"
        share = percent(deviation / abs(value), 2) if known and value else "–"
        shift = float(result.step_errors.shifts[place])
        shifted = quantity(shift, unit, 2) if np.isfinite(shift) else "not known"
        rows.append([name, quantity(value, unit, 6), Cell(interval, "" if known else "bad"), share, shifted])
    heads = ("parameter", "value", "95 % interval", "standard deviation", "shift by steps")
    steps = " and ".join(result.step_errors.steps)
    caption = f"Intervals by the linearization at the fit, Student's t. Shift: by the error of {steps}."
    return table(heads, rows, caption)


def _parameter_correlation(result: FitResult) -> list[HtmlElement]:
    """Return the correlations of the parameters; nothing of one alone."""
    if len(result.names) < 2:
        return []
    rows: list[list[str | Cell]] = []
    for place, name in enumerate(result.names):
        cells = [
            _correlated(float(each)) if other < place else Cell("")
            for other, each in enumerate(result.correlation[place])
        ]
        rows.append([name, *cells[:-1]])
    caption = "±1: the data tell a combination of the two, and not each; –: the data say nothing of one of them."
    made = table(("", *result.names[:-1]), rows[1:], caption)
    return [section("Correlation", made)]


def _correlated(value: float) -> Cell:
    size = abs(value)
    kind = "bad" if size > _ALIKE else "warn" if size > _HIGH else ""
    return Cell(number(value, 4) if np.isfinite(value) else "–", kind)


def _signals(result: FitResult) -> list[HtmlElement]:
    """Return each measured signal over the fitted one, with the residual below."""
    parts = []
    for place, each in enumerate(result.signals):
        left = each.measured - each.fitted
        ends = each.times[[0, -1]]
        panels = (
            Panel(
                each.output,
                each.unit,
                (
                    Curve.of("measured", each.times, each.measured, Kind.POINTS),
                    Curve.of("fitted", each.times, each.fitted),
                ),
            ),
            Panel(
                "measured − fitted",
                each.unit,
                (
                    Curve.of("residual", each.times, left, Kind.POINTS),
                    *(
                        Curve.of(f"{sign}2 σ", ends, [size * _BAND * each.noise] * 2, Kind.BOUND)
                        for sign, size in (("+", 1.0), ("−", -1.0))
                    ),
                ),
            ),
        )
        plot = Plot(f"{each.experiment}, {each.output}", panels, group=each.experiment).element()
        parts.append(unfolded(f"{each.experiment}: {each.output}", plot, opened=place < _OPENED))
    return parts


def _residuals(result: FitResult) -> HtmlElement:
    rows = []
    for each in result.signals:
        left = each.measured - each.fitted
        outside = float(np.mean(np.abs(left) > _BAND * each.noise))
        extent = float(np.std(each.measured))
        described = percent(1.0 - float(np.mean(left**2)) / extent**2, 4) if extent else "–"
        rows.append(
            [
                each.experiment,
                each.output,
                str(len(left)),
                quantity(float(np.sqrt(np.mean(left**2))), each.unit),
                quantity(each.noise, each.unit),
                percent(outside, 2),
                number(each.autocorrelation, 2),
                described,
            ]
        )
    heads = ("experiment", "output", "values", "rms", "σ", "beyond 2 σ", "from value to value", "described")
    caption = (
        "Beyond 2 σ are 5 % of normal noise. From value to value: autocorrelation at lag 1, zero of noise. Described: "
        "share of the variance."
    )
    return table(heads, rows, caption, texts=(0, 1))


def _quantiles(result: FitResult) -> HtmlElement:
    """Return residuals over σ against quantiles of the normal distribution: a straight line where they are such."""
    from scipy.stats import norm  # noqa: PLC0415 - takes long to load

    curves = []
    for each in result.signals:
        left = np.sort((each.measured - each.fitted) / each.noise)
        expected = norm.ppf((np.arange(len(left)) + 0.5) / len(left))
        curves.append(Curve.of(_label(result, each), expected, left, Kind.POINTS))
    reach = max(float(abs(curve.x[0])) for curve in curves) if curves else 1.0
    line = Curve.of("normal noise", (-reach, reach), (-reach, reach), Kind.BOUND)
    panel = Panel("residual / σ", "1", (*curves, line), None)
    return Plot("Residuals against normal noise", (panel,), Axis("quantile of normal noise", "1")).element()


def _label(result: FitResult, signal: FitSignal) -> str:
    several = len({each.experiment for each in result.signals}) > 1
    return f"{signal.experiment}: {signal.output}" if several else signal.output


def _downloads(result: FitResult, name: str) -> list[HtmlElement]:
    columns = ("experiment", "output", "unit", "time", "measured", "fitted")
    rows: list[dict[str, Any]] = [
        dict(zip(columns, (each.experiment, each.output, each.unit, *values), strict=True))
        for each in result.signals
        for values in zip(each.times.tolist(), each.measured.tolist(), each.fitted.tolist(), strict=True)
    ]
    return [
        download("Values, intervals and correlation, JSON", f"{name}-fit.json", result.to_dict()),
        download("Measured and fitted, CSV", f"{name}-fit.csv", csv_text(columns, rows)),
    ]
