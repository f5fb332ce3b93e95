"""Options of `mbsfmu export` for an SSP package, which becomes one FMU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from mbsfmu.base.errors import InputError
from mbsfmu.cli.option_types import words

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
        click.option("--extrapolation", help="Of a package: zero (default), linear or quadratic."),
        click.option("--order", callback=words, help="Of a package: the order in which FMUs step, a,b."),
        click.option("--rates", callback=rates_of, help="Of a package: steps in a communication step, a=4,b=1."),
        click.option("--stop", type=float, help="Of a package: stop time in s that the FMU suggests."),
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
