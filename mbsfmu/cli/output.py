"""Output of commands: lines and tables on stdout, log and progress on stderr, results as JSON, places of files."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import click

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import WriteError, complete_file
from mbsfmu.base.identity import plain


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


def log_to_stderr(quiet: bool) -> None:
    """Send the library's log to stderr: all notes, or warnings only."""
    handler = _Stderr()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    root = logging.getLogger("mbsfmu")
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING if quiet else logging.INFO)
    handler.addFilter(_once())


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to the present stderr, above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr  # the one before may be closed by now, and cannot be flushed
        super().emit(record)


def _once() -> Callable[[logging.LogRecord], bool]:
    """Pass each message once: several FMUs of one run have the same messages."""
    seen: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if message in seen:
            return False
        seen.add(message)
        return True

    return is_new


def warn(sentence: str) -> None:
    """Write a message to stderr, also in quiet mode."""
    click.echo(f"mbsfmu: {sentence}", err=True)


def report_kept_rows(files: list[str], end: float) -> None:
    """Report the files with rows recorded until a time in s; nothing without files."""
    if files:
        warn(f"{' and '.join(files)} {'has' if len(files) == 1 else 'have'} what was recorded until {end:.9g} s")


@contextmanager
def to_the_end() -> Iterator[None]:
    """Defer an interruption until results are written; a second one counts at once."""
    before = signal.getsignal(signal.SIGINT)
    waiting = False

    def wait(*_: object) -> None:
        nonlocal waiting
        if waiting:
            raise KeyboardInterrupt
        waiting = True
        warn("the results are still being written; interrupt once more to lose them")

    signal.signal(signal.SIGINT, wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt


def output_file(*suffixes: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return the check of an output file: suffix and folder."""

    def check(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
        if value is None:
            return None
        if Path(value).suffix.lower() not in suffixes:
            raise click.BadParameter(f"{value} is refused: its name must end in {' or '.join(suffixes)}")
        check_place(value)
        return value

    return check


def check_place(file: str) -> None:
    """Check the place of an output file: a folder that exists, and no folder itself."""
    if not Path(file).absolute().parent.is_dir():
        raise click.BadParameter(f"the folder of {file} is not there")
    if Path(file).is_dir():
        raise click.BadParameter(f"{file} is a folder")


def refuse_same_files(*files: str | None, inputs: Iterable[str] = ()) -> None:
    """Refuse two results in one file, and a result that would overwrite an input.

    Raises
    ------
    InputError
        When two of the paths mean one file.
    """
    taken = {Path(each).resolve() for each in inputs}
    for file in files:
        if file is None:
            continue
        if Path(file).resolve() in taken:
            raise InputError(f"{file} is named twice; a result needs a file of its own")
        taken.add(Path(file).resolve())


def write_json(path: str | None, data: Mapping[str, Any]) -> None:
    """Write a result as JSON, atomically; non-finite numbers become null."""
    if path is None:
        return
    with complete_file(path) as partial:
        partial.write_text(json.dumps(plain(data), indent=2, allow_nan=False) + "\n", encoding="utf-8")


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
