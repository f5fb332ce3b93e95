"""The command `mbsfmu compare`."""

from __future__ import annotations

import os

import click

from mbsfmu.cli.model_argument import find_model
from mbsfmu.cli.options import check_folders, common_options, formulation_option, numbers, words
from mbsfmu.cli.output import log_to_stderr, write_json
from mbsfmu.cli.terminal import print_table, progress_bar, shown
from mbsfmu.comparison import CHOICES, USUAL, Comparison, compare
from mbsfmu.comparison.comparison import ACCURACY
from mbsfmu.errors import SimulationError
from mbsfmu.exporting import BACKENDS


@click.command("compare")
@click.argument("model")
@formulation_option
@click.option("--backend", default="native", show_default=True, help=f"One of {', '.join(BACKENDS)}.")
@click.option(
    "--steps",
    default="2e-3,1e-3,5e-4",
    show_default=True,
    callback=numbers,
    help="Communication steps in s.",
)
@click.option(
    "--algorithms", default=",".join(USUAL), show_default=True, callback=words, help=f"Of {', '.join(CHOICES)}."
)
@click.option("--accuracy", type=float, default=ACCURACY, show_default=True, help="Wanted, relative to a range.")
@click.option("--stability", is_flag=True, help="Look for the largest step at which each algorithm does not diverge.")
@click.option("--stop", type=float, help="End in s; the model's by default.")
@click.option("--report", help="HTML file for the report page.")
@click.option("--json", "json_file", help="JSON file for all numbers.")
@common_options
def command(
    model: str,
    formulation: str | None,
    backend: str,
    steps: list[float],
    algorithms: list[str],
    accuracy: float,
    stability: bool,
    stop: float | None,
    report: str | None,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
) -> None:
    """Run MODEL monolithically and coupled, and say what coupling costs.

    \b
    Example: mbsfmu compare four-bar --steps 2e-3,1e-3 --algorithms jacobi,gauss-seidel --report four-bar.html
    """
    log_to_stderr(quiet)
    check_folders(report, json_file)
    with progress_bar("comparing", quiet) as progress:
        comparison = compare(
            find_model(model),
            steps=steps,
            algorithms=algorithms,
            formulation=formulation,
            backend=backend,
            stop=stop,
            accuracy=accuracy,
            stability=stability,
            workers=min(os.cpu_count() or 1, len(steps) * len(algorithms)),
            progress=progress,
        )
    write_json(json_file, comparison.to_dict())
    if report:
        from mbsfmu.report import write_report  # noqa: PLC0415 - its plots take longest to load, and few need them

        write_report(comparison.to_dict(curves=True), report)
    _print_comparison(comparison)
    if all(run.status != "ok" for run in comparison.runs):
        raise SimulationError("every coupled run diverged; take smaller steps")


def _print_comparison(comparison: Comparison) -> None:
    rows = [
        [
            run.algorithm,
            shown(run.step),
            run.status,
            shown(run.worst_error),
            shown(run.energy_residual),
            shown(run.wall_seconds),
            run.message,
        ]
        for run in comparison.runs
    ]
    columns = ["algorithm", "step [s]", "status", "error [relative]", "energy residual [J]", "wall [s]", ""]
    print_table(f"{comparison.model}, {comparison.formulation}, beside the monolithic run", columns, rows)
    rows = [[name, shown(order)] for name, order in comparison.order.items()]
    print_table("observed order", ["algorithm", "order"], rows)
    if comparison.stability:
        rows = [[name, shown(limit.stable), shown(limit.diverging)] for name, limit in comparison.stability.items()]
        print_table("stability", ["algorithm", "stable up to [s]", "diverges from [s]"], rows)
    click.echo(comparison.verdict)
