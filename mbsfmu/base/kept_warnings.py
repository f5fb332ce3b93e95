"""Warnings of this package while something is done, for a report or a row of a table."""

from __future__ import annotations

import logging
from typing import Self


class KeptWarnings(logging.Handler):
    """Stores the warnings that `mbsfmu` logs inside a `with` block, each once.

    Attributes
    ----------
    sentences
        The warnings in order.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.sentences: list[str] = []

    def __enter__(self) -> Self:
        logging.getLogger("mbsfmu").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("mbsfmu").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Store a warning."""
        if (sentence := record.getMessage()) not in self.sentences:
            self.sentences.append(sentence)
