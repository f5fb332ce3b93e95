"""What the commands write besides tables: the log on stderr, and results as JSON."""

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
    """Send the library's log to stderr: notes as well, or warnings only."""
    handler = _Stderr()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    root = logging.getLogger("mbsfmu")
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING if quiet else logging.INFO)
    handler.addFilter(_once())


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to what stderr is at the time: a progress bar takes its place, and stays below the lines."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr  # the one before may be closed by now, and cannot be flushed
        super().emit(record)


def _once() -> Callable[[logging.LogRecord], bool]:
    """Let each message through once: several FMUs of one run say the same."""
    seen: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if message in seen:
            return False
        seen.add(message)
        return True

    return is_new


def warn(sentence: str) -> None:
    """Say on stderr what a command has to say whether it is quiet or not."""
    click.echo(f"mbsfmu: {sentence}", err=True)


def report_kept_rows(files: list[str], end: float) -> None:
    """Say which files have what was recorded until a time in s; nothing where there are none."""
    if files:
        warn(f"{' and '.join(files)} {'has' if len(files) == 1 else 'have'} what was recorded until {end:.9g} s")


@contextmanager
def to_the_end() -> Iterator[None]:
    """Let what writes results end before an interruption counts; the second one counts at once."""
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
    """Write a result as JSON, complete or not at all; numbers that are not finite become null."""
    if path is None:
        return
    with complete_file(path) as partial:
        partial.write_text(json.dumps(plain(data), indent=2, allow_nan=False) + "\n", encoding="utf-8")
