"""NumPy code gives the same numbers traced as it gives directly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mbsfmu.tracing.symbols import SymbolicArray, expression, symbols

Array = NDArray[np.float64]
Code = Callable[..., Any]

A = np.array([[0.3, -1.2, 2.0], [0.7, 0.9, -0.4], [-1.5, 0.2, 0.6]])
B = np.array([[1.1, -0.8], [0.5, 2.2], [-0.9, 0.1]])
U = np.array([0.4, -1.7, 0.25])
V = np.array([-0.6, 0.3, 1.9])


def traced(code: Code, *arguments: Array) -> tuple[Array, Any]:
    """Trace code with symbols in the arguments' shapes; return the numbers it gives and the trace itself."""
    pairs = [symbols(f"x{index}", argument.size) for index, argument in enumerate(arguments)]
    outcome = code(*(array.reshape(value.shape) for (_, array), value in zip(pairs, arguments, strict=True)))
    function = ca.Function("code", [vector for vector, _ in pairs], [expression(outcome)])
    return np.array(function(*(argument.ravel() for argument in arguments))), outcome


def agrees(code: Code, *arguments: Array) -> None:
    direct = np.asarray(code(*arguments), dtype=float)
    numbers, outcome = traced(code, *arguments)
    assert isinstance(outcome, SymbolicArray)
    assert outcome.shape == direct.shape
    scale = np.max(np.abs(direct), initial=0.0)
    np.testing.assert_allclose(numbers, direct.reshape(len(np.atleast_1d(direct)), -1), rtol=4e-15, atol=1e-15 * scale)


def entries(least: float, most: float) -> st.SearchStrategy[list[float]]:
    """Three numbers; whole ones are frequent, so that kinks, ties and zeros are met.

    Negative zeros are made positive: CasADi folds zeros away without their sign, which arctan2 would show.
    """
    whole = st.integers(int(np.ceil(least)), int(np.floor(most))).map(float)
    number = whole | st.floats(least, most, allow_subnormal=False).map(lambda value: value + 0.0)
    return st.lists(number, min_size=3, max_size=3)


ONE_ARGUMENT: dict[str, tuple[float, float]] = {
    "sin": (-20, 20),
    "cos": (-20, 20),
    "tan": (-1.5, 1.5),
    "arcsin": (-1, 1),
    "arccos": (-1, 1),
    "arctan": (-50, 50),
    "sinh": (-20, 20),
    "cosh": (-20, 20),
    "tanh": (-20, 20),
    "exp": (-20, 20),
    "log": (1e-6, 1e6),
    "sqrt": (0, 1e6),
    "absolute": (-5, 5),
    "fabs": (-5, 5),
    "sign": (-2, 2),
    "logical_not": (-1, 1),
    "negative": (-5, 5),
    "square": (-5, 5),
}
TWO_ARGUMENTS = (
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "arctan2",
    "hypot",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "equal",
    "not_equal",
    "logical_and",
    "logical_or",
)


@settings(max_examples=30)
@pytest.mark.parametrize("name", ONE_ARGUMENT)
@given(data=st.data())
def test_function_of_one_argument(name: str, data: st.DataObject) -> None:
    values = np.array(data.draw(entries(*ONE_ARGUMENT[name])))
    agrees(getattr(np, name), values)
    agrees(lambda x: getattr(np, name)(x[1]), values)


@settings(max_examples=30)
@pytest.mark.parametrize("name", TWO_ARGUMENTS)
@given(left=entries(-2, 2), right=entries(-2, 2))
@example(left=[0.0, 1.0, -1.0], right=[0.0, 1.0, 2.0])
def test_function_of_two_arguments(name: str, left: list[float], right: list[float]) -> None:
    function, one, two = getattr(np, name), np.array(left), np.array(right)
    agrees(function, one, two)
    agrees(lambda x: function(x, two), one)
    agrees(lambda x: function(one, x), two)
    agrees(lambda x: function(x, two[0]), one)
    agrees(lambda x: function(one[0], x[2]), two)


@settings(max_examples=30)
@given(base=entries(0.1, 5), exponent=entries(-3, 3))
def test_power_and_quotient(base: list[float], exponent: list[float]) -> None:
    positive, any_sign = np.array(base), np.array(exponent)
    agrees(lambda x, y: x**y, positive, any_sign)
    agrees(np.power, positive, any_sign)
    agrees(lambda x: 2.0**x, any_sign)
    agrees(lambda x, y: y / x, positive, any_sign)
    agrees(lambda x: 1 / x, positive)
    for whole in (0, 1, 2, 3, -1):
        agrees(lambda x, power=whole: x**power, -positive)


COMPARISONS: dict[str, Code] = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}


@pytest.mark.parametrize("sign", COMPARISONS)
def test_comparison_below_at_and_above(sign: str) -> None:
    left, right = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0])
    agrees(COMPARISONS[sign], left, right)
    agrees(lambda x: COMPARISONS[sign](x, 2.0), left)
    agrees(lambda x: COMPARISONS[sign](2.0, x), left)
    agrees(lambda x: COMPARISONS[sign](right, x), left)


@settings(max_examples=50)
@given(left=entries(-2, 2), right=entries(-2, 2))
def test_where_chooses_as_numpy_does(left: list[float], right: list[float]) -> None:
    one, two = np.array(left), np.array(right)
    agrees(lambda x, y: np.where(x > y, x, y), one, two)
    agrees(lambda x: np.where(x >= 0.0, 1.0, x), one)
    agrees(lambda x: np.where(x[0] < x[1], x, -x), one)
    agrees(lambda x: np.where(np.array([True, False, True]), x, 7.0), one)
    agrees(lambda x: np.where((x != 0.0) * (x < 1.0), x**2, two), one)


def test_where_is_not_spoilt_by_the_branch_that_is_not_taken() -> None:
    numbers, _ = traced(lambda x: np.where(x > 0.0, np.log(x) / x, -1.0), np.array([0.0, -1.0, 1.0]))
    np.testing.assert_array_equal(numbers.ravel(), [-1.0, -1.0, 0.0])


@settings(max_examples=50)
@given(values=entries(-3, 3), low=entries(-2, 0), high=entries(0, 2))
def test_clip_keeps_to_its_bounds(values: list[float], low: list[float], high: list[float]) -> None:
    x0, low0, high0 = np.array(values), np.array(low), np.array(high)
    agrees(lambda x: np.clip(x, -1.0, 1.5), x0)
    agrees(lambda x: np.clip(x, low0, high0), x0)
    agrees(np.clip, x0, low0, high0)
    agrees(lambda high_symbol: np.clip(x0, -1.0, high_symbol), high0)


def test_clip_with_crossed_bounds_gives_the_upper_one() -> None:
    """As NumPy's documentation has it: where the lower bound is above the upper one, the upper one counts."""
    numbers, _ = traced(lambda x: np.clip(x, 1.0, -1.0), U)
    np.testing.assert_array_equal(numbers.ravel(), [-1.0, -1.0, -1.0])


ALGEBRA: dict[str, tuple[Code, tuple[Array, ...]]] = {
    "matrix matrix": (lambda x, y: x @ y, (A, B)),
    "matrix vector": (lambda x, y: x @ y, (A, U)),
    "vector matrix": (lambda x, y: x @ y, (U, B)),
    "vector vector": (lambda x, y: x @ y, (U, V)),
    "numbers on the left": (lambda x: A @ x, (U,)),
    "numbers on the right": (lambda x: x @ A, (U,)),
    "chain": (lambda x, y: x.T @ A @ x + y @ x, (A, A.T.copy())),
    "transpose": (lambda x: x.T @ U, (B,)),
    "stack of matrices": (lambda x: np.stack([A, 2 * A]) @ x, (U,)),
    "dot": (np.dot, (A, U)),
    "outer": (np.outer, (U, V)),
    "cross": (np.cross, (U, V)),
    "cross with numbers": (lambda x: np.cross(np.array([0.0, 0.0, 1.0]), x), (U,)),
    "cross of rows": (np.cross, (A, A[::-1].copy())),
    "sum": (np.sum, (A,)),
    "sum over rows": (lambda x: np.sum(x, axis=0), (A,)),
    "sum over columns, kept": (lambda x: x.sum(axis=1, keepdims=True), (A,)),
    "cumulative sum": (np.cumsum, (U,)),
    "product": (np.prod, (U,)),
    "trace": (np.trace, (A,)),
    "built-in sum": (sum, (U,)),
    "largest": (np.max, (U,)),
    "largest of columns": (lambda x: np.max(x, axis=0), (A,)),
    "smallest": (np.min, (U,)),
    "largest with a start": (lambda x: np.max(x, initial=0.5), (U,)),
    "any": (lambda x: np.any(x > 1.0), (U,)),
    "all": (lambda x: np.all(x > -2.0), (U,)),
}


@pytest.mark.parametrize("name", ALGEBRA)
def test_algebra(name: str) -> None:
    code, arguments = ALGEBRA[name]
    agrees(code, *arguments)


SHAPES: dict[str, Code] = {
    "one": lambda x: x[1, 2],
    "row": lambda x: x[1],
    "last row": lambda x: x[-1],
    "column": lambda x: x[:, 0],
    "slice": lambda x: x[1:, ::-1],
    "ellipsis": lambda x: x[..., 1],
    "new axis": lambda x: x[0][:, None] * x[1][None, :],
    "list": lambda x: x[[2, 0]],
    "mask": lambda x: x[np.array([True, False, True])],
    "open mesh": lambda x: x[np.ix_([0, 2], [1, 0])],
    "diagonal": np.diag,
    "ravel": np.ravel,
    "reshape": lambda x: np.reshape(x, (1, 9)),
    "transpose": np.transpose,
    "flip": np.flip,
    "roll": lambda x: np.roll(x, 1, axis=0),
    "repeat": lambda x: np.repeat(x[0], 2),
    "tile": lambda x: np.tile(x[0], 2),
    "broadcast": lambda x: np.broadcast_to(x[0], (2, 3)),
    "concatenate": lambda x: np.concatenate([x, x[:1]]),
    "concatenate across": lambda x: np.concatenate([x, x[:, :1]], axis=1),
    "concatenate with numbers": lambda x: np.concatenate([np.array([1.0, 2.0]), x[0]]),
    "concatenate with a list": lambda x: np.concatenate([x[0], [3.0]]),
    "stack": lambda x: np.stack([x[0], x[2]]),
    "stack across": lambda x: np.stack([x[0], x[2]], axis=-1),
    "stack of scalars and numbers": lambda x: np.stack([x[0, 0], 1.0, x[1, 1]]),
    "hstack": lambda x: np.hstack([x[0], V]),
    "vstack": lambda x: np.vstack([x[0], V]),
    "column stack": lambda x: np.column_stack([x[0], V]),
    "block": lambda x: np.block([[x, np.eye(3)], [np.zeros((3, 3)), x]]),
    "rows one by one": lambda x: np.stack([row @ row for row in x]),
    "scalar times numbers": lambda x: x[0, 1] * U + U * x[1, 0] - np.float64(2.0) * x[1, 1],
}


@pytest.mark.parametrize("name", SHAPES)
def test_indexing_and_stacking(name: str) -> None:
    agrees(SHAPES[name], A)


def test_array_of_scalars_keeps_their_places() -> None:
    """`np.array` gives an ordinary array of objects, which `expression` takes as well."""
    numbers, _ = traced(lambda x: np.array([[x[0], 0.0], [1.0, x[2]]]), U)
    np.testing.assert_array_equal(numbers, [[U[0], 0.0], [1.0, U[2]]])


def test_array_can_be_unpacked() -> None:
    def code(x: Any) -> Any:
        one, two, three = x
        return one * two - three

    agrees(code, U)


@settings(max_examples=30)
@given(st.lists(st.floats(-3, 3, allow_subnormal=False), min_size=9, max_size=9), entries(-2, 2))
def test_code_of_several_steps(numbers: list[float], vector: list[float]) -> None:
    """Something like the equations: a rotation, friction with a kink, a saturated input."""

    def code(matrix: Any, x: Any) -> Any:
        c, s = np.cos(x[0]), np.sin(x[0])
        turned = np.stack([np.stack([c, -s, 0.0]), np.stack([s, c, 0.0]), np.stack([0.0, 0.0, 1.0])]) @ matrix
        friction = np.where(np.abs(x) < 0.5, x, np.sign(x) * np.maximum(np.abs(x), 0.7))
        return np.concatenate([turned @ friction, np.clip(matrix[1], -1.0, 1.0)])

    matrix0, x0 = np.array(numbers).reshape(3, 3), np.array(vector)
    np.testing.assert_allclose(traced(code, matrix0, x0)[0].ravel(), code(matrix0, x0), rtol=1e-13, atol=1e-13)


# -- zeros and shapes ---------------------------------------------------------------------------------------


def zero_places(outcome: Any) -> list[bool]:
    matrix = ca.densify(expression(outcome))
    return [matrix[index].is_zero() for index in range(matrix.numel())]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (lambda x: x, [False, False, False]),
        (lambda x: 0.0 * x, [True, True, True]),
        (lambda x: x * np.array([1.0, 0.0, 1.0]), [False, True, False]),
        (lambda x: np.diag([1.0, 1.0, 0.0]) @ x, [False, False, True]),
        (lambda x: np.cross(np.array([0.0, 0.0, 1.0]), x), [False, False, True]),
        (lambda x: np.sin(0.0 * x) + np.array([0.0, 1.0, 0.0]), [True, False, True]),
        (lambda x: np.where(np.array([True, False, True]), x, 0.0), [False, True, False]),
        (lambda x: x - x, [True, True, True]),
        (lambda x: np.concatenate([x[:1], np.zeros(2)]), [False, True, True]),
    ],
)
def test_zero_is_known_as_zero(code: Code, expected: list[bool]) -> None:
    _, x = symbols("x", 3)
    assert zero_places(code(x)) == expected


def test_ones_and_zeros_cost_nothing() -> None:
    vector, x = symbols("x", 3)
    same = ca.Function("same", [vector], [expression(np.eye(3) @ (1.0 * x + 0.0))])
    bare = ca.Function("bare", [vector], [vector])
    assert same.n_instructions() == bare.n_instructions()


def test_planar_rotation_stays_planar() -> None:
    """Turned about z, the z component is passed through, and x and y do not depend on it."""
    vector, q = symbols("q", 4)
    c, s, zero, one = np.cos(q[0]), np.sin(q[0]), 0.0 * q[0], 0.0 * q[0] + 1.0
    rotation = np.stack([np.stack([c, -s, zero]), np.stack([s, c, zero]), np.stack([zero, zero, one])])
    turned = expression(rotation @ q[1:])
    assert ca.is_equal(turned[2], vector[3])
    jacobian = ca.sparsify(ca.jacobian(turned, vector))
    rows, columns = jacobian.sparsity().get_triplet()
    assert sorted(zip(rows, columns, strict=True)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 3)]


def test_derivative_of_traced_code_is_the_derivative() -> None:
    """d/dx (x² sin x) = 2 x sin x + x² cos x, written by hand."""
    vector, x = symbols("x", 3)
    slope = ca.Function("slope", [vector], [ca.jacobian(expression(x**2 * np.sin(x)), vector)])
    np.testing.assert_allclose(np.array(slope(U)), np.diag(2 * U * np.sin(U) + U**2 * np.cos(U)), rtol=1e-14)


@pytest.mark.parametrize(
    ("array", "shape"),
    [(2.5, (1, 1)), (np.float64(2.5), (1, 1)), (U, (3, 1)), (B, (3, 2)), (B.T, (2, 3)), (np.zeros(0), (0, 1))],
)
def test_expression_of_numbers(array: Any, shape: tuple[int, int]) -> None:
    matrix = expression(array)
    assert matrix.shape == shape
    np.testing.assert_array_equal(np.array(ca.DM(matrix)), np.reshape(array, shape))


def test_symbols_are_named_and_counted() -> None:
    vector, array = symbols("speed", 2)
    assert array.shape == (2,)
    assert [str(element) for element in ca.vertsplit(vector)] == ["speed_0", "speed_1"]
    assert ca.is_equal(expression(array), vector, 1)
    empty, none = symbols("none", 0)
    assert (empty.shape, none.shape) == ((0, 1), (0,))


def test_symbols_cannot_be_added_to_in_place() -> None:
    _, x = symbols("x", 2)
    with pytest.raises(TypeError):
        np.add.at(x, 0, 1.0)


def test_numbers_fold_before_casadi_is_called() -> None:
    """Zeros and ones leave numbers or the symbols themselves, differences that vanish a number."""
    _, array = symbols("x", 2)
    kept = [type(each) for each in (array * np.array([0.0, 1.0])).view(np.ndarray)]
    assert kept == [float, ca.SX]
    planar = np.array([[1.0, 0.0], [0.0, 0.0]]) @ array
    assert [type(each) for each in planar.view(np.ndarray)] == [ca.SX, float]
    assert (array - array).view(np.ndarray).tolist() == [0.0, 0.0]
    assert np.cos(0.0 * array).view(np.ndarray).tolist() == [1.0, 1.0]


def test_division_of_folded_numbers_is_that_of_floats() -> None:
    _, array = symbols("x", 1)
    assert np.isinf(float(expression(np.ones(1) / (0.0 * array))))


@pytest.mark.parametrize(
    ("left", "right"), [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((4, 2, 3), (3,))]
)
def test_matrix_products_of_any_shape_are_numpy_s(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    one, other = random.normal(size=left), random.normal(size=right)
    agrees(lambda given: given @ other, one)


def test_matrix_products_that_do_not_fit_are_refused() -> None:
    _, array = symbols("x", 3)
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(2, 2\) do not fit"):
        array @ np.eye(2)


@pytest.mark.parametrize(
    "written",
    [
        lambda given: given @ np.array([-given[1], given[0], 2.0]),
        lambda given: np.array([given[2], 1.0, given[0]]) * given,
        lambda given: np.concatenate([np.array([-given[1], 0.5]), given]) ** 2,
        lambda given: np.cross(given, np.array([given[1], 0.0, given[0]])),
    ],
)
def test_arrays_of_elements_and_numbers_may_be_written_out(written: Callable[[Any], Any]) -> None:
    agrees(written, np.array([0.3, -1.2, 0.7]))
