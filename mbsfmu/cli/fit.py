"""The command `mbsfmu fit`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click
import numpy as np

from mbsfmu.analysis.fitting import FitResult
from mbsfmu.analysis.fmu_fitting import fit_fmu
from mbsfmu.analysis.residuals import LOSSES, Loss
from mbsfmu.base.errors import InputError
from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.found_models import complete_variables, find_model
from mbsfmu.cli.options import (
    DIFFERENTIATED,
    Reporter,
    assignment,
    bounds_of,
    is_fmu,
    model_argument,
    options_of,
    report_option,
)
from mbsfmu.cli.output import (
    at_work,
    log_to_stderr,
    output_file,
    print_table,
    refuse_same_files,
    say,
    shown,
    write_json,
)
from mbsfmu.simulation.run_options import RunOptions


@click.command("fit", cls=SectionedCommand)
@model_argument
@click.option("--measured", multiple=True, required=True, metavar="FILE", help="Signals of an experiment; repeatable.")
@click.option(
    "--free",
    shell_complete=complete_variables("parameter", "="),
    multiple=True,
    required=True,
    metavar="NAME=LO:HI",
    help="Parameter with bounds, as 'p=140 bar:220 bar'; repeatable.",
)
@click.option(
    "--noise",
    shell_complete=complete_variables("output", "="),
    multiple=True,
    metavar="OUTPUT=SIGMA",
    help="Standard deviation in SI units, or with a unit; repeatable.",
)
@click.option(
    "--delay",
    shell_complete=complete_variables("output", "="),
    multiple=True,
    metavar="OUTPUT=LO:HI",
    help="Bounds of a sensor's delay in s, or with units; repeatable.",
)
@click.option("--loss", type=click.Choice(LOSSES), default="linear", show_default=True, help="Others bear outliers.")
@options_of(RunOptions, *DIFFERENTIATED)
@click.option("-o", "--output", callback=output_file(".json"), help="Model file with the fitted values.")
@report_option
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for values and intervals.")
@common_options
def command(
    model: str,
    parts: tuple[str, ...],
    measured: tuple[str, ...],
    free: tuple[str, ...],
    noise: tuple[str, ...],
    delay: tuple[str, ...],
    loss: Loss,
    output: str | None,
    report: str | None,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **options: Any,
) -> None:
    """Fit parameters of MODEL to measured signals.

    Where neither a solver nor a step nor a tolerance is named, steps are chosen by their error. The table has 95 %
    intervals and what the error of the steps does to values; sentences say what the data do not tell.
    MODEL may be an FMU, too: its runs are differentiated by differences, and numbers are in its units.

    \b
    Example: mbsfmu fit four-bar --measured log.csv --free valve.flow_coefficient=1e-8:1e-7 --free boom.mass=100:400
    Example: mbsfmu fit their.fmu --measured log.csv --free damping=0.1:2 --delay x=0:0.1 --loss cauchy
    """
    log_to_stderr(quiet)
    refuse_same_files(output, report, json_file, inputs=[model, *parts, *measured])
    reporter = Reporter(report)
    if is_fmu(model) and output is not None:
        raise InputError(f"-o {output} is refused: it writes a model, and {model} is an FMU; --json writes the values")
    given = {name: value for name, value in options.items() if value is not None}
    if is_fmu(model) and (others := [RunOptions.known()[name].words(name) for name in given if name != "step"]):
        raise InputError(f"{others[0]} is refused: {model} is an FMU, which makes steps of its own; --step is taken")
    fitted = partial(fit_fmu, model) if is_fmu(model) else find_model(model, parts).fit
    with at_work("fitting", quiet):
        found = fitted(
            list(measured),
            bounds_of(free, "--free"),
            noise=dict(map(assignment, noise)),
            delays=bounds_of(delay, "--delay"),
            loss=loss,
            **given,
        )
    write_json(json_file, found.to_dict())
    if output is not None:
        found.model.to_file(output)
    reporter.write(found)
    columns = ["parameter", "unit", "value", "95 % interval", "shift by steps"]
    print_table("fitted", columns, _rows(found))
    left = [[each.experiment, each.output, each.unit, shown(each.noise)] for each in found.signals]
    print_table("measured", ["experiment", "output", "unit", "noise"], left)
    say(f"runs are made in {' and '.join(found.step_errors.steps)}")
    for sentence in found.sentences:
        say(sentence)


def _rows(found: FitResult) -> list[list[str]]:
    parts = zip(found.names, found.units, found.values, found.lower, found.upper, found.step_errors.shifts, strict=True)
    return [
        [name, unit, f"{value:.6g}", f"{low:.6g} to {high:.6g}", f"{shift:.2g}" if np.isfinite(shift) else "not known"]
        for name, unit, value, low, high, shift in parts
    ]
