"""Loading of libraries: interruptions, which would be lost or print a traceback, and no search for garbage."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

INTERRUPTED = "interrupted"
"""Message on stderr."""


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """End the process immediately on interruption, as there is nothing to clean up."""
    before = {number: signal.signal(number, _end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage: modules and classes stay, and to look through them takes a tenth of the time of loading."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def interrupted_status(number: int) -> int:
    """Return the exit status of a signal, as in shells: 130 for SIGINT, 143 for SIGTERM."""
    return 128 + number


def _end(number: int, _: object) -> NoReturn:
    os.write(2, f"mbsfmu: {INTERRUPTED}\n".encode())
    os._exit(interrupted_status(number))
