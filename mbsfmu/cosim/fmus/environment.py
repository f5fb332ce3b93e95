"""Floating-point environment of a thread, which an FMU may change."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

from mbsfmu.cosim.compiled.library import compiled_library, exchange_function


def environment() -> int:
    """Return the floating-point environment of this thread: rounding, and denormal numbers where code is compiled."""
    return _functions()[0]()


def restore_environment(wanted: int) -> bool:
    """Restore the floating-point environment of this thread; return whether it had changed."""
    get, put = _functions()
    if get() == wanted:
        return False
    put(wanted)
    return True


@cache
def _functions() -> tuple[Callable[[], int], Callable[[int], object]]:
    """Return the functions that get and set the environment, from compiled code or the C library."""
    if exchange_function() is not None:
        library = compiled_library()
        get, put = library.mbsfmu_environment, library.mbsfmu_set_environment
        get.restype, put.argtypes, put.restype = ctypes.c_uint32, (ctypes.c_uint32,), None
        return get, put
    try:
        library = ctypes.CDLL(None)
        return library.fegetround, library.fesetround
    except (OSError, TypeError, AttributeError):
        return lambda: 0, lambda _: None
