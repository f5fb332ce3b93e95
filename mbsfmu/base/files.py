"""Files written atomically, and error messages on failures."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CARRIED = "machine.json"
"""Name of the file with machine data in an FMU's resources."""
_MOST_OF_NAME = 100  # so that the name while it is written is not too long where the file's own is not


class WriteError(OSError):
    """Failure to write a file: the message names it and the reason; `reason` has the reason alone."""

    def __init__(self, what: str | os.PathLike[str], error: OSError) -> None:
        self.reason = reason(error)
        super().__init__(f"{what} cannot be written: {self.reason}")


def reason(error: OSError) -> str:
    """Return the system's text of an error, without number and file."""
    if isinstance(error, WriteError):
        return error.reason
    return os.strerror(error.errno) if error.errno else error.strerror or str(error)


def new_file(folder: Path, prefix: str, suffix: str) -> tuple[int, Path]:
    """Create a file of a new name, whose permissions are those that the user's umask leaves; return it open.

    Raises
    ------
    OSError
        When the folder does not take it.
    """
    while True:
        path = folder / f"{prefix}{secrets.token_hex(4)}{suffix}"
        with contextlib.suppress(FileExistsError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), path


@contextmanager
def complete_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path; it replaces `path` on success and is removed on failure.

    Raises
    ------
    WriteError
        When there is no such folder, or it does not take the file: the disk is full, say. What else may be raised
        where the file is written is raised as it is, such as that another file cannot be read.
    """
    target = Path(path)
    if not target.absolute().parent.is_dir():
        raise WriteError(target, FileNotFoundError(0, f"there is no folder {target.parent}"))
    partial: Path | None = None
    try:
        handle, partial = new_file(target.absolute().parent, target.name[:_MOST_OF_NAME], ".part")
        os.close(handle)
        yield partial
        partial.replace(target)
    except BaseException as error:
        if partial is not None:
            with contextlib.suppress(OSError):  # the folder may have gone
                partial.unlink()
        if isinstance(error, OSError) and (partial is None or error.filename in (None, str(partial))):
            raise WriteError(target, error) from error
        raise


@contextmanager
def all_or_none(files: list[Path]) -> Iterator[None]:
    """Remove the listed files if not all could be written."""
    try:
        yield
    except BaseException:
        for file in files:
            with contextlib.suppress(OSError):
                file.unlink()
        raise


def remove_folder(path: str | os.PathLike[str]) -> None:
    """Remove a folder with its content; interruptions are deferred."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(path, ignore_errors=True)
        raise
