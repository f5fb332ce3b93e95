"""Traced functions at many points in one call: by CasADi's interpreter, and compiled where that has taken long."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from copy import copy
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np

from mbsfmu.base.identity import content_key
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.compiler import compile_library, has_compiler, is_compiled, kept_library
from mbsfmu.compiling.kept import warn_once
from mbsfmu.native.c_sources import runtime_texts
from mbsfmu.native.shared import constants
from mbsfmu.native.traced_code import traced_code
from mbsfmu.tracing.kept_traces import toolkit
from mbsfmu.tracing.workspace import Floats, TracedFunction

CHUNK = 512
"""Points at which functions are interpreted in one call: enough to make it cheap, few enough to fit in a cache."""
_NOTICED = 0.02
"""Seconds in the interpreter from which on it is asked whether a library is there, or worth while."""
_PATIENCE = 0.15, 1e-4
"""Seconds that a function was interpreted for in this process when it is compiled, and the same for each of its
operations: as long as the compiler takes, so that neither a single run nor many of them take more than twice what they
might."""
_FILE, _LEVEL = "points.c", "-O1"  # there are no loops to optimize
_INCLUDED = ("generated.h", "extrema.h", "linear.c", "visibility.h", "prefix.h")
_CONSTANTS = ("LOOP_SMALL", "LOOP_ROUND_OFF", "LOOP_TRIALS")


class _Evaluated:
    """How a function is evaluated.

    Attributes
    ----------
    seconds
        Spent in the interpreter, and not counted yet.
    mapped
        The function at so many points, for the interpreter: at `CHUNK`, and at the rest of the last run.
    shapes, elements
        Shapes of results, and rows and columns of elements other than zero.
    library
        The compiled function; None without one.
    """

    def __init__(self, function: TracedFunction) -> None:
        self.seconds = 0.0
        self.mapped: dict[int, ca.Function] = {}
        self.shapes = [sparsity.shape for sparsity in function.sparsities]
        self.elements = [sparsity.get_triplet() for sparsity in function.sparsities]
        self.library: ctypes.CDLL | None = None
        self._key = ""

    def notice(self, function: TracedFunction) -> None:
        """Count what was spent in the interpreter, and take a library where there is one or it is worth while."""
        self._key = key = self._key or content_key("at points", function.function.serialize(), toolkit())
        _spent[key] = spent = _spent.get(key, 0.0) + self.seconds
        self.seconds = 0.0
        if key not in _libraries and is_compiled() and has_compiler():
            worth = spent > _PATIENCE[0] + _PATIENCE[1] * function.length
            library = kept_library(key)
            if library is not None or worth:
                _libraries[key] = _compiled(function, key)
        self.library = _libraries.get(key)


_evaluated: WeakKeyDictionary[TracedFunction, _Evaluated] = WeakKeyDictionary()
_spent: dict[str, float] = {}
_libraries: dict[str, ctypes.CDLL | None] = {}
"""By what functions are made of, as other simulations have the same ones; None where the compiler failed."""


def at_points(function: TracedFunction, arguments: Sequence[Floats], count: int) -> list[Floats]:
    """Return the results of a function at points, each of shape (points, rows, columns), zeros included.

    Parameters
    ----------
    function
        The function.
    arguments
        Values of the parts that it reads, contiguous: one point after the other, of matrices column by column.
    count
        Number of points.
    """
    if function not in _evaluated:
        _evaluated[function] = _Evaluated(function)
    known = _evaluated[function]
    if known.library is None and known.seconds > _NOTICED:
        known.notice(function)
    results = [np.zeros((count, columns, rows)) for rows, columns in known.shapes]
    if known.library is not None:
        pointers = [
            (ctypes.c_void_p * max(len(arrays), 1))(*(each.ctypes.data for each in arrays))
            for arrays in (arguments, results)
        ]
        known.library.mbsfmu_at_points(count, *pointers)
    else:
        begin = time.perf_counter()
        _interpret(known, function.function, arguments, results)
        known.seconds += time.perf_counter() - begin
    return [result.transpose(0, 2, 1) for result in results]


def _interpret(
    known: _Evaluated, function: ca.Function, arguments: Sequence[Floats], results: Sequence[Floats]
) -> None:
    count = len(results[0])
    for first in range(0, count, CHUNK):
        part = slice(first, min(first + CHUNK, count))
        size = part.stop - first
        if size not in known.mapped:
            known.mapped = {each: mapped for each, mapped in known.mapped.items() if each == CHUNK}
            known.mapped[size] = function.map(size)
        buffer, call = known.mapped[size].buffer()
        for index, values in enumerate(arguments):
            buffer.set_arg(index, values.reshape(count, -1)[part].data)  # pyright: ignore[reportCallIssue]
        found = [np.empty((size, len(rows))) for rows, _ in known.elements]
        for index, values in enumerate(found):
            buffer.set_res(index, values.data)  # pyright: ignore[reportCallIssue]
        call()
        for result, (rows, columns), values in zip(results, known.elements, found, strict=True):
            result[part, columns, rows] = values


def _compiled(function: TracedFunction, key: str) -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(str(compile_library(_sources(function), {_FILE: _LEVEL}, None, key=key, portable=False)))
    except (CompilerError, OSError) as error:
        warn_once(f"{error}; derivatives are not compiled, CasADi's interpreter finds them")
        return None
    library.mbsfmu_at_points.restype = None
    return library


def _sources(function: TracedFunction) -> dict[str, str]:
    """Return C that evaluates a function at many points, and what it includes."""
    helpers: dict[str, str] = {}
    traced, plain = function.function, copy(function)
    plain.into = ()  # all results are handed back
    code = traced_code(plain, helpers)
    parts = [(name, traced.numel_in(index)) for index, name in enumerate(traced.name_in())]
    sizes = [traced.numel_out(index) for index in range(traced.n_out())]
    results = "".join(f", results[{index}] + point * {size}" for index, size in enumerate(sizes))
    lines = [
        *constants(*_CONSTANTS),
        '#include "generated.h"\n#include "visibility.h"\n#include "linear.c"',
        f"typedef struct {{ const double *nothing{''.join(f', *{name}' for name, _ in parts)}; }} Parts;",
        *helpers.values(),
        code,
        "EXPORT void mbsfmu_at_points(int count, const double *const *given, double *const *results) {",
        "  for (size_t point = 0; point < (size_t)count; point++) {",
        "    Parts parts = {NULL};",
        *(f"    parts.{name} = given[{index}] + point * {size};" for index, (name, size) in enumerate(parts)),
        f"    {traced.name()}(&parts{results});",
        "  }",
        "}",
    ]
    texts = runtime_texts()
    return {_FILE: "\n".join(lines) + "\n", **{name: texts[name] for name in _INCLUDED}}
