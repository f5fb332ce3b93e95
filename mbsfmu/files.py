"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def complete_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of a file to write; it takes its place under `path` when all went well, and goes when not.

    Raises
    ------
    FileNotFoundError
        When there is no such folder.
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"{target} cannot be written: there is no folder {target.parent}")
    handle, name = tempfile.mkstemp(dir=target.absolute().parent, prefix=target.name, suffix=".part")
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        partial.chmod(0o644)
        partial.replace(target)
    except BaseException:
        partial.unlink()
        raise
