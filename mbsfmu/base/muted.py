"""Suppression of repeated warnings."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def muted() -> Iterator[None]:
    """Limit the package's loggers to errors, because repetitions would repeat warnings."""
    logger = logging.getLogger("mbsfmu")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
