"""Archives of others, FMUs and packages: checked before anything in them is read or unpacked."""

from __future__ import annotations

import os
import shutil
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath

from mbsfmu.base.errors import InputError

UNPACKED_MB = "MBSFMU_UNPACKED_MB"
"""Environment variable: to how many MB an archive may unpack."""
_SMALL = 500e6
_RATIO = 100.0
"""An archive may unpack to so many bytes, and so many times its size: libraries and texts shrink to a third or a
twentieth, and what unpacks to a thousand times its size is made to fill the disk."""


@contextmanager
def opened_archive(path: Path, called: str | None = None, *, checks_names: bool = True) -> Iterator[zipfile.ZipFile]:
    """Give an archive for reading.

    Parameters
    ----------
    path
        The file.
    called
        What messages call it; its path by default.
    checks_names
        Whether names are checked; who only reads single entries, to find faults, does without.

    Raises
    ------
    InputError
        When two of its entries have one name, an entry is a link or leads out of it, or all of them would take
        more room than is allowed.
    zipfile.BadZipFile
        When it is no archive.
    OSError
        When it cannot be read.
    """
    with zipfile.ZipFile(path) as archive:
        if checks_names:
            _check_names(archive, called or str(path))
        _check_size(archive, path, called or str(path))
        yield archive


def unpack(path: Path, folder: Path, called: str | None = None) -> None:
    """Unpack an archive into a folder.

    Parameters and errors are those of `opened_archive`; beside, the disk must have room for it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with opened_archive(path, called) as archive:
        size, free = sum(each.file_size for each in archive.infolist()), shutil.disk_usage(folder).free
        if size > free:
            raise InputError(
                f"{called or path} unpacks to {_megabytes(size)}; there are {_megabytes(free)} free in {folder.parent}"
            )
        archive.extractall(folder)


def _check_names(archive: zipfile.ZipFile, called: str) -> None:
    known: set[str] = set()
    for each in archive.infolist():
        ways = PurePosixPath(each.filename), PureWindowsPath(each.filename)
        if any(".." in way.parts or way.drive or way.root for way in ways):
            raise InputError(f"{called} has the entry {each.filename}, which leads out of it")
        if stat.S_ISLNK(each.external_attr >> 16):
            raise InputError(f"{called} has the entry {each.filename}, which is a symbolic link; archives hold files")
        name = str(ways[0])
        if name in known and not each.is_dir():
            raise InputError(f"{called} has two entries {each.filename}; which of them counts is open")
        known.add(name)


def _check_size(archive: zipfile.ZipFile, path: Path, called: str) -> None:
    size, packed = sum(each.file_size for each in archive.infolist()), path.stat().st_size
    allowed = _allowed(packed)
    if size > allowed:
        raise InputError(
            f"{called} unpacks to {_megabytes(size)}, {size / packed:.0f} times its size; allowed are "
            f"{_megabytes(allowed)} ({UNPACKED_MB} sets another limit, in MB)"
        )


def _allowed(packed: int) -> float:
    text = os.environ.get(UNPACKED_MB)
    if text is None:
        return max(_SMALL, _RATIO * packed)
    try:
        given = float(text)
    except ValueError:
        given = -1.0
    if not given >= 0.0:
        raise InputError(f"{UNPACKED_MB} is '{text}'; it must be a number of MB, 0 or more")
    return 1e6 * given


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.6g} MB"
