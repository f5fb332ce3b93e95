"""What the commands print, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from mbsfmu.base.files import WriteError


@contextmanager
def standard_output() -> Iterator[None]:
    """Name what cannot be written; a pipe that is closed is no error of ours."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise WriteError("the standard output", error) from error


def say(text: str) -> None:
    """Print a line."""
    with standard_output():
        click.echo(text)
