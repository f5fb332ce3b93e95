"""NumPy code recorded as calls of kernels, for mechanisms that are large.

A `RecordedArray` is an array of places in a memory that does not exist yet. NumPy's functions of such arrays that only
move elements about move places; those that compute are recorded as calls of kernels. A kernel is a function of few
numbers, traced once for all calls that are alike: neither tracing nor the code grows with the mechanism. Functions that
are marked by `kernel` are recorded whole, as one call each, and so are NumPy's own, element by element or matrix by
matrix.

Places are integers. Zero, one and minus one are no places but numbers: calls are alike only where these stand at the
same arguments, so that zeros fold away as they do in straight-line code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from mbsfmu.programs.dependence import Call, Places, joined, needed
from mbsfmu.programs.recorded_array import RecordedArray
from mbsfmu.tracing import SymbolicArray, expression, symbolic_array

_FOLDED = (0.0, 1.0, -1.0)
"""Numbers that decide which calls are alike."""
ZERO, ONE, MINUS_ONE = -1, -2, -3
"""Their places."""
_MOST_FOLDED = -len(_FOLDED)
_NO_PLACES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Kernel:
    """A function of few numbers that is called often.

    Attributes
    ----------
    name
        What it computes, and its number.
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


@dataclass(frozen=True)
class _Traced:
    """A kernel with the shape of its answer, whose elements are numbers in `table`: folded ones, arguments, results."""

    kernel: int
    answer: Any
    constants: Places


@dataclass(frozen=True)
class _Defined:
    """Values that linear equations define, whatever calls have found them.

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
    """Records calls.

    Parameters
    ----------
    sections
        In how many sections, which threads can take at the same time, what is recorded is wanted.
    in_blocks
        Whether calls are ordered so that numbers of large programs stay in a cache, not in as few loops as can be.

    Attributes
    ----------
    kernels
        What was traced.
    calls
        What was called, in its order.
    sections, in_blocks
        As given.
    """

    def __init__(self, sections: int = 1, *, in_blocks: bool = True) -> None:
        self.sections = sections
        self.in_blocks = in_blocks
        self._section: tuple[int | None, int | None] = None, None
        self.kernels: list[Kernel] = []
        self.calls: list[Call] = []
        self.values: list[float] = list(_FOLDED)
        """Numbers of the negative places: place −1 − k has the number k of them."""
        self._number_by_value: dict[float, int] = {value: index for index, value in enumerate(_FOLDED)}
        self._places = 0
        self._known: dict[Hashable, _Traced] = {}
        self._made: dict[Hashable, Places] = {}
        self._derivatives: dict[int, Callable[..., Any]] = {}
        self._jacobians: dict[int, Callable[..., Any]] = {}
        self._defined: dict[bytes, _Defined] = {}  # by places of values: the same ones are defined once

    @property
    def places(self) -> int:
        """How many places there are, those of constants apart."""
        return self._places

    def new(self, count: int) -> RecordedArray:
        """Return that many new places."""
        first, self._places = self._places, self._places + count
        return RecordedArray(self, np.arange(first, self._places))

    def constants(self, values: Any) -> Places:
        """Return the places of numbers."""
        array = np.asarray(values, dtype=float)
        numbers = [self._constant(value) for value in array.ravel().tolist()]
        return np.array(numbers, dtype=np.int64).reshape(array.shape)

    def _constant(self, value: float) -> int:
        found = self._number_by_value.get(value)
        if found is None:
            found = self._number_by_value[value] = len(self.values)
            self.values.append(value)
        return -1 - found

    @contextmanager
    def in_section(self, section: int, stage: int | None = None) -> Iterator[None]:
        """Record calls as those of a section, or of what joins sections, by a negative number for each join.

        In a section, those of a stage are made in a later phase than those of an earlier stage that they depend on:
        other sections, which wait for these, can begin meanwhile.
        """
        before, self._section = self._section, (section, stage)
        try:
            yield
        finally:
            self._section = before

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
        places: list[Places] = []
        shape = self._shape(arguments, places)
        given = np.concatenate([each.ravel() for each in places]) if places else np.zeros(0, dtype=np.int64)
        seen: dict[int, int] = {}  # by first use: what is alike has the same pattern wherever it stands in memory
        pattern = tuple([seen.setdefault(place, len(seen)) for place in given.tolist()])
        folded = tuple([place if _MOST_FOLDED <= place < 0 else 0 for place in seen])
        key = (function, tuple(static.items()), shape, pattern, folded)
        traced = self._known.get(key)
        if traced is None:
            traced = self._known[key] = self._trace(function, arguments, static, pattern, folded)
        taken = np.array([place for place, fold in zip(seen, folded, strict=True) if not fold], dtype=np.int64)
        made = _NO_PLACES if traced.kernel < 0 else self._called(traced.kernel, taken)
        table = np.concatenate([taken, made, traced.constants])
        return _mapped(traced.answer, lambda places: RecordedArray(self, table[places]))

    def _called(self, kernel: int, taken: Places) -> Places:
        """Return where the results of a kernel are; what was called with the same before is not called again."""
        key = kernel, taken.tobytes()
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self.new(self.kernels[kernel].results).places
            self.calls.append(Call(kernel, taken, made, *self._section))
        return made

    def define(self, values: RecordedArray, equations: Callable[[], Any], solved: Callable[[Any], Any]) -> None:
        """Say what values follow from, so that their changes are found by that and not through all that was called.

        Parameters
        ----------
        values
            Values that were computed.
        equations
            Records what vanishes at these values, from what they follow from and from them.
        solved
            Records by how much the values change to make up for a change of the equations.
        """
        self._defined.setdefault(values.places.tobytes(), _Defined(values, equations, solved))

    def changes(self, values: Sequence[Any], directions: Sequence[tuple[RecordedArray, Any]]) -> list[RecordedArray]:
        """Return how values change along directions: by what defines them, else by the derivatives of what was called.

        Parameters
        ----------
        values
            Arrays that were computed, or numbers.
        directions
            Arrays that these depend on, whatever they have been computed from, each with how it changes, recorded or as
            numbers.
        """
        wanted = [self._places_of(each) for each in values]
        known = list(directions)
        for each in list(self._defined.values()):
            if self._follows(wanted, each.values, self._all_places(known)):
                resting = (each.values, np.zeros(each.values.shape))
                (change,) = self._changes_by_calls([self._places_of(each.equations())], [*known, resting])
                unmoved = np.all(change.places == ZERO)
                known.append(resting if unmoved else (each.values, each.solved(change)))
        return self._changes_by_calls(wanted, known)

    def _follows(self, wanted: Sequence[Places], values: RecordedArray, given: Places) -> bool:
        """Tell whether what is wanted follows from certain values, those apart that are given."""
        own = np.setdiff1d(values.places, given)
        if not own.size:
            return False
        calls = needed(self.calls, wanted, self.places, given)
        used = joined([*(call.taken for call in calls), *(each.ravel() for each in wanted)])
        return bool(np.isin(own, used).any())

    def _all_places(self, directions: Sequence[tuple[RecordedArray, Any]]) -> Places:
        return joined([array.places.ravel() for array, _ in directions])

    def _changes_by_calls(
        self, wanted: Sequence[Places], directions: Sequence[tuple[RecordedArray, Any]]
    ) -> list[RecordedArray]:
        change = np.full(self.places + 1, ZERO)  # the last one for constants, which change by nothing
        for array, direction in directions:
            change[array.places] = self._places_of(direction)

        def moved(places: Places) -> RecordedArray:
            return RecordedArray(self, change[np.maximum(places, ZERO)])

        for call in needed(self.calls, wanted, self.places, self._all_places(directions)):
            directed = moved(call.taken)
            if np.all(directed.places == ZERO):
                continue
            found = self.call(self._derivative(call.kernel), [RecordedArray(self, call.taken), directed], {})
            change[call.made] = found.places
        return [moved(places) for places in wanted]

    def _places_of(self, array: Any) -> Places:
        return array.places if isinstance(array, RecordedArray) else self.constants(array)

    def _derivative(self, number: int) -> Callable[..., Any]:
        """Return the function of a kernel's arguments and their changes that gives the changes of its results."""
        if number not in self._derivatives:
            kernel = self.kernels[number]
            at, along = (ca.SX.sym(name, kernel.arguments) for name in ("x", "d"))
            moved = ca.Function("change", [at, along], [ca.densify(ca.jtimes(kernel.function(at), at, along))])

            def change(values: Any, directions: Any) -> Any:
                return symbolic_array(moved(expression(values), expression(directions)))

            change.__name__ = f"change_of_{kernel.name}"
            self._derivatives[number] = change
        return self._derivatives[number]

    def jacobian(self, call: Call, columns: Sequence[int]) -> RecordedArray:
        """Return the derivatives of all results of a call by some of its arguments, shape (results, columns)."""
        if call.kernel not in self._jacobians:
            kernel = self.kernels[call.kernel]
            at = ca.SX.sym("x", kernel.arguments)
            found = ca.Function("jacobian", [at], [ca.densify(ca.jacobian(kernel.function(at), at))])

            def jacobian(values: Any, *, columns: tuple[int, ...]) -> Any:
                matrix = symbolic_array(ca.vec(found(expression(values)))).reshape((at.numel(), -1)).T
                return matrix[:, list(columns)]

            jacobian.__name__ = f"jacobian_of_{kernel.name}"
            self._jacobians[call.kernel] = jacobian
        given = RecordedArray(self, call.taken)
        result: RecordedArray = self.call(self._jacobians[call.kernel], [given], {"columns": tuple(columns)})
        return result

    def joined(self, arrays: Sequence[RecordedArray]) -> RecordedArray:
        """Return arrays as one, along their first axis."""
        return RecordedArray(self, np.concatenate([each.places for each in arrays]))

    def _shape(self, argument: Any, places: list[Places]) -> Hashable:
        """Return how an argument is built, and add the places of its elements to the list."""
        if argument is None:
            return None
        if isinstance(argument, (list, tuple)):
            return tuple(self._shape(each, places) for each in argument)
        if isinstance(argument, RecordedArray):
            places.append(argument.places)
            return argument.places.shape, ""
        places.append(self.constants(argument))
        return places[-1].shape, ""

    def _trace(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        static: dict[str, Hashable],
        pattern: tuple[int, ...],
        folded: tuple[int, ...],
    ) -> _Traced:
        vector = ca.SX.sym("x", folded.count(0))
        symbols = iter(symbolic_array(vector).view(np.ndarray))
        distinct = [self.values[-1 - place] if place else next(symbols) for place in folded]
        elements = iter([distinct[index] for index in pattern])
        answer = function(*_mapped(arguments, lambda leaf: _with(elements, np.shape(leaf))), **static)
        found: list[Any] = []
        _mapped(answer, lambda leaf: found.extend(_elements(leaf)))
        return self._kept(function.__name__, vector, answer, found)

    def _kept(self, name: str, vector: ca.SX, answer: Any, found: list[Any]) -> _Traced:
        """Keep a kernel that gives each element of an answer once; arguments and numbers among them need none."""
        argument = {vector[index].__hash__(): index for index in range(vector.numel())}
        computed = [each for each in found if isinstance(each, ca.SX) and each.__hash__() not in argument]
        if computed:
            computed = ca.vertsplit(ca.cse([ca.vertcat(*computed)])[0])
        rest = iter(computed)
        results: dict[int, int] = {}
        kept: list[ca.SX] = []
        constants: list[int] = []
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
            constants.append(self._constant(float(value)))
        first = {"argument": 0, "result": vector.numel(), "constant": vector.numel() + len(kept)}
        order = iter([first[kind] + index for kind, index in numbers])
        template = _mapped(answer, lambda leaf: _numbered(np.shape(leaf), order))
        if not kept:
            return _Traced(-1, template, np.array(constants, dtype=np.int64))
        number = len(self.kernels)
        named = f"{name.strip('_')}_{number}"
        self.kernels.append(Kernel(named, ca.Function(named, [vector], [ca.densify(ca.vertcat(*kept))])))
        return _Traced(number, template, np.array(constants, dtype=np.int64))


def _mapped(tree: Any, apply: Callable[[Any], Any]) -> Any:
    """Return what a function gives of each array in lists and tuples, which may be in each other; None stays."""
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


def _numbered(shape: tuple[int, ...], order: Iterator[int]) -> Places:
    return np.array([next(order) for _ in range(math.prod(shape))], dtype=np.int64).reshape(shape)
