"""Symbols for NumPy code: the same equations run with numbers and are traced to CasADi.

Symbols for NumPy code: the same equations run with numbers and are traced to CasADi.

A `SymbolicArray` is an array of CasADi scalars that supports NumPy's functions. Arithmetic, `@`, stacking and indexing
use NumPy's own loops over objects; purely numeric functions (`np.maximum`, `np.where`, comparisons, …) are mapped to
CasADi's. CasADi removes zeros and ones, so that a planar mechanism has the operations of a planar one.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

_lock = threading.RLock()

Scalar = Any  # a casadi.SX of shape 1 x 1, or a Python number that was folded


def _folded(value: ca.SX) -> Scalar:
    """Return a constant expression as a number."""
    return float(value) if value.is_constant() else value


# CasADi folds zeros and ones too, but a call of it takes longer than all that is done here: in a planar mechanism most
# sums and products have such a number in them. Its operators look for all that their operands could be, which takes
# several times as long as `SX.binary`.
_SX = ca.SX
_binary = ca.SX.binary


def _elementwise(function: Callable[..., Any], arguments: int) -> np.ufunc:
    def apply(*elements: Scalar) -> Scalar:
        # A copy of a symbol takes several times as long as the function.
        return _folded(function(*(each if type(each) is _SX else _SX(each) for each in elements)))

    return np.frompyfunc(apply, arguments, 1)


def _product(one: Scalar, other: Scalar) -> Scalar:
    if type(one) is _SX:
        if type(other) is _SX:
            return _binary(ca.OP_MUL, one, other)
        number, symbol = other, one
    elif type(other) is _SX:
        number, symbol = one, other
    else:
        return one * other
    if number == 0.0:
        return 0.0
    return symbol if number == 1.0 else _binary(ca.OP_MUL, one, other)


def _sum(one: Scalar, other: Scalar) -> Scalar:
    if type(one) is not _SX:
        if type(other) is not _SX:
            return one + other
        if one == 0.0:
            return other
    elif type(other) is not _SX and other == 0.0:
        return one
    return _folded(_binary(ca.OP_ADD, one, other))


def _difference(one: Scalar, other: Scalar) -> Scalar:
    if type(one) is not _SX:
        if type(other) is not _SX:
            return one - other
        if one == 0.0:
            return -other
    elif type(other) is not _SX and other == 0.0:
        return one
    return _folded(_binary(ca.OP_SUB, one, other))


_PRODUCT = np.frompyfunc(_product, 2, 1)
_SUM = np.frompyfunc(_sum, 2, 1, identity=0.0)


def _matrix_product(one: Any, other: Any) -> Any:
    """Return `one @ other` of arrays of scalars."""
    left, right = np.asarray(one, dtype=object), np.asarray(other, dtype=object)
    rows = left if left.ndim > 1 else left[np.newaxis]
    columns = right if right.ndim > 1 else right[:, np.newaxis]
    if rows.shape[-1] != columns.shape[-2]:
        raise ValueError(f"shapes {left.shape} and {right.shape} do not fit a matrix product")
    products = _PRODUCT(rows[..., :, :, np.newaxis], columns[..., np.newaxis, :, :])
    result = _SUM.reduce(products, axis=-2)
    if left.ndim == 1:
        result = result[..., 0, :]
    return result if right.ndim > 1 else result[..., 0]


_UFUNCS: dict[np.ufunc, np.ufunc] = {
    np.add: _SUM,
    np.subtract: np.frompyfunc(_difference, 2, 1),
    np.multiply: _PRODUCT,
    **{
        ufunc: _elementwise(function, 1)
        for ufunc, function in {
            np.sin: ca.sin,
            np.cos: ca.cos,
            np.tan: ca.tan,
            np.arcsin: ca.asin,
            np.arccos: ca.acos,
            np.arctan: ca.atan,
            np.sinh: ca.sinh,
            np.cosh: ca.cosh,
            np.tanh: ca.tanh,
            np.exp: ca.exp,
            np.log: ca.log,
            np.sqrt: ca.sqrt,
            np.absolute: ca.fabs,
            np.fabs: ca.fabs,
            np.sign: ca.sign,
            np.logical_not: ca.logic_not,
        }.items()
    },
    **{
        ufunc: _elementwise(function, 2)
        for ufunc, function in {
            np.maximum: ca.fmax,
            np.minimum: ca.fmin,
            np.arctan2: ca.atan2,
            np.hypot: ca.hypot,
            np.true_divide: lambda dividend, divisor: ca.SX.binary(ca.OP_DIV, dividend, divisor),
            np.power: lambda base, exponent: base**exponent,
            np.greater: ca.gt,
            np.greater_equal: ca.ge,
            np.less: ca.lt,
            np.less_equal: ca.le,
            np.equal: ca.eq,
            np.not_equal: ca.ne,
            np.logical_and: ca.logic_and,
            np.logical_or: ca.logic_or,
        }.items()
    },
}
_WHERE = _elementwise(ca.if_else, 3)
_BY_OPERATORS = {np.negative, np.positive, np.square, np.reciprocal, np.conjugate}
"""Ufuncs that NumPy's object loops perform by operators of the scalars."""
_TRACED = ", ".join(sorted(f"np.{ufunc.__name__}" for ufunc in (*_UFUNCS, np.square)))


class TracingError(TypeError):
    """Operation on a symbol that is possible on numbers only; the text is a clause that describes it."""


_BRANCHES = (
    "branches on a value (if, and, or, not, while, max, min), which numbers alone have; "
    "take np.where, np.maximum, np.minimum, np.logical_and"
)
_NUMBERS = (
    "makes a number of a value (float, int, a function of math, an array of floats, a NumPy function that knows no "
    "symbols); take arithmetic and NumPy's functions of arrays as np.sin, np.where, np.stack"
)
_IN_PLACE = "writes in place; equations are pure functions, new values get names of their own, or np.where, np.stack"


class SymbolicArray(np.ndarray[Any, np.dtype[np.object_]]):
    """Array of CasADi scalars, made by `symbols`; NumPy functions of it return such arrays."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a NumPy ufunc element by element."""
        if kwargs.get("out") is not None or method == "at":
            raise TracingError(_IN_PLACE)
        plain = [_plain(value) for value in inputs]
        if ufunc is np.matmul and method == "__call__":
            return _wrap(_matrix_product(*plain))
        if ufunc not in _UFUNCS and ufunc not in _BY_OPERATORS:
            raise TracingError(f"calls np.{ufunc.__name__}, which has no derivative here; there are {_TRACED}")
        return _wrap(getattr(_UFUNCS.get(ufunc, ufunc), method)(*plain, **kwargs))

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Apply one of NumPy's other functions."""
        if func is np.where:
            return _wrap(_WHERE(*(_plain(value) for value in args)))
        if func is np.clip:
            value, minimum, maximum = args
            return np.minimum(np.maximum(value, minimum), maximum)
        try:
            found = super().__array_function__(func, types, args, kwargs)
            return _wrap(_unnested(found.view(np.ndarray)) if isinstance(found, np.ndarray) else found)
        except TracingError:
            raise
        except TypeError as error:
            raise TracingError(f"calls np.{func.__name__} as symbols do not allow: {error}") from error

    def __getitem__(self, key: Any) -> Any:
        return _wrap(super().__getitem__(key))

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    # What numbers alone can do. CasADi gives NaN as the number of a symbol, without a word.

    def __setitem__(self, key: Any, value: Any) -> None:
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("numpy."):  # np.roll fills what it has made
            raise TracingError(_IN_PLACE)
        super().__setitem__(key, value)

    def __bool__(self) -> bool:
        return bool(self._number(_BRANCHES))

    def __float__(self) -> float:
        return float(self._number(_NUMBERS))

    def __int__(self) -> int:
        return int(self._number(_NUMBERS))

    def item(self, *place: Any) -> Any:
        """Return an element as a number, if constant."""
        return _wrap(super().item(*place))._number(_NUMBERS)

    def tolist(self) -> Any:
        """Return numbers, if all elements are constant."""
        return [each.tolist() for each in self] if self.ndim else self._number(_NUMBERS)

    def _number(self, otherwise: str) -> Any:
        """Return a constant expression as a number.

        Raises
        ------
        TracingError
            When it has not.
        """
        element = self.view(np.ndarray).item()
        if isinstance(element, ca.SX):
            raise TracingError(otherwise)
        return element


@contextmanager
def no_number_of_symbols() -> Iterator[None]:
    """Refuse conversions of symbols to numbers by NumPy in this context, such as assignment to a numeric array."""
    number = ca.SX.__float__

    def number_of_constants(symbol: ca.SX) -> float:
        if not symbol.is_constant():
            raise TracingError(_NUMBERS)
        return number(symbol)

    with _lock:
        setattr(ca.SX, "__float__", number_of_constants)  # noqa: B010
        try:
            yield
        finally:
            setattr(ca.SX, "__float__", number)  # noqa: B010


def _plain(value: Any) -> Any:
    """Return a symbolic array as a plain array of objects; numbers unchanged."""
    if isinstance(value, SymbolicArray):
        return value.view(np.ndarray)
    return _unnested(np.asarray(value, dtype=object)) if isinstance(value, np.ndarray) else value


def _unnested(array: Any) -> Any:
    """Return an array of scalars from nested symbolic arrays, as in `np.array([v[0], 0.0])`."""
    if not any(isinstance(each, SymbolicArray) for each in array.flat):
        return array
    result = np.empty(array.size, dtype=object)
    for place, each in enumerate(array.flat):
        result[place] = each.view(np.ndarray).item() if isinstance(each, SymbolicArray) else each
    return result.reshape(array.shape)


def _wrap(value: Any) -> Any:
    """Return arrays of objects, and single scalars, with the symbolic type."""
    if isinstance(value, (ca.SX, float)):
        array = np.empty((), dtype=object)
        array[()] = value
        return array.view(SymbolicArray)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.view(SymbolicArray)
    return value


def symbols(name: str, size: int) -> tuple[ca.SX, SymbolicArray]:
    """Return a vector of symbols as CasADi expression and as array for NumPy code.

    Parameters
    ----------
    name
        Name of the vector, seen only when expressions are printed.
    size
        Number of elements.
    """
    vector = ca.SX.sym(name, size)
    return vector, symbolic_array(vector)


def symbolic_array(vector: ca.SX) -> SymbolicArray:
    """Return a vector of expressions as array for NumPy code."""
    array = np.empty(vector.numel(), dtype=object)
    array[:] = ca.vertsplit(ca.vec(vector))  # much faster than one index after the other
    return array.view(SymbolicArray)


def expression(array: NDArray[Any] | float) -> ca.SX:
    """Return the result of traced code, of shape (), (k,) or (k, l), as a CasADi matrix."""
    plain = np.atleast_1d(np.asarray(array, dtype=object).view(np.ndarray))
    columns = plain.reshape(len(plain), -1).T if plain.size else np.empty((1, 0), dtype=object)
    rows = ([each if type(each) is _SX else _SX(each) for each in column] for column in columns)
    return ca.horzcat(*(ca.vertcat(*row) for row in rows))


_CUT = (ca.OP_FMAX, ca.OP_FMIN)


def leaking(value: ca.SX, share: ca.SX) -> ca.SX | None:
    """Return a vector with regularised max(a, b) and min(a, b), or None if it has neither.

    A fraction ε of the difference passes: (a + b ± (1 − ε) |a − b|) / 2. With ε = 0 it is unchanged, with ε = 1 linear
    in a and b; in between limits, dead zones, overlaps, valves and stops have a slope of at least ε / 2, independent of
    units.

    Parameters
    ----------
    value
        The vector.
    share
        ε, between 0 and 1.
    """
    symbols = ca.symvar(value)
    dense = ca.densify(value)
    function = ca.Function("whole", symbols, [dense])
    work: dict[int, ca.SX] = {}
    result: list[ca.SX] = [ca.SX(0.0)] * dense.numel()
    leaks = False
    for place in range(function.n_instructions()):
        operation = function.instruction_id(place)
        given, into = function.instruction_input(place), function.instruction_output(place)
        if operation == ca.OP_INPUT:
            work[into[0]] = symbols[given[0]]
        elif operation == ca.OP_CONST:
            work[into[0]] = ca.SX(function.instruction_constant(place))
        elif operation == ca.OP_OUTPUT:
            result[into[1]] = work[given[0]]
        elif operation in _CUT:
            one, other = (work[each] for each in given)
            rest = (1.0 - share) * ca.fabs(one - other)
            work[into[0]] = 0.5 * (one + other + (rest if operation == ca.OP_FMAX else -rest))
            leaks = True
        elif len(given) == 1:
            work[into[0]] = ca.SX.unary(operation, work[given[0]])
        else:
            work[into[0]] = ca.SX.binary(operation, work[given[0]], work[given[1]])
    return ca.vertcat(*result) if leaks else None


def is_linear(value: ca.SX, by: ca.SX) -> bool:
    """Return whether values are structurally linear in a vector: sums of products with it, and terms free of it."""
    function = ca.Function("value", [by], [value], {"allow_free": True})
    degrees: dict[int, int] = {}
    for index in range(function.n_instructions()):
        operation, given = function.instruction_id(index), function.instruction_input(index)
        if operation == ca.OP_OUTPUT:
            if degrees[given[0]] > 1:
                return False
            continue
        if operation in (ca.OP_CONST, ca.OP_PARAMETER, ca.OP_INPUT):
            degree = int(operation == ca.OP_INPUT)
        else:
            degree = _degree(operation, [degrees[each] for each in given])
        degrees[function.instruction_output(index)[0]] = degree
    return True


def _degree(operation: int, given: Sequence[int]) -> int:
    """Return the degree of a vector in the result of an operation; 2 for nonlinear operations.

    A step function has zero slopes and is not linear: only sums and products preserve linearity.
    """
    if operation in (ca.OP_ADD, ca.OP_SUB, ca.OP_NEG, ca.OP_TWICE, ca.OP_ASSIGN):
        return max(given)
    if operation == ca.OP_MUL:
        return sum(given)
    if operation == ca.OP_DIV and not given[1]:
        return given[0]
    if operation == ca.OP_IF_ELSE_ZERO and not given[0]:
        return given[1]
    return 2 if any(given) else 0
