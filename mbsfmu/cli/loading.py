"""Interruptions while libraries are loaded, which lose them, or tell them with a traceback."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

INTERRUPTED = "interrupted"
"""What stderr is told."""


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """End the process where it is interrupted within: nothing has begun that would have to be put in order."""
    before = {number: signal.signal(number, _end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupted_status(number: int) -> int:
    """Return the exit status of what a signal has ended, as shells have it: 130 of SIGINT, 143 of SIGTERM."""
    return 128 + number


def _end(number: int, _: object) -> NoReturn:
    os.write(2, f"mbsfmu: {INTERRUPTED}\n".encode())
    os._exit(interrupted_status(number))
