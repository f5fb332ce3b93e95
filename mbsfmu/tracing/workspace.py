"""Arrays shared by functions and their callers: the arguments of compiled code, and kept results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, TypeAlias, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.modelling.data import Array
from mbsfmu.tracing.solved_equations import solution_operations
from mbsfmu.tracing.tape.recorded_program import BoundProgram, Program
from mbsfmu.tracing.tape.recording import RecordedArray

Made = TypeVar("Made")


class Kept(Generic[Made]):
    """The last result of a function of arrays.

    The key is the content of the arrays, numbers or symbols, because arrays may be changed in place.
    """

    def __init__(self) -> None:
        self._last: tuple[list[Array], Made] | None = None

    def of(self, arrays: Sequence[Array], make: Callable[[], Made]) -> Made:
        """Return the cached result for the same content, or that of `make`."""
        if self._last is not None and all(map(_hold_the_same, arrays, self._last[0])):
            return self._last[1]
        made = make()
        self._last = [each if isinstance(each, RecordedArray) else np.array(each) for each in arrays], made
        return made


def _hold_the_same(now: Array, before: Array) -> bool:
    if isinstance(now, RecordedArray) or isinstance(before, RecordedArray):
        return isinstance(now, RecordedArray) and isinstance(before, RecordedArray) and now.is_same_as(before)
    if now.dtype != before.dtype or now.shape != before.shape:
        return False
    if now.dtype == object:  # symbols: equal ones are one and the same object
        return all(one is other for one, other in zip(now.view(np.ndarray).flat, before.flat, strict=True))
    return now.tobytes() == before.tobytes()


Floats = NDArray[np.float64]
Overwritten: TypeAlias = Floats
"""Result array that the next call of its function overwrites; copy it to keep it."""


class TracedFunction:
    """A CasADi function bound to the arrays of a workspace.

    Parameters
    ----------
    function
        The CasADi function; its inputs have the names of the parts that it depends on. Results of one column come back
        with shape (k,), unless they are named in `matrices`.
    memory
        The arrays that hold the values of the parts.
    matrices
        Indices of results that come back with shape (k, l) whatever their size.
    into
        Parts that the last results are written to.

    Attributes
    ----------
    function, into
        As given.
    name
        Its name.
    sparsities
        Where results may have elements other than zero.
    reads
        Names of the parts that it reads, with their sizes.
    writes
        Sizes of its results, zeros included, those that are written to parts as well.
    operations
        How many operations a call takes.
    length
        How many there are in its code.
    """

    def __init__(
        self,
        function: ca.Function,
        memory: Mapping[str, Floats],
        matrices: Sequence[int] = (),
        into: Iterable[str] = (),
    ) -> None:
        self.function = function
        self.into = tuple(into)
        self.sparsities = tuple(function.sparsity_out(index) for index in range(function.n_out()))
        self.name: str = function.name()
        self.reads = {name: function.numel_in(index) for index, name in enumerate(function.name_in())}
        self.writes = tuple(function.numel_out(index) for index in range(function.n_out()))
        self.length: int = function.n_instructions()
        self.operations: int = self.length + solution_operations(function)
        self._buffer, self._evaluate = function.buffer()
        for index, part in enumerate(function.name_in()):
            self._buffer.set_arg(index, _flat(memory[part]))  # pyright: ignore[reportCallIssue]
        self._results: list[Floats] = []
        self._scattered: list[tuple[Floats, list[int], Floats]] = []
        own = function.n_out() - len(self.into)
        for index, sparsity in enumerate(self.sparsities):
            array = np.zeros(sparsity.shape, order="F") if index < own else memory[self.into[index - own]]
            found = array
            if not sparsity.is_dense():
                found = np.zeros(sparsity.nnz())
                self._scattered.append((array.reshape(-1, order="F"), sparsity.find(), found))
            self._buffer.set_res(index, _flat(found))  # pyright: ignore[reportCallIssue]
            self._results.append(array if index in matrices or array.ndim == 1 else array[:, 0])

    def __call__(self) -> list[Overwritten]:
        """Evaluate at the present content of the shared arrays."""
        self._evaluate()
        for array, places, found in self._scattered:
            array[places] = found
        return self._results


def _flat(array: Floats) -> memoryview:
    return array.reshape(-1, order="F").data


class RecordedFunction:
    """A recorded function (kernel loops) bound to the arrays of a workspace.

    Parameters
    ----------
    program
        What was recorded; what it is given has the names of the parts.
    memory, matrices, into
        As for a `TracedFunction`; matrices come with their shapes.

    Attributes
    ----------
    program, into
        As given.
    name, reads, writes, operations, length
        As of a `TracedFunction`.
    """

    def __init__(
        self,
        program: Program,
        memory: Mapping[str, Floats],
        into: Iterable[str] = (),
        work: Floats | None = None,
    ) -> None:
        self.program = program
        self.into = tuple(into)
        self.name = program.name
        self.reads = {name: size for name, size in program.given.items() if size}
        self.writes = tuple(places.size for places in program.results)
        self.operations = program.operations
        self.length = sum(program.kernels[index].cost for index in {loop.kernel for loop in program.schedule.loops})
        self._arrays = {name: memory[name] for name in program.given}
        self._written = [memory[part] for part in self.into]
        self._evaluate = BoundProgram(program, program.memory() if work is None else work)

    def __call__(self) -> list[Overwritten]:
        """Evaluate at the present content of the shared arrays."""
        results = self._evaluate(self._arrays)
        own = len(results) - len(self.into)
        for array, values in zip(self._written, results[own:], strict=True):
            array[:] = values
        return results[:own]


AnyFunction: TypeAlias = TracedFunction | RecordedFunction
"""A function of a workspace, unrolled or in loops."""


class Workspace:
    """Named arrays with their symbols, and functions of them.

    Calls have no arguments: the caller writes the arrays, and the function reads them.

    Parameters
    ----------
    symbol_by_part
        Symbols of the parts there are at first; arrays of zeros belong to them.
    """

    def __init__(self, symbol_by_part: Mapping[str, ca.SX]) -> None:
        self._symbol_by_part = dict(symbol_by_part)
        self._memory = {part: np.zeros(symbol.numel()) for part, symbol in symbol_by_part.items()}
        self._element_hashes: dict[str, frozenset[int]] = {}
        self._merges = True

    @contextmanager
    def at_few_points(self) -> Iterator[None]:
        """Trace functions that are evaluated at few points: what is computed twice in them costs less than to find it.

        Functions that are cached are not among them.
        """
        self._merges = False
        try:
            yield
        finally:
            self._merges = True

    def add_part(self, part: str, rows: int, columns: int | None = None) -> tuple[ca.SX, Floats]:
        """Add a part with its symbols and its array.

        Parameters
        ----------
        part
            Name of the part.
        rows, columns
            Shape of a matrix, or without columns of a vector.
        """
        self._element_hashes.pop(part, None)
        symbol = self._symbol_by_part[part] = ca.SX.sym(part, rows, 1 if columns is None else columns)
        array = self._memory[part] = np.zeros(rows if columns is None else (rows, columns), order="F")
        return symbol, array

    def write(self, part: str, values: Floats) -> None:
        """Write the values of a part."""
        self._memory[part][:] = values

    def values(self, part: str) -> Floats:
        """Return the shared values of a part."""
        return self._memory[part]

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts."""
        return tuple(self._memory)

    def symbol(self, part: str) -> ca.SX:
        """Return the symbols of a part."""
        return self._symbol_by_part[part]

    def traced(
        self,
        name: str,
        results: Sequence[ca.SX],
        matrices: Sequence[int] = (),
        into: Iterable[str] = (),
        *,
        merged: bool = False,
    ) -> TracedFunction:
        """Return a traced function of the parts.

        Parameters
        ----------
        name
            Name of the function, for messages and for generated code.
        results
            Expressions.
        matrices, into
            As for `TracedFunction`.
        merged
            Whether hardly anything is computed twice in the expressions as they are, as in derivatives of such: to find
            out takes longer than all else.
        """
        function = self._function(name, results, merged=merged or not self._merges)
        return TracedFunction(function, self._memory, matrices, into)

    def _function(self, name: str, results: Sequence[ca.SX], *, merged: bool = False) -> ca.Function:
        dense = [ca.densify(result) if result.is_vector() else result for result in results]
        given = dense if merged else ca.cse(dense)
        occurring = _hashes(ca.SX(ca.veccat(*given)))
        used = [part for part in self._symbol_by_part if not occurring.isdisjoint(self._elements_of(part))]
        named = [f"result_{index}" for index in range(len(given))]
        return ca.Function(name, [self._symbol_by_part[part] for part in used], given, used, named)

    def _elements_of(self, part: str) -> frozenset[int]:
        """Return the hashes of the symbols of a part."""
        if part not in self._element_hashes:
            self._element_hashes[part] = _hashes(self._symbol_by_part[part])
        return self._element_hashes[part]


def _hashes(expression: ca.SX) -> frozenset[int]:
    """Return the hashes of the symbols in an expression."""
    return frozenset(each.element_hash() for each in ca.symvar(expression))
