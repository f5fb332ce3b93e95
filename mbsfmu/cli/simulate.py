"""The command `mbsfmu simulate`."""

from __future__ import annotations

from typing import Any

import click

from mbsfmu.cli.commands import SectionedCommand, checkpoint_option, common_options
from mbsfmu.cli.found_models import find_model
from mbsfmu.cli.options import (
    FORMATS,
    RUN,
    SECONDS,
    Reporter,
    assigned,
    live_machine,
    live_option,
    model_argument,
    options_of,
    recorded,
    report_option,
    set_values,
    stop_time,
    table_file,
    values_option,
)
from mbsfmu.cli.output import (
    at_work,
    log_to_stderr,
    output_file,
    print_table,
    progress_bar,
    refuse_same_files,
    shown,
    write_json,
)
from mbsfmu.io.checkpoints import Checkpoint
from mbsfmu.simulation.run_options import RunOptions


@click.command("simulate", cls=SectionedCommand)
@model_argument
@values_option
@options_of(RunOptions, *RUN)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    help="Input signal variable=table.csv:column[:steps], or table.csv[:steps] for all columns named as inputs; "
    "steps: values hold until the next; repeatable.",
)
@click.option("--stop", type=SECONDS, callback=stop_time, help="End in s; the model's by default.")
@click.option(
    "--output-step",
    type=SECONDS,
    help="Interval of the rows in s; the step by default, or a multiple that keeps a million rows at most.",
)
@click.option(
    "-o", "--output", callback=table_file("a file of signals"), help=f"File for all signals over time, {FORMATS}."
)
@checkpoint_option
@report_option
@live_option
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for the statistics of the run.")
@common_options
def command(
    model: str,
    parts: tuple[str, ...],
    assignments: tuple[str, ...],
    inputs: tuple[str, ...],
    stop: float | None,
    output_step: float | None,
    output: str | None,
    checkpoint: float | None,
    report: str | None,
    live: bool,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **options: Any,
) -> None:
    """Simulate MODEL monolithically, in process.

    \b
    Example: mbsfmu simulate four-bar --formulation penalty --step 1e-3 -o four-bar.csv
    Example: mbsfmu simulate four-bar --report four-bar.html --live
    Example: mbsfmu simulate four-bar --stop 3600 -o hour.parquet --checkpoint 60
    Example: mbsfmu simulate four-bar --input recorded.csv:steps --solver trapezoidal
    Example: mbsfmu simulate four-bar --set boom.mass=310kg --set pump.pressure="200 bar"
    """
    log_to_stderr(quiet)
    read = [text.rpartition("=")[2].partition(":")[0] for text in inputs]
    refuse_same_files(output, report, json_file, inputs=[model, *parts, *read])
    kept = Checkpoint.beside(output, checkpoint)
    reporter = Reporter(report)
    with at_work("preparing", quiet):
        found = find_model(model, parts)
        simulation = (found.driven_by(*inputs) if inputs else found).simulation(**options)
        set_values(simulation, assignments)
        if live:
            reporter.live = live_machine(
                found, model, parts, page=report, option="--report", values=assigned(assignments), options=options
            )
    with progress_bar("simulating", quiet) as progress:
        result = recorded(
            lambda: simulation.run(stop, output_step=output_step, progress=progress, checkpoint=kept), output, reporter
        )
    if kept is not None:
        kept.remove()
    summary = result.summary()
    write_json(json_file, summary)
    facts = {**summary, "error_estimate": result.error.note if result.error.share is None else result.error.share}
    left_out = ("final", "iterations", "error_note")
    facts = {key: value for key, value in facts.items() if key not in left_out and value is not None}
    for level, count in result.statistics.iterations.items():
        facts[f"{level} iterations"] = f"{count.mean:.2f} on average, {count.most} at most"
    print_table("run", ["fact", "value"], [[key, shown(value)] for key, value in facts.items()])
