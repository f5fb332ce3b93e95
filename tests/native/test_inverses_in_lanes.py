"""Inverses of matrices in lanes: each lane has the largest pivots of its own matrix, and is singular alone."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from runtime_sources import RUNTIME

from mbsfmu.compiling.compiler import compile_library, has_compiler
from mbsfmu.native.c_sources import lane_width_source
from mbsfmu.native.ensemble_library import vectors_of_this_machine
from mbsfmu.tracing.workspace import Floats

SIZE = 4
_RUNTIME = """
#include <math.h>
#include <stdint.h>
#include <string.h>
#define FLAT inline
#define ARGUMENTS(EACH) EACH(unused, 1)
#define STATE_ARRAYS(EACH)
"""
_CALLED = f"""
#include "lanes.h"
#include "lane_linear.c"
__attribute__((visibility("default"))) unsigned invert(double *numbers) {{
    enum {{ N = {SIZE}, COUNT = N * N }};
    Lanes matrices[COUNT];
    Mask pivots[N];
    for (int lane = 0; lane < LANES; lane++) {{
        for (int i = 0; i < COUNT; i++) matrices[i][lane] = numbers[i + COUNT * lane];
    }}
    const unsigned singular = bits_of(invert_lanes(N, matrices, pivots));
    for (int lane = 0; lane < LANES; lane++) {{
        for (int i = 0; i < COUNT; i++) numbers[i + COUNT * lane] = matrices[i][lane];
    }}
    return singular;
}}
"""


def inverted(matrices: Floats) -> tuple[Floats, int]:
    """Return inverses, shape (lanes, size, size), and the lanes with a pivot of zero as bits."""
    vectors = vectors_of_this_machine()
    sources = {
        "runtime.h": _RUNTIME,
        **{name: RUNTIME[name].read_text(encoding="utf-8") for name in ("lanes.h", "lane_linear.c")},
        **lane_width_source(vectors.lanes, vector_mathematics=False),
        "called.c": _CALLED,
    }
    library = compile_library(sources, {"called.c": "-O1"}, None, portable=False, flags=vectors.flags)
    numbers = np.ascontiguousarray(matrices.transpose(0, 2, 1))
    singular = ctypes.CDLL(str(library)).invert(numbers.ctypes.data_as(ctypes.c_void_p))
    return numbers.transpose(0, 2, 1), int(singular)


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
def test_each_lane_has_the_largest_pivots_of_its_matrix() -> None:
    """Below a first element of 1e-17 are a large one and, behind it, one of 1e-16, which leaves no digit as a pivot."""
    lanes = vectors_of_this_machine().lanes
    matrices = np.random.default_rng(5).normal(size=(lanes, SIZE, SIZE))
    for lane, matrix in enumerate(matrices):
        matrix[:, 0] = [1e-17, *np.roll([1.0, 1e-16, 0.0], lane)]
    found, singular = inverted(matrices)
    np.testing.assert_allclose(found, np.linalg.inv(matrices), rtol=1e-11, atol=1e-12)
    assert singular == 0
    matrices[1, :, 2] = 0.0
    found, singular = inverted(matrices)
    assert singular == 0b10
    np.testing.assert_allclose(found[0], np.linalg.inv(matrices[0]), rtol=1e-11, atol=1e-12)
