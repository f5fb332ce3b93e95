"""What the commands write besides tables: the log on stderr, and results as JSON."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
import numpy as np

from mbsfmu.ended import RunError, RunInterrupted
from mbsfmu.files import complete_file


def log_to_stderr(quiet: bool) -> None:
    """Send the library's log to stderr: notes as well, or warnings only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    root = logging.getLogger("mbsfmu")
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING if quiet else logging.INFO)
    handler.addFilter(_once())


def _once() -> Callable[[logging.LogRecord], bool]:
    """Let each message through once: several units of one run say the same."""
    seen: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if message in seen:
            return False
        seen.add(message)
        return True

    return is_new


@contextmanager
def keep_recorded(output: str | None) -> Iterator[None]:
    """Write what was recorded until a run failed or was interrupted, and say so.

    What the system ends (SIGTERM) is interrupted too: rows are kept, and what was unpacked is removed.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except (RunError, RunInterrupted) as ended:
        if output:
            ended.result.to_file(output)
            click.echo(f"mbsfmu: {output} has what was recorded until {ended.result.time[-1]:.9g} s", err=True)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def write_json(path: str | None, data: Mapping[str, Any]) -> None:
    """Write a result as JSON, complete or not at all; numbers that are not finite become null."""
    if path is None:
        return
    with complete_file(path) as partial:
        partial.write_text(json.dumps(_plain(data), indent=2, allow_nan=False) + "\n", encoding="utf-8")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
