"""Journal of a study: completed rows are stored at once, so that an interrupted study can continue."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import WriteError
from mbsfmu.io.formats import read_table

Row = dict[str, Any]
KEY = "key"
_TEXTS = ("status", "message", "warnings")
"""Columns in which an empty value means an empty text."""


class Journal:
    """A file with one line per point, next to the results file; removed when the results are complete.

    A line truncated by the end of its process is ignored, and the next one starts on a new line.

    Parameters
    ----------
    results
        The file that the results shall have.
    """

    def __init__(self, results: Path) -> None:
        self._results = results
        self.path = results.with_name(results.name + ".journal")
        self._stream: IO[str] | None = None

    def known(self) -> dict[str, Row]:
        """Return the rows of earlier runs by the key of their point: from the results, then from the journal."""
        rows: dict[str, Row] = {}
        if self._results.is_file():
            rows.update(self._of_results())
        if self.path.is_file():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    row = json.loads(line)
                except json.JSONDecodeError:
                    continue
                rows[row[KEY]] = row
        return rows

    def _of_results(self) -> dict[str, Row]:
        try:
            table = read_table(self._results)
        except InputError:  # whether it may be replaced is told by `refuse_to_lose`
            return {}
        if KEY not in table.columns:
            return {}
        rows = [{name: _encoded(name, value) for name, value in row.items()} for row in table.rows()]
        return {row[KEY]: row for row in rows}

    def refuse_to_lose(self, rows: Mapping[str, Row], keys: Collection[str]) -> None:
        """Refuse to overwrite rows of another study.

        Parameters
        ----------
        rows
            What `known` gave.
        keys
            Keys of the points of the study.

        Raises
        ------
        InputError
            When the file holds rows of other points, or is no table of a study.
        """
        others = len(rows.keys() - set(keys))
        if others or (self._results.exists() and not rows):
            what = f"{others} points that this study has not" if others else "something else than a study"
            raise InputError(
                f"{self._results} has {what}, which would be lost; choose another file, or say --force to replace it"
            )

    def __enter__(self) -> Self:
        self._stream = self.path.open("a", encoding="utf-8")
        if self._stream.tell():
            self._stream.write("\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            with contextlib.suppress(OSError):  # of a row that the disk did not take, as was told
                self._stream.close()

    def add(self, row: Row) -> None:
        """Append a row; it is on disk when this returns.

        Raises
        ------
        WriteError
            When the disk does not take it; the rows before are kept.
        """
        assert self._stream is not None
        try:
            self._stream.write(json.dumps(row) + "\n")
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise WriteError(self.path, error) from error

    def remove(self) -> None:
        """Remove the journal after its rows are in the results."""
        self.path.unlink(missing_ok=True)


def _encoded(name: str, value: Any) -> Any:
    """Return a value as it is stored; some formats store not-a-number or an empty text for a missing value."""
    if name in _TEXTS:
        return "" if value is None else str(value)
    return None if value == "" or value != value else value  # noqa: PLR0124 - not-a-number alone
