"""Parquet tables with a unit for each column."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file

if TYPE_CHECKING:
    import pyarrow

UNIT = b"unit"
"""Key of the unit in a column's metadata."""
_PARQUET = b"PAR1"
_GROUP = 1 << 20  # numbers of a group of rows, at least, in a Parquet file that was a stream


def optional(module: str, wanted: str, extra: str = "data") -> Any:
    """Import an optional library.

    Parameters
    ----------
    module
        Its name; the package is called as the name begins.
    wanted
        What needs it, for the message.
    extra
        Optional extra of this package that installs it; empty where none does.

    Raises
    ------
    InputError
        When it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        command = f"pip install 'mbsfmu[{extra}]'" if extra else f"pip install {package}"
        raise InputError(f"{wanted} needs {package}: {command}") from None


def arrow(wanted: str = "a table in Arrow's form") -> Any:
    """Return pyarrow with its Parquet module, before work starts.

    Raises
    ------
    InputError
        When it is not installed; the message names what is wanted.
    """
    optional("pyarrow.parquet", wanted)
    return optional("pyarrow", wanted)


def make_table(
    columns: Mapping[str, Sequence[Any] | NDArray[Any]], units: Mapping[str, str], metadata: Mapping[str, str]
) -> pyarrow.Table:
    """Return a table whose columns have units.

    Parameters
    ----------
    columns
        Values of each column, all of one length; None where there is none.
    units
        Units of some columns.
    metadata
        Kept as metadata of the whole.
    """
    pyarrow = arrow()

    arrays = [pyarrow.array(values, from_pandas=False) for values in columns.values()]
    fields = [
        pyarrow.field(name, array.type, metadata={UNIT: units[name]} if name in units else None)
        for name, array in zip(columns, arrays, strict=True)
    ]
    return pyarrow.Table.from_arrays(arrays, schema=pyarrow.schema(fields, metadata=dict(metadata)))


def stream_beginning(table: pyarrow.Table) -> bytes:
    """Return the start of an Arrow stream with the columns of a table."""
    return table.schema.serialize().to_pybytes()


def stream_group(table: pyarrow.Table) -> bytes:
    """Return the rows of a table as part of a stream."""
    return b"".join(batch.serialize().to_pybytes() for batch in table.combine_chunks().to_batches())


def read_stream(path: str | os.PathLike[str]) -> Iterator[pyarrow.Table]:
    """Yield the groups of rows of a stream, or of a Parquet file; a truncated last one is omitted.

    Raises
    ------
    InputError
        When it is neither.
    """
    pyarrow = arrow()

    with Path(path).open("rb") as file:
        if file.read(len(_PARQUET)) == _PARQUET:
            for group in pyarrow.parquet.ParquetFile(path).iter_batches(_GROUP):
                yield pyarrow.Table.from_batches([group])
            return
        file.seek(0)
        try:
            with pyarrow.ipc.open_stream(file) as stream:
                yield stream.schema.empty_table()
                while (group := _next_group(stream)) is not None:
                    yield pyarrow.Table.from_batches([group])
        except pyarrow.ArrowException as error:
            raise InputError(f"{path} is no stream of Arrow: {error}") from None


def _next_group(stream: Any) -> pyarrow.RecordBatch | None:
    """Return the next rows of a stream; None at its end."""
    pyarrow = arrow()

    try:
        return stream.read_next_batch()
    except (StopIteration, pyarrow.ArrowException, OSError):
        return None


def stream_to_parquet(source: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Convert a stream to a Parquet file, atomically, with one group of rows in memory at a time."""
    pyarrow = arrow()

    groups = read_stream(source)
    first = next(groups)
    with complete_file(path) as partial, pyarrow.parquet.ParquetWriter(partial, first.schema) as writer:
        waiting, count = [], 0
        for group in groups:
            waiting.append(group)
            count += len(group)
            if count * len(first.column_names) >= _GROUP:
                writer.write_table(pyarrow.concat_tables(waiting).combine_chunks())
                waiting, count = [], 0
        if waiting:
            writer.write_table(pyarrow.concat_tables(waiting).combine_chunks())


def read_parquet(path: str | os.PathLike[str]) -> pyarrow.Table:
    """Read a Parquet file.

    Raises
    ------
    InputError
        When it is none.
    """
    pyarrow = arrow()

    try:
        return pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise InputError(f"there is no file {path}") from None
        raise InputError(f"{path} is no Parquet file: {error}") from None


def unit_of(table: pyarrow.Table, column: str) -> str | None:
    """Return the unit of a column; None without a unit."""
    unit = (table.schema.field(column).metadata or {}).get(UNIT)
    return None if unit is None else unit.decode()


def column_values(column: pyarrow.ChunkedArray) -> list[Any] | NDArray[Any]:
    """Return the values of a column: an array of numbers without missing values, otherwise plain data with None."""
    numeric = arrow().types.is_floating(column.type) or arrow().types.is_integer(column.type)
    return column.to_numpy() if numeric and not column.null_count else column.to_pylist()
