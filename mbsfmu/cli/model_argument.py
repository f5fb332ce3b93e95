"""The argument MODEL of commands, and the option for files of parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from mbsfmu.cli.completion import complete_models
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
    return argument.endswith((".fmu", ".ssp")) or Path(argument).is_dir()
