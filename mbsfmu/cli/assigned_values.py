"""Values of variables given on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from mbsfmu.base.errors import InputError
from mbsfmu.cli.completion import complete_variables
from mbsfmu.cli.option_types import assignment
from mbsfmu.simulation.simulation import Simulation

Command = TypeVar("Command", bound=Callable[..., Any])


def values_option(command: Command) -> Command:
    """Add the option for values of parameters, start values and inputs, with optional units."""
    text = "Parameter, start value or input before the run, name=310 or name='200 bar'; repeatable."
    return click.option(
        "--set",
        "assignments",
        multiple=True,
        metavar="NAME=VALUE",
        help=text,
        shell_complete=complete_variables("settable", "="),
    )(command)


def assigned(assignments: Sequence[str]) -> dict[str, str]:
    """Return the given values by name.

    Raises
    ------
    InputError
        When an assignment does not read `name=value`, or one name is given twice.
    """
    given: dict[str, str] = {}
    for name, value in map(assignment, assignments):
        if name in given:
            raise InputError(f"{name} is given twice, as {given[name]} and as {value}")
        given[name] = value
    return given


def set_values(simulation: Simulation, assignments: Sequence[str]) -> None:
    """Set variables of a simulation before its first step.

    Raises
    ------
    InputError
        When an assignment does not read `name=value`, one variable is given twice, there is none of this name, or the
        value is refused.
    """
    given: dict[str, str] = {}
    for text in assignments:
        name, value = assignment(text)
        variable = simulation.variable(name)
        if variable.name in given:
            raise InputError(f"{variable.name} is given twice, by {given[variable.name]} and by {text}")
        given[variable.name] = text
        simulation.set(name, value)
