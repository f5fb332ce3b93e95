"""Report of a fit: parameters with intervals, identifiability, measured signals and residuals."""

from __future__ import annotations

from typing import Any

import numpy as np

from mbsfmu.analysis.fitting import FitResult
from mbsfmu.analysis.residuals import FitSignal
from mbsfmu.view.pages.blocks import answer, as_sentence, beside, heading, paragraph, section, stack, unfolded
from mbsfmu.view.pages.download import csv_text, download
from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.pages.formatted_quantity import number, percent, quantity
from mbsfmu.view.pages.html_table import Cell, table
from mbsfmu.view.plots.curve import Curve, Kind
from mbsfmu.view.plots.plot import Axis, Panel, Plot
from mbsfmu.view.report.circumstances import Circumstances

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
        answer(_sentences(result)),
        *circumstances.warning_notes(),
        section("Parameters", _parameters(result)),
        *_correlation(result),
        section("Measured and fitted", *_signals(result)),
        section("Residuals", _residuals(result), _quantiles(result)),
        section("Numbers", beside(*_downloads(result, name))),
        circumstances.provenance(),
    )
    return title, content


def _sentences(result: FitResult) -> list[tuple[str, str]]:
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


def _correlation(result: FitResult) -> list[HtmlElement]:
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
