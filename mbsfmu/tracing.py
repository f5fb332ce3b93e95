"""Symbols that go through NumPy code: the equations run as they are and are traced to CasADi.

A `SymbolicArray` is an array of CasADi scalars that answers to NumPy's functions. Arithmetic, `@`, stacking
and indexing work through NumPy's own loops over objects; functions that NumPy can only do on numbers
(`np.maximum`, `np.where`, comparisons, …) are mapped here to CasADi's. CasADi folds zeros and ones away, so
that a planar mechanism costs planar prices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

Scalar = Any  # a casadi.SX of shape 1 x 1, or a Python number that was folded


def _folded(value: ca.SX) -> Scalar:
    """Return what has become a constant as a number."""
    return float(value) if value.is_constant() else value


def _elementwise(function: Callable[..., Any], arguments: int) -> np.ufunc:
    def apply(*elements: Scalar) -> Scalar:
        return _folded(function(*(ca.SX(element) for element in elements)))

    return np.frompyfunc(apply, arguments, 1)


# CasADi folds zeros and ones too, but a call of it takes longer than all that is done here: in a planar mechanism most
# sums and products have such a number in them.


def _is(value: Scalar, number: float) -> bool:
    return not isinstance(value, ca.SX) and value == number


def _product(one: Scalar, other: Scalar) -> Scalar:
    if _is(one, 1.0):
        return other
    if _is(other, 1.0):
        return one
    if isinstance(one, ca.SX) != isinstance(other, ca.SX) and (_is(one, 0.0) or _is(other, 0.0)):
        return 0.0
    return one * other


def _sum(one: Scalar, other: Scalar) -> Scalar:
    if _is(one, 0.0):
        return other
    if _is(other, 0.0):
        return one
    result = one + other
    return _folded(result) if isinstance(result, ca.SX) else result


def _difference(one: Scalar, other: Scalar) -> Scalar:
    if _is(other, 0.0):
        return one
    result = -other if _is(one, 0.0) else one - other
    return _folded(result) if isinstance(result, ca.SX) else result


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
            np.true_divide: lambda dividend, divisor: dividend / divisor,
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


class SymbolicArray(np.ndarray[Any, np.dtype[np.object_]]):
    """An array of CasADi scalars, made by `symbols`; NumPy functions of it give such arrays again."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a NumPy ufunc element by element."""
        if kwargs.get("out") is not None or method == "at":
            return NotImplemented  # equations are pure functions: nothing is written in place
        plain = [_plain(value) for value in inputs]
        if ufunc is np.matmul and method == "__call__":
            return _wrap(_matrix_product(*plain))
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
        return _wrap(super().__array_function__(func, types, args, kwargs))

    def __getitem__(self, key: Any) -> Any:
        return _wrap(super().__getitem__(key))

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))


def _plain(value: Any) -> Any:
    """See a symbolic array as an ordinary array of objects; leave numbers as they are."""
    if isinstance(value, SymbolicArray):
        return value.view(np.ndarray)
    return np.asarray(value, dtype=object) if isinstance(value, np.ndarray) else value


def _wrap(value: Any) -> Any:
    """Give arrays of objects, and single scalars, the symbolic type."""
    if isinstance(value, (ca.SX, float)):
        array = np.empty((), dtype=object)
        array[()] = value
        return array.view(SymbolicArray)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.view(SymbolicArray)
    return value


def symbols(name: str, size: int) -> tuple[ca.SX, SymbolicArray]:
    """Make a vector of symbols, as CasADi sees it and as NumPy code takes it.

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
    """Return a vector of expressions as NumPy code takes it."""
    array = np.empty(vector.numel(), dtype=object)
    for index in range(len(array)):
        array[index] = vector[index]
    return array.view(SymbolicArray)


def expression(array: NDArray[Any] | float) -> ca.SX:
    """Turn the result of traced code, of shape (), (k,) or (k, l), into a CasADi matrix."""
    plain = np.atleast_1d(np.asarray(array, dtype=object).view(np.ndarray))
    columns = plain.reshape(len(plain), -1).T if plain.size else np.empty((1, 0), dtype=object)
    return ca.horzcat(*(ca.vertcat(*(ca.SX(element) for element in column)) for column in columns))
