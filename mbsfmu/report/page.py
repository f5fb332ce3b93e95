"""One self-contained HTML page of a comparison."""

from __future__ import annotations

import importlib.resources
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from mbsfmu.files import complete_file
from mbsfmu.report.plots import energy_over_time, error_over_cost, error_over_step, over_time, total_error


def write_report(comparison: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Write the page, complete or not at all.

    Parameters
    ----------
    comparison
        What `Comparison.to_dict(curves=True)` gives.
    path
        The HTML file; replaced if it is there.
    """
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = _number
    environment.filters["percent"] = lambda share: _number(None if share is None else 100 * share)
    environment.filters["total"] = total_error
    template = importlib.resources.files("mbsfmu.report").joinpath("page.html").read_text(encoding="utf-8")
    page = environment.from_string(template).render(
        **{**comparison, "headline": headline(comparison), "plots": _plots(comparison)}
    )
    with complete_file(path) as partial:
        partial.write_text(page, encoding="utf-8")
    return Path(path)


def headline(comparison: Mapping[str, Any]) -> str:
    """Say in a sentence or two what coupling costs."""
    good = [run for run in comparison["runs"] if run["status"] == "ok"]
    sentences = []
    if good:
        step = min(run["step"] for run in good)
        at_step = sorted((run for run in good if run["step"] == step), key=_worst)
        best, worst = at_step[0], at_step[-1]
        output = max(best["error"], key=lambda name: best["error"][name])
        sentence = (
            f"With a communication step of {_number(step)} s, {best['algorithm']} is off by at most "
            f"{_number(100 * _worst(best))} % of the range of any output ({output})"
        )
        if best is not worst and _worst(best) > 0:
            sentence += f", {_number(_worst(worst) / _worst(best))} times less than {worst['algorithm']}"
        sentences.append(sentence + ".")
    for algorithm in comparison["order"]:
        lost = [run["step"] for run in comparison["runs"] if run["algorithm"] == algorithm and run["status"] != "ok"]
        if lost:
            sentences.append(f"{algorithm} diverges at {_number(min(lost))} s.")
    return " ".join(sentences)


def _worst(run: Mapping[str, Any]) -> float:
    return float(max(run["error"].values()))


def _plots(comparison: Mapping[str, Any]) -> dict[str, Any]:
    curves = comparison["curves"]
    shown = _shown_runs(comparison)
    signals = []
    for output in comparison["outputs"]:
        name, unit = output["name"], output["unit"]
        chosen = {key: curves["signals"][name][key] for key in ("monolithic", *shown)}
        signals.append({"name": name, "svg": Markup(over_time(curves["time"], chosen, name, unit))})
    residual = {key: curves["energy_residual"][key] for key in shown if key in curves["energy_residual"]}
    return {
        "signals": signals,
        "error": Markup(error_over_step(comparison["runs"], comparison["order"], _cost_of_step(comparison))),
        "cost": Markup(error_over_cost(comparison["runs"], comparison["order"], comparison["accuracy"])),
        "energy": Markup(energy_over_time(curves["time"], residual)) if residual else None,
    }


def _cost_of_step(comparison: Mapping[str, Any]) -> float | None:
    """Return the largest error of any output that the step has by itself; None where that is not known."""
    errors = [error for error in comparison["reference"].get("error", {}).values() if error is not None]
    return max(errors, default=None)


def _shown_runs(comparison: Mapping[str, Any]) -> Sequence[str]:
    """Name the run of each algorithm with the smallest step: more lines would hide each other."""
    step = min(run["step"] for run in comparison["runs"])
    return [f"{run['algorithm']} {run['step']:g} s" for run in comparison["runs"] if run["step"] == step]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
