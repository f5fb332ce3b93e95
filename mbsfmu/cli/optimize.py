"""The command `mbsfmu optimize`."""

from __future__ import annotations

from typing import Any

import click

from mbsfmu.base.errors import SimulationError
from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.found_models import complete_variables, find_model
from mbsfmu.cli.options import DIFFERENTIATED, SECONDS, bounds_of, model_argument, options_of, stop_time
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


@click.command("optimize", cls=SectionedCommand)
@model_argument
@click.option("--minimize", required=True, metavar="MEASURE", help="As 'max(cylinder.force)'; integral, rms, end …")
@click.option(
    "--free",
    shell_complete=complete_variables("parameter", "="),
    multiple=True,
    required=True,
    metavar="NAME=LO:HI",
    help="Parameter with bounds, as 'p=140 bar:220 bar'; repeatable.",
)
@click.option(
    "--subject-to",
    multiple=True,
    metavar="'MEASURE<=X'",
    help="Constraint, <= or >=; X may have a unit.",
)
@click.option("--stop", type=SECONDS, callback=stop_time, help="End of the runs in s; the model's by default.")
@options_of(RunOptions, *DIFFERENTIATED)
@click.option("-o", "--output", callback=output_file(".json"), help="Model file with the values that were found.")
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for values and constraints.")
@common_options
def command(
    model: str,
    parts: tuple[str, ...],
    minimize: str,
    free: tuple[str, ...],
    subject_to: tuple[str, ...],
    stop: float | None,
    output: str | None,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **options: Any,
) -> None:
    """Find parameters of MODEL that minimise a scalar of its run under constraints.

    The minimum is a local one. Where neither a solver nor a step nor a tolerance is named, steps are chosen by the
    error of gradients; what the error of the steps does to the optimum stands in the tables. Each run is told; Ctrl-C
    ends the search, and the best run so far is written.

    \b
    Example: mbsfmu optimize four-bar --minimize 'max(cylinder.pressure_piston)' --free boom.C.along=0.2:0.5
    """
    log_to_stderr(quiet)
    refuse_same_files(output, json_file, inputs=[model, *parts])
    given = find_model(model, parts)
    with at_work("optimizing", quiet):
        found = given.optimize(minimize, bounds_of(free, "--free"), subject_to=subject_to, stop=stop, **options)
    write_json(json_file, found.to_dict())
    if output is not None:
        found.model.to_file(output)
    errors = found.step_errors
    shifts = ["not known"] * len(found.names) if errors is None else [f"{shift:.2g}" for shift in errors.shifts]
    values = zip(found.names, found.units, found.values, shifts, strict=True)
    rows = [[name, unit, f"{value:.6g}", shift] for name, unit, value, shift in values]
    print_table("found", ["parameter", "unit", "value", "shift by steps"], rows)
    limits = [[text, shown(value)] for text, value in found.limits.items()]
    print_table("constraints", ["constraint", "value"], limits)
    if errors is not None:
        say(f"{errors.gradients.steps}: their error in {minimize} is {errors.value:.2g}")
    say(f"{minimize} goes from {found.first:.6g} to {found.value:.6g} in {found.runs} run{'s' * (found.runs > 1)}")
    for sentence in found.sentences:
        say(sentence)
    if found.failures:
        say(f"runs that failed, from which the search went back: {len(found.failures)}; the last: {found.failures[-1]}")
    if not found.converged:
        raise SimulationError(f"no minimum that keeps the constraints is found: {found.message}")
