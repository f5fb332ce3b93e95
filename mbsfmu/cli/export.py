"""The command `mbsfmu export`."""

from __future__ import annotations

import click

from mbsfmu.cli.model_argument import find_model, model_argument
from mbsfmu.cli.options import common_options, drift_options, formulation_option, newton_option, option_of
from mbsfmu.cli.output import log_to_stderr
from mbsfmu.cli.standard_output import say
from mbsfmu.exporting import BACKENDS, LAYOUTS, export
from mbsfmu.native.compiler import PLATFORMS
from mbsfmu.rules import rule_texts


@click.command("export")
@model_argument
@click.option("-o", "--output", default=".", show_default=True, help="Folder for the files.")
@option_of(export, "--layout", f"One of {', '.join(LAYOUTS)}.")
@formulation_option
@option_of(export, "--backend", f"One of {', '.join(BACKENDS)}.")
@click.option("--platform", "platforms", multiple=True, help=f"Of native units, any of {', '.join(PLATFORMS)}.")
@click.option("--sources", is_flag=True, help="Put the C sources into native units.")
@click.option("--solver", help=f"{', '.join(rule_texts())}, rk4 or rk45; Python units have all of simulate.")
@click.option("--rtol", type=float, help="Relative tolerance of rk45.")
@click.option("--atol", type=float, help="Absolute tolerance of rk45.")
@drift_options
@newton_option
@click.option("--step", type=float, help="Largest internal step in s; the model's by default.")
@click.option("--no-execution-tool", is_flag=True, help="Declare needsExecutionTool false of Python units.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@common_options
def command(
    model: str,
    parts: tuple[str, ...],
    output: str,
    layout: str,
    formulation: str | None,
    backend: str,
    platforms: tuple[str, ...],
    sources: bool,
    solver: str | None,
    rtol: float | None,
    atol: float | None,
    stabilisation: float | None,
    projections: bool | None,
    restart_momenta: bool | None,
    penalty: float | None,
    newton_tolerance: float | None,
    step: float | None,
    no_execution_tool: bool,
    force: bool,
    quiet: bool,
    debug: bool,  # noqa: ARG001
) -> None:
    """Export MODEL as FMI 2.0 co-simulation FMUs.

    \b
    Example: mbsfmu export four-bar -o out --layout separate
    """
    log_to_stderr(quiet)
    paths = export(
        find_model(model, parts),
        output,
        layout=layout,
        backend=backend,
        platforms=platforms,
        sources=sources,
        formulation=formulation,
        solver=solver,
        relative_tolerance=rtol,
        absolute_tolerance=atol,
        stabilisation=stabilisation,
        projections=projections,
        restart_momenta=restart_momenta,
        penalty=penalty,
        newton_tolerance=newton_tolerance,
        step=step,
        needs_execution_tool=not no_execution_tool,
        force=force,
    )
    for path in paths:
        say(str(path))
