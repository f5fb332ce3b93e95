"""The options that every command has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def common_options(command: Command) -> Command:
    """Add the options that every command has."""
    command = click.option("--quiet", is_flag=True, help="No progress and no notes on stderr.")(command)
    return click.option("--debug", is_flag=True, help="Show where an error comes from.")(command)
