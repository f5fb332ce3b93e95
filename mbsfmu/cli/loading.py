"""Interruptions while libraries are loaded, which lose them, or tell them with a traceback."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

INTERRUPTED = "mbsfmu: interrupted"
"""What stderr is told."""


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """End the process where it is interrupted within: nothing has begun that would have to be put in order."""
    before = signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(*_: object) -> NoReturn:
    os.write(2, f"{INTERRUPTED}\n".encode())
    os._exit(1)
