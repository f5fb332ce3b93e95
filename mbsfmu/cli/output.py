"""Output of commands besides tables: log on stderr, results as JSON."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

import click

from mbsfmu.base.files import complete_file
from mbsfmu.base.plain import plain


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


def write_json(path: str | None, data: Mapping[str, Any]) -> None:
    """Write a result as JSON, atomically; non-finite numbers become null."""
    if path is None:
        return
    with complete_file(path) as partial:
        partial.write_text(json.dumps(plain(data), indent=2, allow_nan=False) + "\n", encoding="utf-8")
