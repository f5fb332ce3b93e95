"""Options that several commands have, and what is checked of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from mbsfmu.errors import InputError
from mbsfmu.simulation.factory import FORMULATIONS
from mbsfmu.trajectory import check_suffix

Command = TypeVar("Command", bound=Callable[..., Any])


def common_options(command: Command) -> Command:
    """Add the options that every command has."""
    command = click.option("--quiet", is_flag=True, help="No progress and no notes on stderr.")(command)
    return click.option("--debug", is_flag=True, help="Show where an error comes from.")(command)


def formulation_option(command: Command) -> Command:
    """Add the choice of a formulation."""
    return click.option("--formulation", help=f"One of {', '.join(FORMULATIONS)}.")(command)


def drift_options(command: Command) -> Command:
    """Add the options on how constraints are kept."""
    for option in (
        click.option("--penalty", type=float, help="Penalty factor of penalty, or of dca-alm by the mean mass."),
        click.option("--projections/--no-projections", default=True, help="Of dca-alm, after each step."),
        click.option("--stabilisation", type=float, help="Rate in 1/s at which dca, dca-alm close drifted loops."),
    ):
        command = option(command)
    return command


def words(_: click.Context, __: click.Parameter, value: str | None) -> list[str] | None:
    """Read words between commas."""
    return None if value is None else [each.strip() for each in value.split(",")]


def numbers(_: click.Context, __: click.Parameter, value: str | None) -> list[float] | None:
    """Read numbers between commas, as `2e-3,1e-3`."""
    try:
        return None if value is None else [float(each) for each in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"'{value}' is no list of numbers such as 2e-3,1e-3") from None


def assignment(text: str) -> tuple[str, str]:
    """Read `name=values`.

    Raises
    ------
    InputError
        When it does not read so.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise InputError(f"'{text}' is refused: it must read name=values")
    return name.strip(), value.strip()


def check_folders(*paths: str | None) -> None:
    """Refuse files in folders that are not there before the work is done, not after it."""
    for path in paths:
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise InputError(f"the folder of {path} is not there")


def check_signal_file(path: str | None) -> None:
    """Refuse a file of signals with another suffix than those there are, before the work is done."""
    if path is not None:
        check_suffix(path)
