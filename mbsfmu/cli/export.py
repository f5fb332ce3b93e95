"""The command `mbsfmu export`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from mbsfmu.base.errors import InputError
from mbsfmu.cli.commands import SectionedCommand, common_options
from mbsfmu.cli.found_models import complete_variables, find_model
from mbsfmu.cli.options import OF_FMUS, SECONDS, model_argument, option_of, options_of, words
from mbsfmu.cli.output import at_work, log_to_stderr, say
from mbsfmu.compiling.compiler import CLOCKS, INTERFACES, VERSIONS, platform_names
from mbsfmu.exporting.fmu_export import BACKENDS, LAYOUTS, LOCALS, export
from mbsfmu.exporting.wrappers import WRAPPERS
from mbsfmu.native.c_sources import SOURCES
from mbsfmu.simulation.run_options import RunOptions

Command = TypeVar("Command", bound=Callable[..., Any])
_OF_PACKAGES = (
    *("algorithm", "extrapolation", "order", "rates", "stop", "energy_correction", "unit_tolerance", "strict"),
)
_SHARED = ("step", "fmi", "platforms", "force")
_PLAIN = ("model", "output", "parts", "quiet", "debug")


def rates_of(_: click.Context, __: click.Parameter, value: str | None) -> dict[str, int] | None:
    """Read numbers of steps by FMU, as `a=4,b=1`."""
    try:
        return (
            None
            if value is None
            else {each.partition("=")[0]: int(each.partition("=")[2]) for each in value.split(",")}
        )
    except ValueError:
        raise click.BadParameter(f"'{value}' is no list of FMUs and integers such as a=4,b=1") from None


def package_options(command: Command) -> Command:
    """Add the options of packages; words and defaults are those of `mbsfmu cosim`, which is not loaded for them."""
    options = [
        click.option("--algorithm", help="Of a package: jacobi or gauss-seidel (default)."),
        click.option(
            "--extrapolation",
            help="Of a package: adaptive (default where no algorithm is named), zero, linear or quadratic.",
        ),
        click.option("--order", callback=words, help="Of a package: the order in which FMUs step, a,b."),
        click.option("--rates", callback=rates_of, help="Of a package: steps in a communication step, a=4,b=1."),
        click.option("--stop", type=SECONDS, help="Of a package: stop time in s that the FMU suggests."),
        click.option("--energy-correction", is_flag=True, help="Of a package: correct inputs as `mbsfmu cosim` does."),
        click.option("--unit-tolerance", type=float, help="Of a package: tolerance of the solvers inside the FMUs."),
        click.option("--strict", is_flag=True, help="Of a package: refuse units of measurement that nothing defines."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def is_package(argument: str) -> bool:
    """Return whether an argument refers to coupled FMUs, and not to a model."""
    return argument.endswith((".ssp", ".ssd", ".fmu")) or Path(argument, "SystemStructure.ssd").is_file()


def split_options(context: click.Context, options: Mapping[str, Any], *, coupled: bool) -> dict[str, Any]:
    """Return the options of a package, or those of a model.

    Raises
    ------
    InputError
        When one of the others was given.
    """
    own = (*_OF_PACKAGES, *_SHARED) if coupled else tuple(name for name in options if name not in _OF_PACKAGES)
    for name in options:
        given = context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
        if given and name not in own and name not in _PLAIN:
            whose = "an SSP package" if coupled else "a model"
            raise InputError(f"the option {name.replace('_', ' ')} has no effect in the export of {whose}")
    return {name: options[name] for name in own if name in options}


@click.command("export", cls=SectionedCommand)
@model_argument
@click.option("-o", "--output", default=".", show_default=True, help="Folder for the files.")
@option_of(export, "--layout", f"One of {', '.join(LAYOUTS)}.")
@option_of(export, "--backend", f"One of {', '.join(BACKENDS)}.")
@option_of(export, "--fmi", f"Version of the FMI, {' or '.join(map(str, VERSIONS))}.")
@option_of(
    export,
    "--kind",
    f"Interface of native FMUs: {' or '.join(INTERFACES)} (co-simulation, model exchange), or both as cs,me.",
    callback=words,
)
@option_of(export, "--naming", "structured: boom.angle; flat: boom_angle, for Simulink and Twin Builder.")
@click.option("--arrays", is_flag=True, help="Export vectors as arrays (native FMUs, FMI 3.0).")
@option_of(export, "--clocks", f"Clocks of sampled blocks, which importers set (FMI 3.0): {', '.join(CLOCKS)}.")
@click.option(
    "--event-indicators",
    is_flag=True,
    help="Event indicators of end stops and contacts, for solvers of importers (kind me).",
)
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    help=f"Platforms of native FMUs, repeatable: {', '.join(platform_names(2))}; "
    f"of FMI 3.0 also {', '.join(platform_names(3))}.",
)
@click.option(
    "--sources",
    is_flag=False,
    flag_value=SOURCES[0],
    type=str,
    callback=lambda _, __, value: value or False,
    help=f"Include the C sources in native FMUs: {' files, or a '.join(SOURCES)} one (default: several).",
)
@click.option(
    "--outputs",
    shell_complete=complete_variables("output"),
    multiple=True,
    metavar="PATTERN",
    help="Outputs of the FMUs, as boom.angle or 'cylinder.*', in this order; repeatable. Default: those of "
    "the model, or the usual ones.",
)
@option_of(export, "--locals", f"One of {', '.join(LOCALS)}: whether FMUs expose variables that are no outputs.")
@options_of(RunOptions, *OF_FMUS)
@package_options
@click.option("--no-execution-tool", is_flag=True, help="Declare needsExecutionTool=false for Python FMUs.")
@click.option("--reference", is_flag=True, help="Run FMUs for co-simulation, and write the results into them.")
@click.option(
    "--wrapper",
    callback=lambda context, option, value: words(context, option, value) or (),
    help=f"Write a file beside each FMU that adds it to a model: {' or '.join(WRAPPERS)}, or both as "
    f"{','.join(WRAPPERS)}.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@common_options
@click.pass_context
def command(
    context: click.Context,
    model: str,
    parts: tuple[str, ...],
    output: str,
    no_execution_tool: bool,
    quiet: bool,
    debug: bool,  # noqa: ARG001
    **options: Any,
) -> None:
    """Export MODEL as FMUs of FMI 2.0 or 3.0, for co-simulation or model exchange.

    Native FMUs have the rules of integration, rk4, rk45, rodas4 and rodas5p; those of Python have all solvers.
    MODEL may be an SSP package: its FMUs become one, with a master inside that makes equal steps.

    \b
    Example: mbsfmu export four-bar -o out --layout separate
    Example: mbsfmu export out/four-bar.ssp -o one.fmu --step 1e-3
    """
    log_to_stderr(quiet)
    coupled = is_package(model)
    options = split_options(context, options, coupled=coupled)
    with at_work("exporting", quiet):
        if coupled:
            paths = [_export_coupled(model, output, no_execution_tool, options)]
        else:
            paths = export(find_model(model, parts), output, needs_execution_tool=not no_execution_tool, **options)
    for path in paths:
        say(str(path))


def _export_coupled(package: str, output: str, no_execution_tool: bool, options: dict[str, Any]) -> Path:
    from mbsfmu.exporting.coupled_export import export_coupled  # noqa: PLC0415 - loads FMPy, which models do without

    if no_execution_tool:
        raise InputError("that no execution tool is needed is said of FMUs of 'python', not of coupled ones")
    if output == ".":
        raise InputError("an SSP package becomes one FMU: name its file, as -o one.fmu")
    return export_coupled(package, output, **options)
