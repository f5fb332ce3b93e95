"""What cannot be traced is refused where it is written, by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from numpy.typing import NDArray

from mbsfmu.tracing.symbols import TracingError, expression, no_number_of_symbols, symbols

Array = NDArray[np.float64]
Code = Callable[..., Any]

A = np.array([[0.3, -1.2, 2.0], [0.7, 0.9, -0.4], [-1.5, 0.2, 0.6]])


def _add(x: Any) -> None:
    x += 1.0


def _multiply(x: Any) -> None:
    x *= np.ones(3)


def _multiply_matrix(x: Any) -> None:
    x @= np.eye(3)


def _add_to_numbers(x: Any) -> None:
    total = np.zeros(3)
    total += x


IN_PLACE: dict[str, Code] = {
    "x += 1": _add,
    "x *= numbers": _multiply,
    "x @= numbers": _multiply_matrix,
    "numbers += x": _add_to_numbers,
    "out is x": lambda x: np.sin(x, out=x),
    "out is an array of numbers": lambda x: np.add(x, 1.0, out=np.zeros(3)),
    "out is an array of objects": lambda x: np.add(x, 1.0, out=np.zeros(3, dtype=object)),
}


@pytest.mark.parametrize("way", IN_PLACE)
def test_writing_in_place_is_refused(way: str) -> None:
    _, x = symbols("x", 3)
    with pytest.raises(TracingError, match="writes in place"):
        IN_PLACE[way](x)
    assert str(expression(x)) == "[x_0, x_1, x_2]"


@pytest.mark.parametrize(
    "code", [lambda x: bool(x[0] > 0.0), lambda x: max(x[0], x[1]), lambda x: -x if x[0] < 0.0 else x]
)
def test_branch_on_a_symbol_is_refused(code: Code) -> None:
    """Traced once, a branch would hold for one side only."""
    _, x = symbols("x", 3)
    with pytest.raises(TracingError, match="branches on a value"):
        code(x)


@pytest.mark.parametrize(
    "code",
    [
        lambda x: math.sin(x[0]),
        lambda x: float(x[0]),
        lambda x: int(x[0]),
        lambda x: x[0].item(),
        lambda x: x.item(1),
        lambda x: x.tolist(),
    ],
)
def test_number_of_a_symbol_is_refused(code: Code) -> None:
    """CasADi gives NaN, without a word."""
    _, x = symbols("x", 3)
    with pytest.raises(TracingError, match="makes a number of a value"):
        code(x)


def _put(x: Any) -> None:
    numbers = np.zeros(3)
    numbers[1] = x[0]


@pytest.mark.parametrize(
    "code",
    [_put, lambda x: float(X)],
)
def test_numbers_of_symbols_are_refused_within_numpy(code: Code) -> None:
    _, x = symbols("x", 3)
    with no_number_of_symbols(), pytest.raises(TracingError, match="makes a number of a value"):
        code(x)
    assert np.isnan(float(X))
    with no_number_of_symbols():
        assert float(ca.SX(2.5)) == 2.5


X = ca.SX.sym("X")


def test_what_has_become_a_number_is_one() -> None:
    _, x = symbols("x", 3)
    folded = 0.0 * x
    assert not folded[1]
    assert float(folded[2]) == 0.0
    assert folded.tolist() == [0.0, 0.0, 0.0]


def test_elements_are_not_replaced() -> None:
    _, x = symbols("x", 3)
    with pytest.raises(TracingError, match="writes in place"):
        x[0] = 1.0


def test_functions_without_derivatives_are_refused_by_name() -> None:
    _, x = symbols("x", 3)
    with pytest.raises(TracingError, match=r"calls np\.interp as symbols do not allow"):
        np.interp(x, [0.0, 1.0], [0.0, 1.0])
    with pytest.raises(TracingError, match=r"calls np\.floor, which .* there are np\.absolute, .*np\.sin"):
        np.floor(x)


@pytest.mark.parametrize("code", [lambda x: np.linalg.solve(A, x), lambda x: np.interp(x, [0.0, 1.0], [0.0, 1.0])])
def test_function_of_numbers_only_is_refused(code: Code) -> None:
    _, x = symbols("x", 3)
    with pytest.raises(TypeError):
        code(x)
