"""Tables on stdout and progress on stderr, with libraries loaded on demand."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mbsfmu.cli.standard_output import standard_output


def print_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table, in full width if stdout is not a terminal."""
    from rich.console import Console  # noqa: PLC0415 - see above
    from rich.table import Table  # noqa: PLC0415

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160, markup=False)
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    with standard_output():
        console.print(table)


@contextmanager
def progress_bar(text: str, quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """Show a progress bar on a terminal's stderr; return its update function, None if quiet."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415 - see above
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=1.0)
        yield lambda share: progress.update(task, completed=share)


@contextmanager
def at_work(text: str, quiet: bool) -> Iterator[None]:
    """Show an indeterminate progress on a terminal's stderr."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - see above
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(text, total=None)
        yield


def shown(value: Any) -> str:
    """Return a value as text for a table."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
