"""Options of all commands, and of those that make a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def common_options(command: Command) -> Command:
    """Add the options that every command has."""
    command = click.option("--quiet", is_flag=True, help="No progress and no notes on stderr.")(command)
    return click.option("--debug", is_flag=True, help="Show where an error comes from.")(command)


def checkpoint_option(command: Command) -> Command:
    """Add the option for checkpoints next to the output."""
    return click.option(
        "--checkpoint",
        type=float,
        help="Time in s between saves to OUTPUT.checkpoint, from which the same call goes on after it was killed.",
    )(command)
