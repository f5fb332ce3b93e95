"""The argument MODEL of commands, and the option for files of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from mbsfmu.base.errors import InputError
from mbsfmu.cli.completion import complete_models
from mbsfmu.cli.found_models import find_model
from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.io.part_files import load_parts

Command = TypeVar("Command", bound=Callable[..., Any])


def parts_option(command: Command) -> Command:
    """Add the option for files of user-defined parts, which are run first."""

    def load(_: click.Context, __: click.Parameter, files: tuple[str, ...]) -> tuple[str, ...]:
        load_parts(files)
        return files

    help_text = "Python file with user-defined components; repeatable."
    option = click.option("--parts", multiple=True, metavar="FILE", help=help_text, is_eager=True, callback=load)
    return option(command)


def model_argument(command: Command) -> Command:
    """Add the model argument and the option for files of parts."""
    return click.argument("model", shell_complete=complete_models)(parts_option(command))


def is_fmu(argument: str) -> bool:
    """Return whether MODEL is an FMU, a package, or a folder with one."""
    return argument.lower().endswith((".fmu", ".ssp", ".ssd")) or Path(argument).is_dir()


def model_or_fmus(arguments: Sequence[str], parts: Sequence[str], what: str) -> CoupledModel | tuple[str, ...]:
    """Return the model of an argument, or the paths of FMUs.

    Parameters
    ----------
    arguments, parts
        As for `find_model`; FMU files, or an SSP file or a folder that holds one.
    what
        What has one model, for sentences.

    Raises
    ------
    InputError, DataError
        As for `find_model`; when there are several that are not FMUs.
    """
    others = [each for each in arguments if not is_fmu(each.rpartition("=")[2])]
    if not others:
        return tuple(arguments)
    if len(arguments) > 1:
        raise InputError(f"{others[0]} is given with other models; {what} has one model, or FMU files")
    return find_model(others[0], parts)
