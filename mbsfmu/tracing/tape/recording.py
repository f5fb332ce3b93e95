"""Recording of NumPy code as calls of kernels, for large mechanisms.

A `RecordedArray` is an array of indices of a future memory. NumPy functions that only move elements move indices;
functions that compute are recorded as calls of kernels. A kernel is a function of few numbers, traced once for all
calls of the same form: neither tracing nor the code grows with the mechanism. Functions marked by `kernel` are recorded
as one call each, and NumPy's own functions element by element or matrix by matrix.

Memory indices are integers. Zero, one and minus one have no memory: calls have the same form only with these at the
same arguments, so that zeros are removed as in unrolled code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import casadi as ca
import numpy as np

from mbsfmu.tracing.symbols import SymbolicArray, TracingError, expression, symbolic_array
from mbsfmu.tracing.tape.schedule import Call, MemoryIndices, joined, needed

_MOVING = {
    np.concatenate, np.stack, np.reshape, np.ravel, np.transpose, np.swapaxes, np.broadcast_to, np.tile, np.repeat,
    np.moveaxis, np.expand_dims, np.squeeze, np.atleast_1d, np.split,
}  # fmt: skip
"""NumPy's functions that move elements about and compute nothing."""


class RecordedArray:
    """An array of memory indices.

    It is not a NumPy subclass: operations that cannot be recorded fail instead of using indices as values.

    Attributes
    ----------
    recorder, places
        What records, and the places of the elements.
    """

    def __init__(self, recorder: Recorder, places: MemoryIndices) -> None:
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
        """Return whether the memory indices are the same; `==` is recorded."""
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
        operands = [self._as_indices(each) for each in inputs]
        if ufunc is np.matmul:
            return self._matrix_product(*operands)
        if method == "reduce":
            return self._reduced(ufunc, operands[0], options.get("axis", 0))
        broadcast = np.broadcast_arrays(*operands)
        return self._in_rows(ufunc, broadcast)

    def _as_indices(self, value: Any) -> MemoryIndices:
        return value.places if isinstance(value, RecordedArray) else self.recorder.constants(value)

    def _in_rows(self, function: Callable[..., Any], operands: Sequence[MemoryIndices]) -> RecordedArray:
        """Record calls for vectors of a few elements at most."""
        if operands[0].ndim <= 1 and operands[0].size <= _WIDEST:
            wrapped = [RecordedArray(self.recorder, each) for each in operands]
            return self.recorder.call(function, wrapped, {})
        rows = [self._in_rows(function, each).places for each in zip(*operands, strict=True)]
        return RecordedArray(self.recorder, np.stack(rows))

    def _reduced(self, ufunc: np.ufunc, operand: MemoryIndices, axis: int | None) -> RecordedArray:
        if axis is None:
            operand, axis = operand.ravel(), 0
        moved = np.moveaxis(operand, axis, -1)
        flat = moved.reshape(-1, moved.shape[-1])
        rows = [self.recorder.call(_reduction, [RecordedArray(self.recorder, each)], {"ufunc": ufunc}) for each in flat]
        return RecordedArray(self.recorder, np.array([each.places for each in rows]).reshape(moved.shape[:-1]))

    def _matrix_product(self, one: MemoryIndices, other: MemoryIndices) -> RecordedArray:
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
            moved = func(*_indices_of(self, args), **kwargs)
            if isinstance(moved, list):
                return [RecordedArray(self.recorder, each) for each in moved]
            return RecordedArray(self.recorder, moved)
        if func is np.where:
            return self._in_rows(np.where, np.broadcast_arrays(*(self._as_indices(each) for each in args)))
        # All others are kernels, traced with symbols: they can do what symbols can.
        return self.recorder.call(_function, args, {"called": func, **kwargs})


_WIDEST = 9


def _reduction(array: Any, *, ufunc: np.ufunc) -> Any:
    return ufunc.reduce(array)


def _function(*arguments: Any, called: Callable[..., Any], **alike: Any) -> Any:
    return called(*arguments, **alike)


def _indices_of(own: RecordedArray, argument: Any) -> Any:
    if isinstance(argument, (list, tuple)):
        return type(argument)(_indices_of(own, each) for each in argument)
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

_FOLDED = (0.0, 1.0, -1.0)
"""Numbers that distinguish the forms of calls."""
ZERO, ONE, MINUS_ONE = -1, -2, -3
"""Their memory indices."""
_MOST_FOLDED = -len(_FOLDED)
_NO_INDICES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel; kernels of the same form are shared by all models of a process.

    Attributes
    ----------
    name
        What it computes.
    function
        One vector in, one vector out.
    """

    name: str
    function: ca.Function

    @property
    def arguments(self) -> int:
        """How many numbers it takes."""
        return self.function.numel_in(0)

    @property
    def results(self) -> int:
        """How many numbers it gives."""
        return self.function.numel_out(0)

    @property
    def cost(self) -> int:
        """How many operations a call takes."""
        return self.function.n_instructions()

    def repeated(self, count: int) -> ca.Function:
        """Return a number of calls as one function with columns; cached for each number."""
        if count not in self._repeated:
            self._repeated[count] = self.function if count == 1 else self.function.map(count)
        return self._repeated[count]

    @cached_property
    def _repeated(self) -> dict[int, ca.Function]:
        return {}

    @cached_property
    def change(self) -> ca.Function:
        """Directional derivative of the results for changes of the arguments."""
        at, along = (ca.SX.sym(name, self.arguments) for name in ("x", "d"))
        return ca.Function("change", [at, along], [ca.densify(ca.jtimes(self.function(at), at, along))])

    @cached_property
    def jacobian(self) -> ca.Function:
        """The derivatives of the results by the arguments, shape (results, arguments)."""
        at = ca.SX.sym("x", self.arguments)
        return ca.Function("jacobian", [at], [ca.densify(ca.jacobian(self.function(at), at))])


def _change(values: Any, directions: Any, *, of: Kernel) -> Any:
    """Return the directional derivative of a kernel."""
    return symbolic_array(of.change(expression(values), expression(directions)))


def _jacobian(values: Any, *, of: Kernel, columns: tuple[int, ...]) -> Any:
    """Return the Jacobian of a kernel with respect to some arguments, shape (results, columns)."""
    matrix = symbolic_array(ca.vec(of.jacobian(expression(values)))).reshape((of.arguments, -1)).T
    return matrix[:, list(columns)]


@dataclass(frozen=True)
class _TracedKernel:
    """A traced kernel call.

    Attributes
    ----------
    kernel
        What computes its results; None where nothing is left to compute.
    answer
        The shape of its answer, whose elements are numbers in a table of arguments, results and constants.
    constants
        The constants.
    """

    kernel: Kernel | None
    answer: Any
    constants: tuple[float, ...]

    @property
    def cost(self) -> int:
        """Number of stored operations."""
        return 1 if self.kernel is None else 1 + self.kernel.cost


@dataclass(frozen=True)
class _Placed:
    """The same in a recorder: kernel number and memory indices of constants."""

    kernel: int | None
    answer: Any
    constants: MemoryIndices


class _Shared:
    """Traced kernels shared by all models of this process.

    What was used for longest goes where there are too many operations.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._cost = 0
        self._traced: dict[Hashable, _TracedKernel] = {}

    def of(self, key: Hashable, make: Callable[[], _TracedKernel]) -> _TracedKernel:
        """Return the entry of a key, or make it."""
        found = self._traced.pop(key, None)
        if found is None:
            found = make()
            self._cost += found.cost
            while self._cost > self._most and self._traced:
                self._cost -= self._traced.pop(next(iter(self._traced))).cost
        self._traced[key] = found
        return found


_SHARED = _Shared(1_000_000)
"""Largest number of cached operations of some 100 bytes each."""
_OWN = ("mbsfmu.", "numpy")
"""Prefixes of modules whose functions are constant in a process; user modules may be edited and are traced for each
model.
"""


def _is_lasting(value: Any) -> bool:
    """Return whether a function and its keyword arguments are constant in a process."""
    if isinstance(value, tuple):
        return all(map(_is_lasting, value))
    if callable(value):
        return getattr(value, "__module__", "").startswith(_OWN) and "<locals>" not in value.__qualname__
    return value is None or isinstance(value, (bool, int, float, str, Kernel))


@dataclass(frozen=True)
class _ImplicitValues:
    """Values defined implicitly by linear equations.

    Attributes
    ----------
    values
        The values.
    equations
        Records what vanishes at these values.
    solved
        Records by how much the values change to make up for a change of the equations.
    """

    values: RecordedArray
    equations: Callable[[], Any]
    solved: Callable[[Any], Any]


class Recorder:
    """Recorder of calls.

    Attributes
    ----------
    kernels
        What was traced.
    calls
        What was called, in its order.
    """

    def __init__(self) -> None:
        self.kernels: list[Kernel] = []
        self.calls: list[Call] = []
        self.values: list[float] = list(_FOLDED)
        """Numbers of the negative places: place −1 − k has the number k of them."""
        self._number_by_value: dict[float, int] = {value: index for index, value in enumerate(_FOLDED)}
        self._places = 0
        self._known: dict[Hashable, _Placed] = {}
        self._number_by_kernel: dict[Kernel, int] = {}
        self._made: dict[Hashable, MemoryIndices] = {}
        self._defined: dict[bytes, _ImplicitValues] = {}  # by places of values: the same ones are defined once

    @property
    def places(self) -> int:
        """Number of memory indices, without those of constants."""
        return self._places

    def new(self, count: int) -> RecordedArray:
        """Return new memory indices."""
        first, self._places = self._places, self._places + count
        return RecordedArray(self, np.arange(first, self._places))

    def constants(self, values: Any) -> MemoryIndices:
        """Return the memory indices of constants."""
        array = np.asarray(values, dtype=float)
        numbers = [self._constant(value) for value in array.ravel().tolist()]
        return np.array(numbers, dtype=np.int64).reshape(array.shape)

    def _constant(self, value: float) -> int:
        found = self._number_by_value.get(value)
        if found is None:
            found = self._number_by_value[value] = len(self.values)
            self.values.append(value)
        return -1 - found

    def call(self, function: Callable[..., Any], arguments: Sequence[Any], static: dict[str, Hashable]) -> Any:
        """Record a call of a function, and return its answer.

        Parameters
        ----------
        function
            A function of NumPy arrays.
        arguments
            Arrays, recorded or of numbers, None, and lists and tuples of such.
        static
            What else it is given; what is equal gives equal answers.
        """
        places: list[MemoryIndices] = []
        shape = self._shape(arguments, places)
        given = np.concatenate([each.ravel() for each in places]) if places else np.zeros(0, dtype=np.int64)
        seen: dict[int, int] = {}  # by first use: what is alike has the same pattern wherever it stands in memory
        pattern = tuple([seen.setdefault(place, len(seen)) for place in given.tolist()])
        folded = tuple([place if _MOST_FOLDED <= place < 0 else 0 for place in seen])
        key = (function, tuple(static.items()), shape, pattern, folded)
        placed = self._known.get(key)
        if placed is None:

            def make() -> _TracedKernel:
                return self._trace(function, arguments, static, pattern, folded)

            is_lasting = _is_lasting((function, *static.values()))
            placed = self._known[key] = self._placed(_SHARED.of(key, make) if is_lasting else make())

        taken = np.array([place for place, fold in zip(seen, folded, strict=True) if not fold], dtype=np.int64)
        made = _NO_INDICES if placed.kernel is None else self._called(placed.kernel, taken)
        table = np.concatenate([taken, made, placed.constants])
        return _mapped(placed.answer, lambda places: RecordedArray(self, table[places]))

    def _called(self, kernel: int, taken: MemoryIndices) -> MemoryIndices:
        """Return the memory indices of a kernel's results; repeated calls are shared."""
        key = kernel, taken.tobytes()
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self.new(self.kernels[kernel].results).places
            self.calls.append(Call(kernel, taken, made))
        return made

    def define(self, values: RecordedArray, equations: Callable[[], Any], solved: Callable[[Any], Any]) -> None:
        """Declare values as implicitly defined, so that their derivatives do not pass through the recorded calls.

        Parameters
        ----------
        values
            Values that were computed.
        equations
            Records what vanishes at these values, from what they follow from and from them.
        solved
            Records by how much the values change to make up for a change of the equations.
        """
        self._defined.setdefault(values.places.tobytes(), _ImplicitValues(values, equations, solved))

    def changes(self, values: Sequence[Any], directions: Sequence[tuple[RecordedArray, Any]]) -> list[RecordedArray]:
        """Return directional derivatives: by implicit definitions, otherwise by the derivatives of calls.

        Parameters
        ----------
        values
            Arrays that were computed, or numbers.
        directions
            Arrays that these depend on, whatever they have been computed from, each with how it changes, recorded or as
            numbers.
        """
        wanted = [self._indices_of(each) for each in values]
        known = list(directions)
        for each in list(self._defined.values()):
            if self._follows(wanted, each.values, self._all_indices(known)):
                resting = (each.values, np.zeros(each.values.shape))
                (change,) = self._changes_by_calls([self._indices_of(each.equations())], [*known, resting])
                unmoved = np.all(change.places == ZERO)
                known.append(resting if unmoved else (each.values, each.solved(change)))
        return self._changes_by_calls(wanted, known)

    def _follows(self, wanted: Sequence[MemoryIndices], values: RecordedArray, given: MemoryIndices) -> bool:
        """Return whether the wanted values depend on certain values through other than given ones."""
        own = np.setdiff1d(values.places, given)
        if not own.size:
            return False
        calls = needed(self.calls, wanted, self.places, given)
        used = joined([*(call.taken for call in calls), *(each.ravel() for each in wanted)])
        return bool(np.isin(own, used).any())

    def _all_indices(self, directions: Sequence[tuple[RecordedArray, Any]]) -> MemoryIndices:
        return joined([array.places.ravel() for array, _ in directions])

    def _changes_by_calls(
        self, wanted: Sequence[MemoryIndices], directions: Sequence[tuple[RecordedArray, Any]]
    ) -> list[RecordedArray]:
        change = np.full(self.places + 1, ZERO)  # the last one for constants, which change by nothing
        for array, direction in directions:
            change[array.places] = self._indices_of(direction)

        def moved(places: MemoryIndices) -> RecordedArray:
            return RecordedArray(self, change[np.maximum(places, ZERO)])

        for call in needed(self.calls, wanted, self.places, self._all_indices(directions)):
            directed = moved(call.taken)
            if np.all(directed.places == ZERO):
                continue
            given = [RecordedArray(self, call.taken), directed]
            found = self.call(_change, given, {"of": self.kernels[call.kernel]})
            change[call.made] = found.places
        return [moved(places) for places in wanted]

    def _indices_of(self, array: Any) -> MemoryIndices:
        return array.places if isinstance(array, RecordedArray) else self.constants(array)

    def jacobian(self, call: Call, columns: Sequence[int]) -> RecordedArray:
        """Return the Jacobian of all results of a call with respect to some arguments, shape (results, columns)."""
        given = RecordedArray(self, call.taken)
        static = {"of": self.kernels[call.kernel], "columns": tuple(columns)}
        result: RecordedArray = self.call(_jacobian, [given], static)
        return result

    def joined(self, arrays: Sequence[RecordedArray]) -> RecordedArray:
        """Return arrays concatenated along their first axis."""
        return RecordedArray(self, np.concatenate([each.places for each in arrays]))

    def _shape(self, argument: Any, places: list[MemoryIndices]) -> Hashable:
        """Return the structure of an argument, and append the indices of its elements to the list."""
        if argument is None:
            return None
        if isinstance(argument, (list, tuple)):
            return tuple(self._shape(each, places) for each in argument)
        if isinstance(argument, RecordedArray):
            places.append(argument.places)
            return argument.places.shape, ""
        places.append(self.constants(argument))
        return places[-1].shape, ""

    def _placed(self, traced: _TracedKernel) -> _Placed:
        """Return a traced call with the kernel number and constants of this recorder."""
        constants = np.array([self._constant(value) for value in traced.constants], dtype=np.int64)
        if traced.kernel is None:
            return _Placed(None, traced.answer, constants)
        number = self._number_by_kernel.setdefault(traced.kernel, len(self.kernels))
        if number == len(self.kernels):
            self.kernels.append(traced.kernel)
        return _Placed(number, traced.answer, constants)

    def _trace(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        static: dict[str, Hashable],
        pattern: tuple[int, ...],
        folded: tuple[int, ...],
    ) -> _TracedKernel:
        vector = ca.SX.sym("x", folded.count(0))
        symbols = iter(symbolic_array(vector).view(np.ndarray))
        distinct = [self.values[-1 - place] if place else next(symbols) for place in folded]
        elements = iter([distinct[index] for index in pattern])
        answer = function(*_mapped(arguments, lambda leaf: _with(elements, np.shape(leaf))), **static)
        found: list[Any] = []
        _mapped(answer, lambda leaf: found.extend(_elements(leaf)))
        derived = [f"_of_{each.name}" for each in static.values() if isinstance(each, Kernel)]
        return _traced("".join((function.__name__.strip("_"), *derived)), vector, answer, found)


def _traced(name: str, vector: ca.SX, answer: Any, found: list[Any]) -> _TracedKernel:
    """Return a kernel with distinct results, without results that are arguments or constants."""
    argument = {each.__hash__(): index for index, each in enumerate(ca.vertsplit(vector))}
    computed = [each for each in found if isinstance(each, ca.SX) and each.__hash__() not in argument]
    if computed:
        computed = ca.vertsplit(ca.cse([ca.vertcat(*computed)])[0])
    rest = iter(computed)
    results: dict[int, int] = {}
    kept: list[ca.SX] = []
    constants: list[float] = []
    numbers: list[tuple[str, int]] = []
    for each in found:
        value = each
        if isinstance(each, ca.SX):
            if (place := argument.get(each.__hash__())) is not None:
                numbers.append(("argument", place))
                continue
            value = next(rest)
            if not value.is_constant():
                place = results.setdefault(value.__hash__(), len(kept))
                kept += [value] * (place == len(kept))
                numbers.append(("result", place))
                continue
        numbers.append(("constant", len(constants)))
        constants.append(float(value))
    first = {"argument": 0, "result": vector.numel(), "constant": vector.numel() + len(kept)}
    order = iter([first[kind] + index for kind, index in numbers])
    template = _mapped(answer, lambda leaf: _numbered(np.shape(leaf), order))
    kernel = Kernel(name, ca.Function(name, [vector], [ca.densify(ca.vertcat(*kept))])) if kept else None
    return _TracedKernel(kernel, template, tuple(constants))


def _mapped(tree: Any, apply: Callable[[Any], Any]) -> Any:
    """Return nested lists and tuples with a function applied to each array; None unchanged."""
    if tree is None:
        return None
    return type(tree)(_mapped(each, apply) for each in tree) if isinstance(tree, (list, tuple)) else apply(tree)


def _with(elements: Iterator[Any], shape: tuple[int, ...]) -> Any:
    """Return an array of a shape with the next elements: symbols, or numbers where there is none."""
    array = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        array[index] = next(elements)
    return array.view(SymbolicArray) if any(isinstance(each, ca.SX) for each in array.flat) else array.astype(float)


def _elements(array: Any) -> list[Any]:
    return np.asarray(array, dtype=object).view(np.ndarray).ravel().tolist()


def _numbered(shape: tuple[int, ...], order: Iterator[int]) -> MemoryIndices:
    return np.array([next(order) for _ in range(math.prod(shape))], dtype=np.int64).reshape(shape)
