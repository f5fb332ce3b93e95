"""Archives of others, checked before they are read, and folders that go with the process for what is unpacked.

Folders for what is unpacked or compiled: they go with the process, also with one that is killed.

All of a process lie in one folder, which it holds a lock of. The system lets go of the lock however the process ends,
and the next process that needs such a folder removes those that nobody holds. Where files have no such locks (Windows),
they stay.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import remove_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

_PREFIX = "mbsfmu-scratch-"


@dataclass
class _Root:
    """The folder of a process, and the lock of it."""

    path: Path
    lock: int | None
    process: int


_guard = threading.RLock()
_roots: list[_Root] = []  # one at most, that of this process: a fork has that of its parent, which is not its own


def scratch_folder() -> Path:
    """Return a new folder; `remove_scratch` removes it.

    Raises
    ------
    OSError
        When there is no room for it.
    """
    with _guard:
        while True:
            with contextlib.suppress(FileNotFoundError):  # removed by hand
                return Path(tempfile.mkdtemp(dir=_root().path))
            _roots.clear()


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a new folder, which is removed behind."""
    folder = scratch_folder()
    try:
        yield folder
    finally:
        remove_scratch(folder)


def remove_scratch(folder: str | os.PathLike[str]) -> None:
    """Remove a folder with its content, and with the last one that of the process; interruptions are deferred."""
    remove_folder(folder)
    with _guard:
        root = next((each for each in _roots if each.path == Path(folder).parent), None)
        if root is None or root.process != os.getpid():
            return
        with contextlib.suppress(OSError):  # others lie there
            root.path.rmdir()
            _roots.remove(root)
            if root.lock is not None:
                os.close(root.lock)


def _root() -> _Root:
    """Return the folder of this process."""
    if not _roots or _roots[0].process != os.getpid():
        _roots[:] = [_new_root()]
        _remove_left(_roots[0].path)
    return _roots[0]


def _new_root() -> _Root:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        if fcntl is None:
            return _Root(path, None, os.getpid())
        with contextlib.suppress(OSError):  # another process took it for one that is left: between both lines it was
            lock = os.open(path, os.O_RDONLY)
            if _takes(lock) and path.is_dir():
                return _Root(path, lock, os.getpid())
            os.close(lock)


def _takes(lock: int) -> bool:
    """Return whether nobody else holds a lock, which is then held; file systems that have none hold all."""
    assert fcntl is not None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return not isinstance(error, BlockingIOError)
    return True


def _remove_left(own: Path) -> None:
    """Remove folders of processes that were killed."""
    if fcntl is None:
        return
    for path in own.parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # those of other users
            if path == own or path.is_symlink() or path.stat().st_uid != os.getuid():
                continue
            lock = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)


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
