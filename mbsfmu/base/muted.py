"""Silence while something is done again that has told what there is to tell."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def muted() -> Iterator[None]:
    """Let the package's loggers tell errors only: repetitions would repeat warnings."""
    logger = logging.getLogger("mbsfmu")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
