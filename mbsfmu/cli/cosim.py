"""The command `mbsfmu cosim`."""

from __future__ import annotations

from pathlib import Path

import click

from mbsfmu.cli.options import assignment, check_folders, check_signal_file, common_options, words
from mbsfmu.cli.output import log_to_stderr, write_json
from mbsfmu.cli.terminal import print_table, progress_bar, shown
from mbsfmu.cosim import cosimulate
from mbsfmu.cosim.algorithms import ALGORITHMS, Extrapolation
from mbsfmu.signals import read_signal


@click.command("cosim")
@click.argument("source", nargs=-1, required=True)
@click.option("--connect", multiple=True, help="a.y=b.u; any number of times.")
@click.option("--algorithm", default="gauss-seidel", show_default=True, help=f"One of {', '.join(ALGORITHMS)}.")
@click.option("--extrapolation", default="zero", show_default=True, help=f"One of {', '.join(Extrapolation)}.")
@click.option("--order", callback=words, help="Units in the order in which gauss-seidel steps them: a,b.")
@click.option("--step", type=float, help="Communication step in s; what the units suggest by default.")
@click.option("--stop", type=float, help="End in s; what package or units suggest by default.")
@click.option("--input", "tables", multiple=True, help="unit.variable=table.csv:column[:steps]; any number of times.")
@click.option("-o", "--output", help="CSV or Parquet file for all outputs over time.")
@click.option("--json", "json_file", help="JSON file for the facts of the run.")
@common_options
def command(
    source: tuple[str, ...],
    connect: tuple[str, ...],
    algorithm: str,
    extrapolation: str,
    order: list[str] | None,
    step: float | None,
    stop: float | None,
    tables: tuple[str, ...],
    output: str | None,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
) -> None:
    """Run coupled FMUs: SOURCE is an SSP file, a folder that holds one, or FMU files.

    \b
    Example: mbsfmu cosim out/four-bar.ssp --algorithm gauss-seidel --step 1e-3 -o run.csv
    Example: mbsfmu cosim a.fmu b.fmu --connect a.y=b.u --connect b.y=a.u --step 1e-3 --stop 1
    Example: mbsfmu cosim out/four-bar.ssp --input circuit.valve.command=measured.csv:command -o run.parquet
    """
    log_to_stderr(quiet)
    check_folders(output, json_file)
    check_signal_file(output)
    inputs = {name: read_signal(table) for name, table in map(assignment, tables)}
    with progress_bar("stepping", quiet) as progress:
        result = cosimulate(
            source[0] if len(source) == 1 else [Path(each) for each in source],
            algorithm=algorithm,
            extrapolation=extrapolation,
            order=order,
            step=step,
            stop=stop,
            connections=connect,
            inputs=inputs,
            progress=progress,
        )
    if output:
        result.to_file(output)
    write_json(json_file, result.summary())
    rows = [[name, shown(value), result.unit(name)] for name, value in result.final().items()]
    title = f"at {result.time[-1]:g} s, {result.steps} steps of {result.step:g} s, {result.algorithm}"
    print_table(title, ["output", "value", "unit"], rows)
