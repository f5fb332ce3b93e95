"""Cache of compiled libraries: a bounded folder, shared by all processes of a user.

A name tells what a library was made from, by which compiler, and its own checksum: a file that is damaged or only
partly there is never loaded. Files appear complete or not at all, so that processes need no locks.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import logging
import math
import os
import stat
import time
from pathlib import Path

from mbsfmu.base.archives import remove_scratch, scratch_folder
from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file, reason

logger = logging.getLogger(__name__)

FOLDER = "MBSFMU_CACHE"
"""Environment variable: the folder that libraries are kept in."""
LIMIT = "MBSFMU_CACHE_MB"
"""Environment variable: size in MB that the folder may have, 1000 by default; what was not used for longest goes, by
and by: the folder may be a twentieth larger for a while."""

_LIMIT = 1000.0
_DIGITS = 32  # of each of a name's three parts: 128 bits
_ABANDONED = 3600.0  # s after which a partial file is left over from a process that died
_SHARE = 0.05  # of its size by which the folder may grow before a process clears out again, as that reads all of it


def find(content: str, maker: str | None, suffix: str) -> Path | None:
    """Return a cached library, or None.

    Parameters
    ----------
    content
        Name of what it was made from.
    maker
        Name of the compiler; None for any.
    suffix
        Of the file.

    Raises
    ------
    InputError
        When the size that the folder may have is no size.
    """
    for folder in filter(None, (_safe_folder(), _own_folder() if _has_own_folder() else None)):
        begin = content[:_DIGITS] + (f"-{maker[:_DIGITS]}-" if maker else "-")
        for name in sorted(name for name in _names(folder) if name.startswith(begin) and name.endswith(suffix)):
            path = folder / name
            if danger := _danger(path):
                warn_once(f"{path} is not used: {danger}")
            elif _is_whole(path):
                with contextlib.suppress(OSError):
                    os.utime(path)
                return path
    return None


def store(content: str, maker: str, suffix: str, library: bytes) -> Path:
    """Cache a library and return its path; a temporary one if the folder is not writable.

    Raises
    ------
    InputError
        As for `find`.
    """
    name = f"{content[:_DIGITS]}-{maker[:_DIGITS]}-{_checksum(library)}{suffix}"
    folder = _safe_folder()
    if folder is not None:
        try:
            path = _write(folder, name, library)
        except OSError as error:
            warn_once(
                f"compiled code cannot be kept in {folder}: {reason(error)}; it is compiled again in every process"
            )
        else:
            _grown[folder] = _grown.get(folder, math.inf) + len(library)  # at first, others may have left too much
            if _grown[folder] > _SHARE * _limit():
                _clear_out(folder, path)
                _grown[folder] = 0.0
            return path
    return _write(_own_folder(), name, library)


def keeps() -> bool:
    """Return whether compiled code is cached for other processes, as far as the folder tells."""
    return _safe_folder() is not None


def warn_once(sentence: str) -> None:
    """Log a warning, once in a process."""
    if sentence not in _told:
        _told.add(sentence)
        logger.warning("%s", sentence)


_told: set[str] = set()
_grown: dict[Path, float] = {}
"""Bytes by which each folder has grown by this process since it was cleared out last."""


def _write(folder: Path, name: str, library: bytes) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with complete_file(folder / name) as partial:
        partial.write_bytes(library)
    return folder / name


def _danger(path: Path) -> str | None:
    """Return why a file or folder may belong to somebody else; None if safe or missing.

    Code that is loaded runs at once, before anything can be asked of it: it must be of this user or the machine's
    administrator, and nobody else may have been able to put it there.
    """
    if not hasattr(os, "geteuid"):
        return None  # Windows gives each user a folder of their own
    try:
        status = path.stat()
    except OSError:
        return None
    if status.st_uid not in (os.geteuid(), 0):
        return "it belongs to another user"
    return "others may write it (chmod go-w)" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None


def _is_whole(path: Path) -> bool:
    """Return whether a file matches its checksum; otherwise remove it."""
    try:
        if path.stem.endswith(_checksum(path.read_bytes())):
            return True
        path.unlink()
    except OSError:
        return False
    warn_once(f"{path} is damaged; it is compiled again")
    return False


def _checksum(library: bytes) -> str:
    return hashlib.sha256(library).hexdigest()[:_DIGITS]


def _clear_out(folder: Path, newest: Path) -> None:
    """Remove the least recently used files until the folder is within its limit."""
    files = []
    for path in map(folder.joinpath, _names(folder)):
        with contextlib.suppress(OSError):  # another process may have removed it
            status = path.stat()
            if path.suffix == ".part":
                if time.time() - status.st_mtime > _ABANDONED:
                    path.unlink()
            elif path != newest:
                files.append((status.st_mtime, status.st_size, path))
    limit = _limit() - newest.stat().st_size
    kept = 0.0
    for _, size, path in sorted(files, reverse=True):
        kept += size
        if kept > limit:
            with contextlib.suppress(OSError):  # Windows keeps what is loaded
                path.unlink()


def _names(folder: Path) -> list[str]:
    """Return the names of a folder's files; names, as thousands of paths take long to make."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _limit() -> float:
    """Return the size in bytes that the folder may have.

    Raises
    ------
    InputError
        When what is given is no size.
    """
    text = os.environ.get(LIMIT, "")
    try:
        limit = float(text) if text else _LIMIT
    except ValueError:
        limit = math.nan
    if not limit >= 0.0:
        raise InputError(f"{LIMIT} is '{text}'; it must be a number of MB, 0 or more")
    return 1e6 * limit


def _folder() -> Path | None:
    """Return the folder of the user; None where there is no home."""
    _limit()  # a wrong one is refused before the folder is used, not when it is cleared out
    if given := os.environ.get(FOLDER):
        return Path(given)
    root = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        return Path(root or Path.home() / ".cache") / "mbsfmu"
    except RuntimeError:
        warn_once(f"there is no home folder to keep compiled code in; {FOLDER} may name a folder")
        return None


def _safe_folder() -> Path | None:
    """Return the folder of the user; None where others may have put something there."""
    folder = _folder()
    if folder is None:
        return None
    danger = "it is no folder" if folder.exists() and not folder.is_dir() else _danger(folder)
    if danger is None:
        return folder
    warn_once(f"nothing is kept in {folder}: {danger}; code is made anew in every process")
    return None


@functools.cache
def _own_folder() -> Path:
    """Return a folder that goes with this process."""
    folder = scratch_folder()
    atexit.register(remove_scratch, folder)
    return folder


def _has_own_folder() -> bool:
    return _own_folder.cache_info().currsize > 0
