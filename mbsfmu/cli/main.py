"""The commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from mbsfmu.cli.model_argument import find_model
from mbsfmu.cli.output import log_to_stderr, print_table, progress_bar, write_json
from mbsfmu.comparison import CHOICES, Comparison, compare
from mbsfmu.cosim import cosimulate
from mbsfmu.cosim.algorithms import AITKEN, ALGORITHMS, JACOBIANS
from mbsfmu.cosim.control import CONTROLS
from mbsfmu.cosim.extrapolation import Extrapolation
from mbsfmu.errors import InputError, SimulationError
from mbsfmu.exporting import BACKENDS, LAYOUTS, export
from mbsfmu.fmu.validation import validate
from mbsfmu.models import BUILT_IN
from mbsfmu.native.compiler import PLATFORMS
from mbsfmu.simulation.factory import FORMULATIONS, SOLVERS

Command = TypeVar("Command", bound=Callable[..., Any])
_FORMULATIONS = ", ".join(FORMULATIONS)


def main() -> None:
    """Run the command line: exit status 0 done, 1 the work failed, 2 the call or the input was wrong."""
    debug = "--debug" in sys.argv
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except (ValueError, OSError) as error:
        if debug:
            raise
        _fail(str(error), 2)
    except SimulationError as error:
        if debug:
            raise
        _fail(str(error), 1)
    except (KeyboardInterrupt, click.Abort):
        _fail("interrupted", 1)


def _fail(message: str, status: int) -> None:
    click.echo(f"mbsfmu: {message}", err=True)
    sys.exit(status)


def _common(command: Command) -> Command:
    """Add the options that every command has."""
    command = click.option("--quiet", is_flag=True, help="No progress and no notes on stderr.")(command)
    return click.option("--debug", is_flag=True, help="Show where an error comes from.")(command)


def _numbers(_: click.Context, __: click.Parameter, value: str) -> list[float]:
    try:
        return [float(each) for each in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"'{value}' is no list of numbers such as 2e-3,1e-3") from None


def _words(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    return None if value is None else [each.strip() for each in value.split(",")]


def _rates(_: click.Context, __: click.Parameter, value: str | None) -> dict[str, int] | None:
    try:
        return (
            None
            if value is None
            else {each.partition("=")[0]: int(each.partition("=")[2]) for each in value.split(",")}
        )
    except ValueError:
        raise click.BadParameter(f"'{value}' is no list of units and whole numbers such as a=4,b=1") from None


def _relaxation(_: click.Context, __: click.Parameter, value: str) -> float | str:
    try:
        return value if value == AITKEN else float(value)
    except ValueError:
        raise click.BadParameter(f"'{value}' is neither '{AITKEN}' nor a number") from None


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mbsfmu")
def cli() -> None:
    """Multibody mechanisms and hydraulics: simulate, export as FMUs, co-simulate, compare.

    MODEL is a built-in name (`mbsfmu models`), a model file (model.json) or file.py:factory.
    """


@cli.command()
@_common
def models(quiet: bool, debug: bool) -> None:  # noqa: ARG001
    """List the built-in models.

    \b
    Example: mbsfmu models
    """
    rows = [[name, BUILT_IN[name]().description] for name in BUILT_IN]
    print_table("built-in models", ["name", "what it is"], [*rows, ["pendulum-N", "open chain of N links"]])


@cli.command()
@click.argument("model")
@click.option("--formulation", help=f"One of {_FORMULATIONS}.")
@click.option("--step", type=float, help="Internal and output step in s; the model's by default.")
@click.option("--stop", type=float, help="End in s; the model's by default.")
@click.option("--solver", default="trapezoidal", show_default=True, help=f"One of {', '.join(SOLVERS)}.")
@click.option("--rtol", type=float, default=1e-6, show_default=True, help="Relative, for explicit solvers.")
@click.option("--atol", type=float, default=1e-6, show_default=True, help="Absolute, for explicit solvers.")
@click.option("--stabilisation", type=float, default=0.0, help="Rate in 1/s at which dca closes drifted loops.")
@click.option("-o", "--output", help="CSV file for all signals over time.")
@click.option("--json", "json_file", help="JSON file for the facts of the run.")
@_common
def simulate(
    model: str,
    formulation: str | None,
    step: float | None,
    stop: float | None,
    solver: str,
    rtol: float,
    atol: float,
    stabilisation: float,
    output: str | None,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
) -> None:
    """Simulate MODEL monolithically, in process.

    \b
    Example: mbsfmu simulate four-bar --formulation penalty --step 1e-3 -o four-bar.csv
    """
    log_to_stderr(quiet)
    _check_folders(output, json_file)
    simulation = find_model(model).simulation(
        formulation=formulation,
        solver=solver,
        step=step,
        relative_tolerance=rtol,
        absolute_tolerance=atol,
        stabilisation=stabilisation,
    )
    with progress_bar("simulating", quiet) as progress:
        result = simulation.run(stop, progress=progress)
    if output:
        result.to_csv(output)
    summary = result.summary()
    write_json(json_file, summary)
    facts = {key: value for key, value in summary.items() if key != "final" and value is not None}
    print_table("run", ["fact", "value"], [[key, _shown(value)] for key, value in facts.items()])


@cli.command("export")
@click.argument("model")
@click.option("-o", "--output", default=".", show_default=True, help="Folder for the files.")
@click.option("--layout", default="both", show_default=True, help=f"One of {', '.join(LAYOUTS)}.")
@click.option("--formulation", help=f"One of {_FORMULATIONS}.")
@click.option("--backend", default="native", show_default=True, help=f"One of {', '.join(BACKENDS)}.")
@click.option("--platform", "platforms", multiple=True, help=f"Of native units, any of {', '.join(PLATFORMS)}.")
@click.option("--sources", is_flag=True, help="Put the C sources into native units.")
@click.option("--solver", help="trapezoidal, rk4 or rk45; Python units have all of simulate.")
@click.option("--rtol", type=float, help="Relative tolerance of rk45.")
@click.option("--atol", type=float, help="Absolute tolerance of rk45.")
@click.option("--stabilisation", type=float, help="Rate in 1/s at which dca closes drifted loops.")
@click.option("--step", type=float, help="Largest internal step in s; the model's by default.")
@click.option("--no-execution-tool", is_flag=True, help="Declare needsExecutionTool false of Python units.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@_common
def export_command(
    model: str,
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
        find_model(model),
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
        step=step,
        needs_execution_tool=not no_execution_tool,
        force=force,
    )
    for path in paths:
        click.echo(str(path))


@cli.command()
@click.argument("source", nargs=-1, required=True)
@click.option("--connect", multiple=True, help="a.y=b.u; any number of times.")
@click.option("--algorithm", default="gauss-seidel", show_default=True, help=f"One of {', '.join(ALGORITHMS)}.")
@click.option("--extrapolation", default="zero", show_default=True, help=f"One of {', '.join(Extrapolation)}.")
@click.option("--order", callback=_words, help="Units in the order in which gauss-seidel and fixed-point step: a,b.")
@click.option("--rates", callback=_rates, help="Steps of units in a communication step: a=4,b=1.")
@click.option("--step", type=float, help="Communication step in s, or the first one; the units suggest one.")
@click.option("--stop", type=float, help="End in s; what package or units suggest by default.")
@click.option("--control", default="fixed", show_default=True, help=f"Of the steps, one of {', '.join(CONTROLS)}.")
@click.option("--tolerance", type=float, default=1e-4, show_default=True, help="Relative, of control error and energy.")
@click.option(
    "--absolute-tolerance", type=float, help="In nominal values (in W for energy); as --tolerance by default."
)
@click.option("--smallest-step", type=float, help="Of controlled steps in s; a thousandth of --step by default.")
@click.option("--largest-step", type=float, help="Of controlled steps in s; ten times --step by default.")
@click.option("--iteration-tolerance", type=float, default=1e-8, show_default=True, help="Of fixed-point and newton.")
@click.option("--maximum-iterations", type=int, default=50, show_default=True, help="Of fixed-point and newton.")
@click.option(
    "--relaxation", default=AITKEN, show_default=True, callback=_relaxation, help="Of fixed-point, or a number."
)
@click.option("--jacobian", default="differences", show_default=True, help=f"Of newton: {', '.join(JACOBIANS)}.")
@click.option("--energy-correction", is_flag=True, help="Let inputs make up for what the last step missed.")
@click.option("--threads", type=int, default=1, show_default=True, help="In which units step, with jacobi and newton.")
@click.option("-o", "--output", help="CSV file for all outputs over time.")
@click.option("--json", "json_file", help="JSON file for the facts of the run.")
@_common
def cosim(
    source: tuple[str, ...],
    connect: tuple[str, ...],
    algorithm: str,
    extrapolation: str,
    order: list[str] | None,
    rates: dict[str, int] | None,
    output: str | None,
    json_file: str | None,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **settings: Any,
) -> None:
    """Run coupled FMUs: SOURCE is an SSP file, a folder that holds one, or FMU files.

    \b
    Example: mbsfmu cosim out/four-bar.ssp --algorithm gauss-seidel --step 1e-3 -o run.csv
    Example: mbsfmu cosim a.fmu b.fmu --connect a.y=b.u --connect b.y=a.u --step 1e-3 --stop 1
    Example: mbsfmu cosim out/four-bar.ssp --algorithm newton --extrapolation linear --step 1e-3
    Example: mbsfmu cosim out/four-bar.ssp --extrapolation linear --control error --tolerance 1e-4
    """
    log_to_stderr(quiet)
    _check_folders(output, json_file)
    with progress_bar("stepping", quiet) as progress:
        result = cosimulate(
            source[0] if len(source) == 1 else [Path(each) for each in source],
            algorithm=algorithm,
            extrapolation=extrapolation,
            order=order,
            rates=rates,
            connections=connect,
            progress=progress,
            **settings,
        )
    if output:
        result.to_csv(output)
    write_json(json_file, result.summary())
    rows = [[name, _shown(value), result.unit(name)] for name, value in result.final().items()]
    lengths = (
        f"{result.smallest_step:.3g} to {result.largest_step:.3g}" if result.control != "fixed" else f"{result.step:g}"
    )
    title = f"at {result.time[-1]:g} s, {result.steps} steps of {lengths} s, {result.algorithm}"
    print_table(title, ["output", "value", "unit"], rows)


@cli.command("compare")
@click.argument("model")
@click.option("--formulation", help=f"One of {_FORMULATIONS}.")
@click.option("--backend", default="native", show_default=True, help=f"One of {', '.join(BACKENDS)}.")
@click.option(
    "--steps",
    default="2e-3,1e-3,5e-4",
    show_default=True,
    callback=_numbers,
    help="Communication steps in s.",
)
@click.option("--algorithms", default=",".join(CHOICES), show_default=True, callback=_words, help="Some of these.")
@click.option("--stop", type=float, help="End in s; the model's by default.")
@click.option("--report", help="HTML file for the report page.")
@click.option("--json", "json_file", help="JSON file for all numbers.")
@_common
def compare_command(
    model: str,
    formulation: str | None,
    backend: str,
    steps: list[float],
    algorithms: list[str],
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
    _check_folders(report, json_file)
    with progress_bar("comparing", quiet) as progress:
        comparison = compare(
            find_model(model),
            steps=steps,
            algorithms=algorithms,
            formulation=formulation,
            backend=backend,
            stop=stop,
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
            _shown(run.step),
            run.status,
            _shown(run.worst_error),
            _shown(run.energy_residual),
            _shown(run.wall_seconds),
            run.message,
        ]
        for run in comparison.runs
    ]
    columns = ["algorithm", "step [s]", "status", "error [relative]", "energy residual [J]", "wall [s]", ""]
    print_table(f"{comparison.model}, {comparison.formulation}, beside the monolithic run", columns, rows)
    rows = [[name, _shown(order)] for name, order in comparison.order.items()]
    print_table("observed order", ["algorithm", "order"], rows)


@cli.command("validate")
@click.argument("files", nargs=-1, required=True)
@click.option("--json", "json_file", help="JSON file for the problems by file.")
@_common
def validate_command(files: tuple[str, ...], json_file: str | None, quiet: bool, debug: bool) -> None:  # noqa: ARG001
    """Check FMU files, ours or not.

    \b
    Example: mbsfmu validate out/four-bar.fmu
    """
    problems = {file: validate(file) for file in files}
    write_json(json_file, problems)
    for file, found in problems.items():
        click.echo(f"{file}: {'no problem' if not found else f'{len(found)} problems'}")
        for problem in found:
            click.echo(f"  {problem}")
    if any(problems.values()):
        raise SimulationError("there are problems")


def _check_folders(*paths: str | None) -> None:
    """Refuse files in folders that are not there before the work is done, not after it."""
    for path in paths:
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise InputError(f"the folder of {path} is not there")


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
