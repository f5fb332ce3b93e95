"""Folders for what is unpacked or compiled: they go with the process, also with one that is killed.

All of a process lie in one folder, which it holds a lock of. The system lets go of the lock however the process ends,
and the next process that needs such a folder removes those that nobody holds. Where files have no such locks (Windows),
they stay.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
