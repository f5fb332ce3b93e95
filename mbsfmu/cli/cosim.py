"""The command `mbsfmu cosim`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import click

from mbsfmu.base.errors import InputError
from mbsfmu.cli.commands import SectionedCommand, checkpoint_option, common_options
from mbsfmu.cli.export import rates_of
from mbsfmu.cli.options import (
    FORMATS,
    SECONDS,
    Reporter,
    assignment,
    options_of,
    parts_option,
    report_option,
    table_file,
    words,
)
from mbsfmu.cli.output import (
    log_to_stderr,
    output_file,
    print_table,
    progress_bar,
    refuse_same_files,
    report_kept_rows,
    shown,
    write_json,
)
from mbsfmu.cosim import CosimulationError, CosimulationInterrupted, CosimulationResult, cosimulate
from mbsfmu.cosim.coupling.sweeps import AITKEN
from mbsfmu.cosim.runs.coupling_options import CouplingOptions
from mbsfmu.cosim.runs.master import NO_ERROR_ESTIMATE
from mbsfmu.io.checkpoints import Checkpoint
from mbsfmu.io.part_files import load_parts
from mbsfmu.io.signals import read_signal

_LOGGER = logging.getLogger(__name__)


def workers_of(_: click.Context, __: click.Parameter, value: str | None) -> dict[str, str] | None:
    """Read workers by FMU, as `a=host-1,b=host-2`."""
    return None if value is None else dict(assignment(each) for each in value.split(","))


def _relaxation(_: click.Context, __: click.Parameter, value: str | None) -> float | str | None:
    try:
        return value if value in (None, AITKEN) else float(value)
    except ValueError:
        raise click.BadParameter(f"'{value}' is neither '{AITKEN}' nor a number") from None


@click.command("cosim", cls=SectionedCommand)
@click.argument("source", nargs=-1, required=True)
@click.option("--connect", multiple=True, help="Connection a.y=b.u, from output to input; repeatable.")
@options_of(CouplingOptions, "algorithm", "extrapolation")
@click.option("--order", callback=words, help=CouplingOptions.help("order"))
@click.option("--rates", callback=rates_of, help=CouplingOptions.help("rates"))
@options_of(CouplingOptions, "step", "stop", "control", "tolerance", "absolute_tolerance", "unit_tolerance")
@options_of(CouplingOptions, "smallest_step", "largest_step", "iteration_tolerance", "maximum_iterations")
@click.option("--relaxation", callback=_relaxation, help=CouplingOptions.help("relaxation"))
@options_of(
    CouplingOptions,
    "jacobian",
    "energy_correction",
    "linear_correction",
    "threads",
    "model_exchange",
    "unit_solver",
    "isolate",
)
@click.option("--place", callback=workers_of, help=CouplingOptions.help("place"))
@options_of(
    CouplingOptions,
    "scheduler",
    "time_limit",
    "strict",
    "start_time",
)
@click.option("--set", "parameters", multiple=True, help="Parameter fmu.parameter=value; repeatable.")
@click.option("--start", "starts", multiple=True, help="Start value fmu.variable=value; repeatable.")
@click.option(
    "--input", "tables", multiple=True, help="Input signal fmu.variable=table.csv:column[:steps]; repeatable."
)
@click.option(
    "--scenario", help="CSV file of times in s, with the values that inputs and tunable parameters are set to."
)
@click.option(
    "--bond", "bonds", multiple=True, help="Power bond a.effort,b.flow: two outputs whose product is a power."
)
@click.option(
    "--joint",
    "joints",
    multiple=True,
    help="Joint between handles of two mechanisms: spherical:a.pin=b.pin, revolute:a.pin=b.pin:0,0,1; repeatable.",
)
@click.option(
    "-o", "--output", callback=table_file("a file of signals"), help=f"File for the recorded variables, {FORMATS}."
)
@options_of(CouplingOptions, "record", "record_every", "record_interval", "pace")
@click.option("--check-error", is_flag=True, help="Run once more with half the step, and tell the error of coupling.")
@click.option("--until", type=SECONDS, help="Time in s at which to interrupt the run before its stop time.")
@click.option("--save", callback=output_file(".zip"), help="File to save the interrupted run to.")
@click.option("--resume", help="File of a saved run of the same call, to continue it.")
@checkpoint_option
@report_option
@parts_option
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for the statistics of the run.")
@common_options
def command(
    source: tuple[str, ...],
    connect: tuple[str, ...],
    parameters: tuple[str, ...],
    starts: tuple[str, ...],
    tables: tuple[str, ...],
    scenario: str | None,
    output: str | None,
    checkpoint: float | None,
    check_error: bool,
    report: str | None,
    parts: tuple[str, ...],
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **options: Any,
) -> None:
    """Run coupled FMUs: SOURCE is an SSP file, a folder that holds one, or FMU files as [name=]file.

    \b
    Example: mbsfmu cosim out/four-bar.ssp --algorithm gauss-seidel --step 1e-3 -o run.csv
    Example: mbsfmu cosim a.fmu b.fmu --connect a.y=b.u --connect b.y=a.u --step 1e-3 --stop 1
    Example: mbsfmu cosim left.fmu right.fmu --joint revolute:left.pin=right.pin:0,0,1 --step 1e-3 --stop 2
    Example: mbsfmu cosim left=a.fmu right=a.fmu --connect left.y=right.u --set left.mass=2 --start right.u=1
    Example: mbsfmu cosim out/four-bar.ssp --algorithm newton --extrapolation linear --step 1e-3
    Example: mbsfmu cosim out/four-bar.ssp --extrapolation linear --control error --tolerance 1e-4
    Example: mbsfmu cosim out/four-bar.ssp --input circuit.valve.command=measured.csv:command -o run.parquet
    Example: mbsfmu cosim out/four-bar.ssp --stop 3600 -o hour.parquet --checkpoint 60
    """
    log_to_stderr(quiet)
    read = [text.rpartition("=")[2].partition(":")[0] for text in tables]
    save, resume = options["save"], options["resume"]
    refuse_same_files(
        output, report, json_file, save, inputs=[*source, *read, *parts, *filter(None, (scenario, resume))]
    )
    values = [assignment(text) for text in (*parameters, *starts)]
    for name in {name for name, _ in values}:
        if sum(name == other for other, _ in values) > 1:
            raise InputError(f"{name} is given twice; a variable has one start value")
    inputs = {name: read_signal(table) for name, table in map(assignment, tables)}
    kept = Checkpoint.beside(output, checkpoint)
    reporter = Reporter(report)
    with load_parts(parts).given(), progress_bar("stepping", quiet) as progress:
        result = _run(
            lambda: cosimulate(
                source,
                connections=connect,
                parameters=dict(values),
                inputs=inputs,
                scenario=scenario,
                output=output,
                progress=progress,
                checkpoint=kept,
                check_error=check_error,
                **options,
            ),
            reporter,
        )
        if kept is not None:
            kept.remove()
    if result.control == "fixed" and not check_error:
        _LOGGER.info("%s", NO_ERROR_ESTIMATE)
    write_json(json_file, result.summary())
    rows = [[name, shown(value), result.unit(name)] for name, value in result.final().items()]
    lengths = (
        f"{result.smallest_step:.3g} to {result.largest_step:.3g}" if result.control != "fixed" else f"{result.step:g}"
    )
    title = f"at {result.end:g} s, {result.steps} steps of {lengths} s, {result.algorithm}, {result.extrapolation}"
    print_table(title, ["output", "value", "unit"], rows)
    run = result.statistics
    bonds = [
        [name, shown(energy), shown(run.energy_residual[name]), shown(run.energy_residual_largest[name])]
        for name, energy in run.energy_exchanged.items()
    ]
    if bonds:
        columns = ["bond", "exchanged [J]", "residual at the end [J]", "largest residual [J]"]
        print_table("energy at each power bond", columns, bonds)


def _run(run: Callable[[], CosimulationResult], reporter: Reporter) -> CosimulationResult:
    """Make a run and report it; for one that ended early, report the files with recorded rows."""
    try:
        result = run()
    except (CosimulationError, CosimulationInterrupted) as ended:
        files = [] if ended.result.recorded is None else [str(ended.result.recorded[0])]
        files += reporter.write_until(ended)
        report_kept_rows(files, ended.result.end)
        raise
    reporter.write(result)
    return result
