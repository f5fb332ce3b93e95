"""Line output of the commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from mbsfmu.base.files import WriteError


@contextmanager
def standard_output() -> Iterator[None]:
    """Report stdout that cannot be written; a closed pipe is not an error."""
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
