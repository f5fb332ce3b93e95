"""Arrays of places: what NumPy's functions do with them is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mbsfmu.programs.dependence import Places
from mbsfmu.tracing import TracingError

if TYPE_CHECKING:
    from mbsfmu.programs.recording import Recorder

_MOVING = {
    np.concatenate, np.stack, np.reshape, np.ravel, np.transpose, np.swapaxes, np.broadcast_to, np.tile, np.repeat,
    np.moveaxis, np.expand_dims, np.squeeze, np.atleast_1d, np.split,
}  # fmt: skip
"""NumPy's functions that move elements about and compute nothing."""


class RecordedArray:
    """An array of places.

    It is none of NumPy's own kind: what cannot be recorded fails instead of taking places for values.

    Attributes
    ----------
    recorder, places
        What records, and the places of the elements.
    """

    def __init__(self, recorder: Recorder, places: Places) -> None:
        self.recorder = recorder
        self.places = np.asarray(places)

    @property
    def shape(self) -> tuple[int, ...]:
        """As of arrays."""
        return self.places.shape

    @property
    def ndim(self) -> int:
        """As of arrays."""
        return self.places.ndim

    @property
    def size(self) -> int:
        """As of arrays."""
        return self.places.size

    @property
    def T(self) -> RecordedArray:  # noqa: N802 - NumPy's name
        """As of arrays."""
        return RecordedArray(self.recorder, self.places.T)

    def is_same_as(self, other: RecordedArray) -> bool:
        """Tell whether these are the same places: `==` is recorded."""
        return self.recorder is other.recorder and np.array_equal(self.places, other.places)

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[RecordedArray]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, key: Any) -> RecordedArray:
        return RecordedArray(self.recorder, self.places[key])

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TracingError("makes an array of numbers of what is recorded")

    def __bool__(self) -> bool:
        raise TracingError("branches on a value that is recorded")

    def __float__(self) -> float:
        raise TracingError("makes a number of what is recorded")

    def sum(self, axis: int | None = None) -> RecordedArray:
        """As of arrays."""
        return cast("RecordedArray", np.add.reduce(self, axis=axis))

    def reshape(self, *shape: int) -> RecordedArray:
        """As of arrays."""
        return RecordedArray(self.recorder, self.places.reshape(*shape))

    def ravel(self) -> RecordedArray:
        """As of arrays."""
        return RecordedArray(self.recorder, self.places.ravel())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Record what a NumPy ufunc computes, matrix by matrix or element by element."""
        if options.get("out") is not None or method == "at":
            raise TracingError("writes in place")
        operands = [self._as_places(each) for each in inputs]
        if ufunc is np.matmul:
            return self._matrix_product(*operands)
        if method == "reduce":
            return self._reduced(ufunc, operands[0], options.get("axis", 0))
        broadcast = np.broadcast_arrays(*operands)
        return self._in_rows(ufunc, broadcast)

    def _as_places(self, value: Any) -> Places:
        return value.places if isinstance(value, RecordedArray) else self.recorder.constants(value)

    def _in_rows(self, function: Callable[..., Any], operands: Sequence[Places]) -> RecordedArray:
        """Record calls for vectors of a few elements at most."""
        if operands[0].ndim <= 1 and operands[0].size <= _WIDEST:
            wrapped = [RecordedArray(self.recorder, each) for each in operands]
            return self.recorder.call(function, wrapped, {})
        rows = [self._in_rows(function, each).places for each in zip(*operands, strict=True)]
        return RecordedArray(self.recorder, np.stack(rows))

    def _reduced(self, ufunc: np.ufunc, operand: Places, axis: int | None) -> RecordedArray:
        if axis is None:
            operand, axis = operand.ravel(), 0
        moved = np.moveaxis(operand, axis, -1)
        flat = moved.reshape(-1, moved.shape[-1])
        rows = [self.recorder.call(_reduction, [RecordedArray(self.recorder, each)], {"ufunc": ufunc}) for each in flat]
        return RecordedArray(self.recorder, np.array([each.places for each in rows]).reshape(moved.shape[:-1]))

    def _matrix_product(self, one: Places, other: Places) -> RecordedArray:
        if one.ndim <= 2 and other.ndim <= 2:
            return self.recorder.call(np.matmul, [RecordedArray(self.recorder, each) for each in (one, other)], {})
        count = max(len(each) for each in (one, other) if each.ndim == 3)
        pairs = zip(*(each if each.ndim == 3 else [each] * count for each in (one, other)), strict=True)
        return RecordedArray(self.recorder, np.stack([self._matrix_product(*pair).places for pair in pairs]))

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        """Move elements about, or record what NumPy's other functions compute."""
        if func is np.shape:
            return self.shape
        if func in _MOVING:
            moved = func(*_places_of(self, args), **kwargs)
            if isinstance(moved, list):
                return [RecordedArray(self.recorder, each) for each in moved]
            return RecordedArray(self.recorder, moved)
        if func is np.where:
            return self._in_rows(np.where, np.broadcast_arrays(*(self._as_places(each) for each in args)))
        # All others are kernels, traced with symbols: they can do what symbols can.
        return self.recorder.call(_function, args, {"called": func, **kwargs})


_WIDEST = 9


def _reduction(array: Any, *, ufunc: np.ufunc) -> Any:
    return ufunc.reduce(array)


def _function(*arguments: Any, called: Callable[..., Any], **alike: Any) -> Any:
    return called(*arguments, **alike)


def _places_of(own: RecordedArray, argument: Any) -> Any:
    if isinstance(argument, (list, tuple)):
        return type(argument)(_places_of(own, each) for each in argument)
    if isinstance(argument, RecordedArray):
        return argument.places
    if (isinstance(argument, np.ndarray) and argument.dtype != np.intp) or isinstance(argument, float):
        return own.recorder.constants(argument)
    return argument


def _operator(ufunc: np.ufunc, *, swapped: bool = False) -> Callable[[RecordedArray, Any], Any]:
    def apply(self: RecordedArray, other: Any) -> Any:
        return self.__array_ufunc__(ufunc, "__call__", *((other, self) if swapped else (self, other)))

    return apply


def _alone(ufunc: np.ufunc) -> Callable[[RecordedArray], Any]:
    def apply(self: RecordedArray) -> Any:
        return self.__array_ufunc__(ufunc, "__call__", self)

    return apply


for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide, "matmul": np.matmul,
    "pow": np.power,
}.items():  # fmt: skip
    setattr(RecordedArray, f"__{_name}__", _operator(_ufunc))
    setattr(RecordedArray, f"__r{_name}__", _operator(_ufunc, swapped=True))
for _name, _ufunc in {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(RecordedArray, f"__{_name}__", _operator(_ufunc))
for _name, _ufunc in {"neg": np.negative, "pos": np.positive, "abs": np.absolute}.items():
    setattr(RecordedArray, f"__{_name}__", _alone(_ufunc))
