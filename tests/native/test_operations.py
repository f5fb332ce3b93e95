"""Traced functions as tables of operations and as C: both compute what NumPy does, to the same bit."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from itertools import pairwise
from math import copysign, inf

import casadi as ca
import numpy as np
import pytest
from runtime_sources import RUNTIME

from mbsfmu.compiling.compiler import OPTIMIZATION, compile_library, has_compiler
from mbsfmu.native import traced_code
from mbsfmu.native.c_sources import lane_width_source
from mbsfmu.native.ensemble_library import Vectors, vectors_of_this_machine
from mbsfmu.native.operations import Operations, operations_header
from mbsfmu.tracing.solved_equations import solved
from mbsfmu.tracing.workspace import Floats, TracedFunction, Workspace

needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
_HEADER = """
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "extrema.h"
#define PIECE
#define FLAT inline
typedef struct { double *x, *y; } Parts;
"""
_CALLED = """
#include "model.h"
#include "operations.h"
#include "linear.c"
{function}
__attribute__((visibility("default"))) void call(double *x, double *y, double *result) {{
    const Parts parts = {{x, y}};
    {name}(&parts, result);
}}
"""
X = (0.3, -0.7, 2.5, 0.0, -0.0)
Y = (1.4, 0.0)

_OF_ONE: Mapping[int, Callable[[float], float]] = {
    ca.OP_NEG: np.negative,
    ca.OP_EXP: np.exp,
    ca.OP_LOG: lambda a: np.log(np.float64(a)),
    ca.OP_SQRT: lambda a: np.sqrt(np.float64(a)),
    ca.OP_SQ: np.square,
    ca.OP_TWICE: lambda a: 2.0 * a,
    ca.OP_SIN: np.sin,
    ca.OP_COS: np.cos,
    ca.OP_TAN: np.tan,
    ca.OP_ASIN: np.arcsin,
    ca.OP_ACOS: np.arccos,
    ca.OP_ATAN: np.arctan,
    ca.OP_NOT: np.logical_not,
    ca.OP_FLOOR: np.floor,
    ca.OP_CEIL: np.ceil,
    ca.OP_FABS: np.fabs,
    ca.OP_SIGN: np.sign,
    ca.OP_INV: lambda a: np.divide(1.0, a),
    ca.OP_SINH: np.sinh,
    ca.OP_COSH: np.cosh,
    ca.OP_TANH: np.tanh,
    ca.OP_ASINH: np.arcsinh,
    ca.OP_ACOSH: np.arccosh,
    ca.OP_ATANH: np.arctanh,
    ca.OP_LOG1P: np.log1p,
    ca.OP_EXPM1: np.expm1,
}
_OF_TWO: Mapping[int, Callable[[float, float], float]] = {
    ca.OP_ADD: np.add,
    ca.OP_SUB: np.subtract,
    ca.OP_MUL: np.multiply,
    ca.OP_DIV: np.divide,
    ca.OP_POW: np.power,
    ca.OP_CONSTPOW: np.power,
    ca.OP_LT: np.less,
    ca.OP_LE: np.less_equal,
    ca.OP_EQ: np.equal,
    ca.OP_NE: np.not_equal,
    ca.OP_AND: np.logical_and,
    ca.OP_OR: np.logical_or,
    ca.OP_COPYSIGN: copysign,
    ca.OP_IF_ELSE_ZERO: lambda a, b: b if a else 0.0,
    ca.OP_FMIN: np.minimum,
    ca.OP_FMAX: np.maximum,
    ca.OP_ATAN2: np.arctan2,
    ca.OP_HYPOT: np.hypot,
}


@pytest.fixture(autouse=True)
def optimized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let code be optimized as much as in runs."""
    monkeypatch.delenv(OPTIMIZATION, raising=False)


def workspace() -> tuple[Workspace, ca.SX, ca.SX]:
    """Return arrays x and y with numbers, and their symbols."""
    x, y = ca.SX.sym("x", len(X)), ca.SX.sym("y", len(Y))
    arrays = Workspace({"x": x, "y": y})
    arrays.write("x", np.array(X))
    arrays.write("y", np.array(Y))
    return arrays, x, y


def called(traced: TracedFunction, text: str, elements: int) -> Floats:
    """Compile a function with one result, and call it with a result that is not empty."""
    sources = {
        "model.h": _HEADER,
        "operations.h": operations_header(),
        **{name: RUNTIME[name].read_text() for name in ("operations.c", "extrema.h", "linear.c")},
        "called.c": _CALLED.format(function=text, name=traced.name),
    }
    levels = {"operations.c": "-O2", "called.c": "-O2"}
    library = ctypes.CDLL(str(compile_library(sources, levels, None, portable=False)))
    x, y, result = np.array(X), np.array(Y), np.full(elements, 77.0)
    library.call(*(each.ctypes.data_as(ctypes.c_void_p) for each in (x, y, result)))
    return result


def both(traced: TracedFunction, elements: int) -> Floats:
    """Return what the table gives; C gives the same."""
    helpers: dict[str, str] = {}
    operations = Operations.of(traced, helpers)
    assert operations is not None
    written = ["\n".join([*helpers.values(), text]) for text in (operations.table(), operations.code())]
    by_table, by_code = (called(traced, text, elements) for text in written)
    np.testing.assert_array_equal(by_table.view(np.int64), by_code.view(np.int64))
    return by_table


@needs_compiler
def test_all_operations_are_those_of_numpy() -> None:
    arrays, x, y = workspace()
    values = [*X, *Y]
    symbols = ca.vertsplit(ca.vertcat(x, y))
    made, expected = [], []
    with np.errstate(all="ignore"):
        for operation, function in _OF_ONE.items():
            made += [ca.SX.unary(operation, each) for each in symbols]
            expected += [float(function(value)) for value in values]
        for operation, of_two in _OF_TWO.items():
            made += [ca.SX.binary(operation, *pair) for pair in pairwise(symbols)]
            expected += [float(of_two(*pair)) for pair in pairwise(values)]
    traced = arrays.traced("every", [ca.vertcat(*made)])
    used = {traced.function.instruction_id(index) for index in range(traced.function.n_instructions())}
    assert used >= {*_OF_ONE, *_OF_TWO} - {ca.OP_CONSTPOW, ca.OP_AND, ca.OP_OR}
    found = both(traced, len(made))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=4e-16)


_LANE_RUNTIME = """
#include <math.h>
#include <stdint.h>
#include <string.h>
#define PIECE
#define FLAT inline
#define ARGUMENTS(EACH) EACH(x, 5) EACH(y, 2)
#define STATE_ARRAYS(EACH)
"""
_IN_LANES = """
#include "lanes.h"
#include "linear.c"
#include "lane_linear.c"
{function}
__attribute__((visibility("default"))) void call(double *x, double *y, double *result) {{
    Lanes of_x[5], of_y[2], results[{elements}];
    LaneParts parts = {{of_x, of_y}};
    for (int lane = 0; lane < LANES; lane++) {{
        for (int i = 0; i < 5; i++) of_x[i][lane] = x[i + 5 * lane];
        for (int i = 0; i < 2; i++) of_y[i][lane] = y[i + 2 * lane];
    }}
    lanes_{name}(&parts, results);
    for (int lane = 0; lane < LANES; lane++) {{
        for (int i = 0; i < {elements}; i++) result[i + {elements} * lane] = results[i][lane];
    }}
}}
"""


def in_lanes(traced: TracedFunction, x: Floats, y: Floats, elements: int, vectors: Vectors) -> Floats:
    """Compile a function for several machines at once, and call it with numbers by lane; shape (lanes, elements)."""
    helpers: dict[str, str] = {}
    operations = Operations.of(traced, helpers)
    assert operations is not None
    text = "\n".join([*helpers.values(), operations.lanes()])
    sources = {
        "runtime.h": _LANE_RUNTIME,
        **{name: RUNTIME[name].read_text() for name in ("lanes.h", "lane_linear.c", "linear.c")},
        **lane_width_source(vectors.lanes, vector_mathematics=vectors.mathematics),
        "called.c": _IN_LANES.format(function=text, name=traced.name, elements=elements),
    }
    made = compile_library(sources, {"called.c": "-O2"}, None, portable=False, flags=vectors.flags)
    result = np.empty((vectors.lanes, elements))
    pointers = (each.ctypes.data_as(ctypes.c_void_p) for each in (x.copy(), y.copy(), result))
    ctypes.CDLL(str(made)).call(*pointers)
    return result


ALL_VECTORS = [
    Vectors(lanes, mathematics)
    for lanes in (2, 4, 8)
    if has_compiler() and lanes <= vectors_of_this_machine().lanes
    for mathematics in sorted({False, vectors_of_this_machine().mathematics})
]


@pytest.mark.parametrize("vectors", ALL_VECTORS, ids=str)
def test_lanes_compute_what_numpy_does_each_with_its_numbers(vectors: Vectors) -> None:
    """The vector library is allowed four units in the last place, the rest is exact."""
    arrays, x, y = workspace()
    symbols = ca.vertsplit(ca.vertcat(x, y))
    made = [ca.SX.unary(operation, each) for operation in _OF_ONE for each in symbols]
    made += [ca.SX.binary(operation, *pair) for operation in _OF_TWO for pair in pairwise(symbols)]
    made.append(ca.SX(np.pi))
    of_x = np.array([np.roll(X, lane) * (1.0 + 0.1 * lane) for lane in range(vectors.lanes)])
    of_y = np.array([np.roll(Y, lane) for lane in range(vectors.lanes)])
    found = in_lanes(arrays.traced("every", [ca.vertcat(*made)]), of_x, of_y, len(made), vectors)
    for lane, values in enumerate(np.hstack([of_x, of_y]).tolist()):
        with np.errstate(all="ignore"):
            expected = [float(function(value)) for function in _OF_ONE.values() for value in values]
            expected += [float(function(*pair)) for function in _OF_TWO.values() for pair in pairwise(values)]
        expected.append(np.pi)
        np.testing.assert_array_equal(np.isnan(found[lane]), np.isnan(expected))
        np.testing.assert_allclose(found[lane], expected, rtol=1e-15)


@pytest.mark.parametrize("vectors", ALL_VECTORS[-1:], ids=str)
def test_lanes_solve_linear_equations_and_clear_what_is_always_zero(vectors: Vectors) -> None:
    arrays, x, y = workspace()
    matrix = ca.SX([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.5, 1.0, 4.0]]) + ca.diag(x[:3])
    sparse = ca.SX(3, 2)
    sparse[2, 0] = x[0] * y[0]
    of_x = 0.1 * np.arange(5.0 * vectors.lanes).reshape(vectors.lanes, 5)
    of_y = np.ones((vectors.lanes, 2))
    solving = arrays.traced("solving", [solved(matrix, ca.SX([1.0, 2.0, 3.0]))])
    cleared = arrays.traced("cleared", [sparse], matrices=[0])
    found = in_lanes(solving, of_x, of_y, 3, vectors)
    for lane, values in enumerate(of_x):
        numbers = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.5, 1.0, 4.0]]) + np.diag(values[:3])
        np.testing.assert_allclose(found[lane], np.linalg.solve(numbers, [1.0, 2.0, 3.0]), rtol=1e-14)
    np.testing.assert_array_equal(in_lanes(cleared, of_x, of_y, 6, vectors)[:, 2], of_x[:, 0])
    np.testing.assert_array_equal(in_lanes(cleared, of_x, of_y, 6, vectors)[:, [0, 1, 3, 4, 5]], 0.0)


@needs_compiler
def test_constants_keep_all_their_digits_and_may_be_infinite() -> None:
    arrays, x, _ = workspace()
    constants = [np.pi, 1.0 / 3.0, -1e-300, inf, -inf]
    traced = arrays.traced("constants", [ca.vertcat(*(x[2] * 0.0 + each for each in constants), *constants)])
    np.testing.assert_array_equal(both(traced, 10), [*constants, *constants])


@needs_compiler
def test_elements_of_a_matrix_that_are_always_zero_are_cleared() -> None:
    arrays, x, y = workspace()
    matrix = ca.SX(3, 2)
    matrix[2, 0], matrix[0, 1] = x[0] * y[0], x[1]
    traced = arrays.traced("matrix", [matrix], matrices=[0])
    expected = [[0.0, -0.7], [0.0, 0.0], [0.3 * 1.4, 0.0]]
    np.testing.assert_array_equal(traced()[0], expected)
    np.testing.assert_array_equal(both(traced, 6), np.ravel(expected, order="F"))
    assert traced.length == 6  # two elements of x, one of y, a product, and two that are written


@needs_compiler
def test_long_functions_are_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced_code, "_LONG", 10)
    monkeypatch.setattr(traced_code, "_PIECE", 7)
    arrays, x, y = workspace()
    total, expected = y[0], Y[0]
    for index in range(40):
        total, expected = ca.sin(total) + x[index % 3], np.sin(expected) + X[index % 3]
    np.testing.assert_allclose(both(arrays.traced("lengthy", [total]), 1), [expected], rtol=1e-15)


@needs_compiler
def test_linear_equations_of_several_sizes_are_solved() -> None:
    arrays, x, _ = workspace()
    matrix = ca.SX([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.5, 1.0, 4.0]]) + 0.1 * x[0]
    small, right = matrix[:2, 1:], ca.horzcat(ca.SX([1.0, 2.0, 3.0]), ca.vertcat(x[2], x[1], 1.0))
    whole, of_small, doubled = solved(matrix, right), solved(small, right[:2, :1]), solved(matrix, 2.0 * right)
    numbers, given = (
        np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.5, 1.0, 4.0]]) + 0.03,
        [[1.0, 2.5], [2.0, -0.7], [3.0, 1.0]],
    )
    found = both(arrays.traced("solving", [ca.veccat(whole, of_small, doubled[1, 0])]), 9)
    expected = np.linalg.solve(numbers, given)
    np.testing.assert_allclose(found[:6], expected.ravel(order="F"), rtol=1e-14)
    np.testing.assert_allclose(found[6:8], np.linalg.solve(numbers[:2, 1:], np.array(given)[:2, 0]), rtol=1e-14)
    np.testing.assert_allclose(found[8], 2.0 * expected[1, 0], rtol=1e-14)  # nobody needs the others of it


def test_what_a_table_does_not_hold_is_left_to_others() -> None:
    arrays, x, _ = workspace()
    given = ca.MX.sym("given", 2)
    called_one = ca.Function("called", [given], [ca.sin(given)], {"never_inline": True})
    (answer,) = called_one.call([x[:2]], False, True)
    assert Operations.of(arrays.traced("calling", [answer]), {}) is None
    many = ca.densify(ca.SX(2**16 + 1, 1))
    assert Operations.of(arrays.traced("many", [many + x[0]]), {}) is None
