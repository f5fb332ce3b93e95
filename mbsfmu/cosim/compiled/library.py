"""Compiled code of the master: compiled once on a machine, and cached."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.compiler import NoCompilerError, compile_library, is_compiled
from mbsfmu.compiling.kept import warn_once
from mbsfmu.cosim.compiled.layout import ExchangeTable, header, total_size

_MAIN = "exchange.c"
_FILES = (
    _MAIN, "iteration.h", "joint_closing.h", "joint_equations.h", "inverse.h", "states.h", "ports.h", "environment.h",
)  # fmt: skip


def exchange_function() -> Callable[..., int] | None:
    """Return the function of communication steps, or None without a compiler and cached code.

    A failure never stops a run: it is reported once, and Python makes the steps.
    """
    if not is_compiled():
        return None
    try:
        return compiled_exchange()
    except NoCompilerError:
        return None
    except (CompilerError, OSError) as error:
        warn_once(f"{error}; the master exchanges values in Python")
        return None


def setting_function() -> int | None:
    """Return the address of the function that sets inputs within steps of FMUs, or None as for `exchange_function`."""
    if exchange_function() is None:
        return None
    return ctypes.cast(compiled_library().mbsfmu_set_within, ctypes.c_void_p).value


def compiled_exchange() -> Callable[..., int]:
    """Return the function of communication steps; errors as for `compiled_library`."""
    function = compiled_library().mbsfmu_exchange
    function.argtypes, function.restype = (ctypes.POINTER(ExchangeTable), ctypes.c_size_t), ctypes.c_int
    return function


def compiled_differences() -> Callable[..., int]:
    """Return the function of the derivatives of joints; errors as for `compiled_library`."""
    function = compiled_library().mbsfmu_differences
    function.argtypes, function.restype = (ctypes.POINTER(ExchangeTable),), ctypes.c_int
    return function


def exchange_sources() -> dict[str, str]:
    """Return the C files by name."""
    sources = {name: Path(__file__).with_name(name).read_text(encoding="utf-8") for name in _FILES}
    return {**sources, "layout.h": header()}


@cache
def compiled_library() -> ctypes.CDLL:
    """Return the compiled code, loaded once in a process.

    Raises
    ------
    NoCompilerError
        When there is no compiler, and nothing is kept.
    CompilerError
        When the compiler does not do it, or what it made has other structures than Python.
    OSError
        When the library cannot be loaded.
    """
    path = compile_library(exchange_sources(), {_MAIN: "-O2"}, None, portable=False)
    library = ctypes.CDLL(str(path))
    library.mbsfmu_exchange_size.restype = ctypes.c_size_t
    if library.mbsfmu_exchange_size() != total_size():
        raise CompilerError(f"{path} lays out structures in another way than Python")
    return library
