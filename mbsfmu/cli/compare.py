"""The command `mbsfmu compare`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Unpack

import click

from mbsfmu.base.errors import SimulationError
from mbsfmu.cli.common_options import common_options
from mbsfmu.cli.found_models import find_model
from mbsfmu.cli.help_sections import SectionedCommand
from mbsfmu.cli.live_option import live_machine, live_option
from mbsfmu.cli.model_argument import model_argument
from mbsfmu.cli.option_types import options_of, output_file, refuse_same_files
from mbsfmu.cli.output import log_to_stderr, to_the_end, warn, write_json
from mbsfmu.cli.report_file import Reporter, report_option
from mbsfmu.cli.standard_output import say
from mbsfmu.cli.terminal import print_table, progress_bar, shown
from mbsfmu.comparison import Comparison, ComparisonInterrupted, compare
from mbsfmu.comparison.comparison_options import ComparisonKeywords, ComparisonOptions
from mbsfmu.comparison.cost import remedy


@click.command("compare", cls=SectionedCommand)
@model_argument
@options_of(ComparisonOptions, *ComparisonOptions.known())
@report_option
@live_option
@click.option("--json", "json_file", callback=output_file(".json"), help="JSON file for all numbers.")
@common_options
def command(
    model: str,
    parts: tuple[str, ...],
    report: str | None,
    live: bool,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **given: Unpack[ComparisonKeywords],
) -> None:
    """Run MODEL monolithically and coupled, and say what coupling and the step cost.

    \b
    Example: mbsfmu compare four-bar --steps 2e-3,1e-3 --algorithms jacobi,gauss-seidel --report four-bar.html
    """
    log_to_stderr(quiet)
    refuse_same_files(report, json_file, inputs=[model, *parts])
    reporter = Reporter(report)
    found = find_model(model, parts)
    if live:
        own = {name: given.get(name) for name in ("formulation", "newton_tolerance")}
        reporter.live = live_machine(found, model, parts, page=report, option="--report", options=own)
    with progress_bar("comparing", quiet) as progress, _keep_runs(reporter, json_file):
        comparison = compare(found, progress=progress, **given)
    _write(comparison, reporter, json_file)
    _print_comparison(comparison)
    if all(run.status != "ok" for run in comparison.runs):
        raise SimulationError(f"every coupled run diverged; {remedy(comparison.runs)}")


@contextmanager
def _keep_runs(reporter: Reporter, json_file: str | None) -> Iterator[None]:
    """Write the completed runs of an interrupted comparison, and report it."""
    try:
        yield
    except ComparisonInterrupted as ended:
        files = " and ".join(filter(None, (reporter.path, json_file)))
        if files and ended.comparison.runs:
            there = f"{len(ended.comparison.runs)} of {ended.wanted} runs are there"
            _write(ended.comparison, reporter, json_file, f"The comparison was interrupted: {there}.")
            warn(f"{files}: {there}")
        raise


def _write(comparison: Comparison, reporter: Reporter, json_file: str | None, ended: str = "") -> None:
    with to_the_end():
        write_json(json_file, comparison.to_dict())
        reporter.write(comparison, ended)


def _print_comparison(comparison: Comparison) -> None:
    rows = [
        [
            run.algorithm,
            shown(run.step),
            run.status,
            shown(run.worst_error),
            shown(run.worst_total),
            shown(run.energy_residual),
            shown(run.energy_residual_share),
            shown(run.cost and 1e3 * run.cost),
            run.message,
        ]
        for run in comparison.runs
    ]
    residual = ["energy residual [J]", "[of exchanged]"]
    columns = ["algorithm", "step [s]", "status", "error [relative]", "with the step's", *residual, "cost [ms/s]", ""]
    print_table(f"{comparison.model}, {comparison.formulation}, compared with the monolithic run", columns, rows)
    rows = [[name, shown(order)] for name, order in comparison.order.items() if order is not None]
    if rows:
        print_table("observed order", ["algorithm", "order"], rows)
    if comparison.stability:
        rows = [[name, shown(limit.stable), shown(limit.diverging)] for name, limit in comparison.stability.items()]
        print_table("stability", ["algorithm", "stable up to [s]", "diverges from [s]"], rows)
    if comparison.step_verdict:
        say(comparison.step_verdict)
    say(comparison.verdict)
