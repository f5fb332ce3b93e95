"""A recorded function of named arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from mbsfmu.tracing.tape.recording import Kernel, RecordedArray, Recorder
from mbsfmu.tracing.tape.schedule import MemoryIndices, Schedule, joined, needed, schedule

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Program:
    """A program: loops over kernel calls, from given arrays to results.

    Attributes
    ----------
    name
        Name of the function.
    offered
        Names and sizes of what it may depend on.
    given
        Those of them that it does depend on; they lie behind each other at the beginning of its memory.
    constants
        Numbers that follow these.
    kernels, schedule
        What is called, and in which order.
    memory_name
        Name of the memory it works in: programs that go on from what others have found share one.
    """

    name: str
    offered: Mapping[str, int]
    given: Mapping[str, int]
    constants: tuple[float, ...]
    kernels: tuple[Kernel, ...]
    schedule: Schedule
    memory_name: str = "work"

    @property
    def results(self) -> tuple[MemoryIndices, ...]:
        """Memory indices of the elements of each result."""
        return self.schedule.results

    @property
    def operations(self) -> int:
        """Number of operations of a call."""
        loops = self.schedule.loops
        return sum(len(loop.arguments) * self.kernels[loop.kernel].cost for loop in loops)

    @property
    def first_constant(self) -> int:
        """Memory index of the first constant."""
        return self.schedule.first + sum(self.given.values())

    def memory(self) -> Floats:
        """Return a memory with the constants set."""
        memory = np.zeros(self.schedule.size)
        memory[self.first_constant :][: len(self.constants)] = self.constants
        return memory


class BoundProgram:
    """A program with its memory; independent calls of a loop are vectorized.

    Parameters
    ----------
    program
        The program.
    memory
        What `Program.memory` gave; it is overwritten.
    """

    def __init__(self, program: Program, memory: Floats) -> None:
        self._program = program
        self._memory = memory

    def __call__(self, given: Mapping[str, Floats]) -> list[Floats]:
        """Return the results for arrays by name."""
        memory, first = self._memory, self._program.schedule.first
        for name, size in self._program.given.items():
            memory[first : first + size] = given[name].ravel()
            first += size
        for places, arguments, evaluate, _ in self._calls:
            memory.take(places, out=arguments)
            evaluate()
        return [memory[places] for places in self._program.results]

    @cached_property
    def _calls(self) -> list[tuple[MemoryIndices, Floats, Callable[[], None], ca.FunctionBuffer]]:
        """The calls in order, with memory indices of arguments and results.

        They write their results to the memory.
        """
        calls = []
        for loop in self._program.schedule.loops:
            kernel = self._program.kernels[loop.kernel]
            for begin, end in pairwise((*loop.stages, len(loop.arguments))):
                places = np.ascontiguousarray(loop.arguments[begin:end].ravel())
                arguments = np.zeros(places.size)
                buffer, evaluate = kernel.repeated(end - begin).buffer()
                made = slice(loop.first + begin * kernel.results, loop.first + end * kernel.results)
                buffer.set_arg(0, arguments.data)  # pyright: ignore[reportCallIssue]
                buffer.set_res(0, self._memory[made].data)  # pyright: ignore[reportCallIssue]
                calls.append((places, arguments, evaluate, buffer))
        return calls


def depends(program: Program, result: int, part: str) -> NDArray[np.bool_]:
    """Return the sparsity of a result's dependence on a part, shape (elements, size of the part)."""
    size = program.offered[part]
    if part not in program.given:
        return np.zeros((program.results[result].size, size), dtype=bool)
    names = list(program.given)
    first = sum(program.given[name] for name in names[: names.index(part)])
    pattern = np.zeros((program.schedule.size, -(-size // 8)), dtype=np.uint8)
    pattern[first : first + size] = np.packbits(np.eye(size, dtype=bool), axis=1)
    for loop in program.schedule.loops:
        needed = _needed(program.kernels[loop.kernel])
        for begin, end in pairwise((*loop.stages, len(loop.arguments))):
            for index, arguments in enumerate(needed):
                places = loop.first + len(needed) * np.arange(begin, end) + index
                pattern[places] = np.bitwise_or.reduce(pattern[loop.arguments[begin:end][:, arguments]], axis=1)
    return np.unpackbits(pattern[program.results[result].ravel()], axis=1, count=size).astype(bool)


def _needed(kernel: Kernel) -> list[list[int]]:
    """Return the arguments on which each result of a kernel depends."""
    sparsity = kernel.function.jac_sparsity(0, 0)
    needed: list[list[int]] = [[] for _ in range(kernel.results)]
    for row, column in zip(*sparsity.get_triplet(), strict=True):
        needed[row].append(column)
    return needed


def programs_in_sequence(
    names: tuple[str, str],
    recorder: Recorder,
    given: tuple[Mapping[str, RecordedArray], Mapping[str, RecordedArray]],
    results: tuple[Sequence[Any], Sequence[Any]],
    memory_name: str,
) -> tuple[Program, Program]:
    """Return two programs in one memory, of which the second continues from the first.

    Parameters
    ----------
    names, results, memory_name
        As of one.
    recorder
        What has recorded the results.
    given
        What the first may depend on, and what the second may besides.
    """
    later = np.concatenate([each.places.ravel() for each in given[1].values()])
    kept = _needed_before(recorder, later, [each.places for each in results[1]])
    first = program_of(names[0], recorder, given[0], results[0], memory_name, kept=kept)
    second = program_of(names[1], recorder, given[1], results[1], memory_name, before=first)
    return first, second


def _needed_before(recorder: Recorder, later: MemoryIndices, results: Sequence[MemoryIndices]) -> MemoryIndices:
    """Return the memory indices needed by results that do not depend on later arguments."""
    is_late = np.zeros(recorder.places, dtype=bool)
    is_late[later] = True
    taken = [each.ravel() for each in results]
    for call in needed(recorder.calls, taken, recorder.places):
        given = call.taken[call.taken >= 0]
        if is_late[given].any():
            is_late[call.made] = True
            taken.append(given)
    every = np.unique(np.concatenate(taken))
    every = every[every >= 0]
    return np.asarray(every[~is_late[every]])


def program_of(
    name: str,
    recorder: Recorder,
    offered: Mapping[str, RecordedArray],
    results: Sequence[Any],
    memory_name: str = "work",
    before: Program | None = None,
    kept: MemoryIndices | None = None,
) -> Program:
    """Return a program from a recording.

    Parameters
    ----------
    name
        Its name.
    recorder
        What has recorded the results.
    offered
        What they may depend on.
    results
        Arrays, recorded or of numbers.
    memory_name
        Name of the memory.
    before
        A program of the same recorder whose values are in the memory, and stay.
    kept
        Recorded places of what must be there for programs that go on from this one.
    """
    places = [each.places if isinstance(each, RecordedArray) else recorder.constants(each) for each in results]
    goes_on = None if before is None else before.schedule
    made = [] if goes_on is None else [np.flatnonzero(goes_on.placed >= 0)]
    known = joined([*made, *(each.places.ravel() for each in offered.values())])
    wanted = places if kept is None else [*places, kept]
    calls = needed(recorder.calls, wanted, recorder.places, known)
    used = np.zeros(recorder.places + 1, dtype=bool)  # the last one for constants
    used[np.maximum(joined([*(call.taken for call in calls), *(each.ravel() for each in wanted)]), -1)] = True
    given = {part: each for part, each in offered.items() if used[each.places].any()}
    first = joined([each.places.ravel() for each in given.values()])
    ordered = schedule(calls, first, wanted, goes_on)
    placed = ordered.placed if kept is not None else ordered.placed[:0]  # large, and of use to what goes on alone
    ordered = replace(ordered, results=ordered.results[: len(places)], placed=placed)
    return Program(
        name,
        {part: each.size for part, each in offered.items()},
        {part: each.size for part, each in given.items()},
        tuple(recorder.values[number] for number in ordered.constants),
        tuple(recorder.kernels),
        ordered,
        memory_name,
    )


# -- compact description of the memory indices of a program's calls ----------------------------------------------------
# Repetitions in a sequence of memory indices: a few rows that recur at constant distances.
#
# Along a chain one row repeats; where joints alternate, or two handles take turns, a few rows do. Rows that do not
# repeat are separate.
#
# The arguments of a kernel are divided into fields: memory indices at constant distances in all calls, such as the
# elements of a matrix from another call. A call has the start of each field. Independent calls form batches, divided
# into stretches in which fields advance by equal distances; consecutive calls form chains, in which a few calls, of
# several kernels where joints alternate, may repeat. Fields that would shorten stretches are listed call by call.

LONGEST = 64
"""Largest number of rows of one repetition: iteration matrices of rings take 28 calls per link."""


@dataclass(frozen=True)
class Repetition:
    """A repetition of rows.

    Attributes
    ----------
    begin
        Index of the first row.
    length
        How many rows are repeated.
    count
        How often they come: row k of repetition r is row k of the first moved on r times by a distance.
    """

    begin: int
    length: int
    count: int


def repetitions(rows: MemoryIndices, kinds: MemoryIndices) -> Iterator[Repetition]:
    """Return a sequence divided into repetitions, the longest first.

    Parameters
    ----------
    rows
        Places, shape (rows, places).
    kinds
        What each row is for; only rows of one kind are alike, shape (rows,).
    """
    gains, lengths, counts = _longest(_hashed(rows), kinds)
    begin = 0
    while begin < len(rows):
        found = Repetition(begin, int(lengths[begin]), int(counts[begin]))
        if gains[begin] <= 0 or not _repeats(rows, found):
            found = Repetition(begin, 1, 1)
        yield found
        begin += found.length * found.count


def _hashed(rows: MemoryIndices) -> NDArray[np.uint64]:
    """Return a hash for each row, linear in the indices, so that equal distances are preserved."""
    weights = np.random.default_rng(1).integers(1, 2**63, size=rows.shape[1], dtype=np.uint64)
    return (rows.astype(np.uint64) * weights).sum(axis=1, dtype=np.uint64)


def _longest(hashed: NDArray[np.uint64], kinds: MemoryIndices) -> tuple[MemoryIndices, MemoryIndices, MemoryIndices]:
    """Return, for a repetition starting at each row, the saved rows, its length, and its count."""
    size = len(hashed)
    gains, lengths, counts = (
        np.zeros(size, dtype=np.int64),
        np.ones(size, dtype=np.int64),
        np.ones(size, dtype=np.int64),
    )
    for length in range(1, min(LONGEST, size // 3) + 1):
        alike = kinds[length:] == kinds[:-length]
        distances = hashed[length:] - hashed[:-length]
        regular = alike[length:] & alike[:-length] & (distances[length:] == distances[:-length])
        ends = _next_false(regular) + 2 * length  # of rows that go on as the two before them, by where these begin
        begins = np.arange(len(regular))
        count = np.where(_next_false(alike)[: len(regular)] - begins >= length, (ends - begins) // length, 1)
        gain = (count - 2) * length
        better = np.flatnonzero(gain > gains[: len(regular)])
        gains[better], lengths[better], counts[better] = gain[better], length, count[better]
    return gains, lengths, counts


def _next_false(values: NDArray[np.bool_]) -> MemoryIndices:
    """Return the next false value from each index on; the number of values without one."""
    places = np.where(values, len(values), np.arange(len(values)))
    return np.minimum.accumulate(places[::-1])[::-1]


def _repeats(rows: MemoryIndices, found: Repetition) -> bool:
    """Return whether rows repeat exactly, which equal hashes only suggest."""
    block = rows[found.begin : found.begin + found.length * found.count].reshape(found.count, found.length, -1)
    distances = np.diff(block, axis=0)
    return bool(np.all(distances == distances[0]))


_NARROW = 4
"""Number of independent calls below which they are executed as a chain."""
_FEW = 8
"""Number of stretches of one kernel …"""
_LONG = 8
"""… and mean number of calls in each below which listed fields are considered …"""
_SHORTER = 3
"""… and used unless the description without them is shorter by this factor."""


@dataclass(frozen=True)
class Fields:
    """Fields of a kernel's arguments.

    Attributes
    ----------
    field
        By argument the number of its field; −1 where it has one place in all calls.
    offset
        How far behind the beginning of the field it is, or its place.
    first
        By field, an argument at its beginning; those of fields that are listed come last.
    listed
        How many fields are listed.
    """

    field: MemoryIndices
    offset: MemoryIndices
    first: tuple[int, ...]
    listed: int = 0

    @property
    def regular(self) -> tuple[int, ...]:
        """As `first`, of fields that move on by equal distances."""
        return self.first[: len(self.first) - self.listed]

    @property
    def irregular(self) -> tuple[int, ...]:
        """As `first`, of those that are listed."""
        return self.first[len(self.first) - self.listed :]


@dataclass(frozen=True)
class KernelCalls:
    """Calls of one kernel at equal distances.

    Attributes
    ----------
    kernel
        Its index among those of the program.
    begin
        Of the first call where its results are, and where each field begins that is not listed.
    distance
        By how much these move on.
    listed
        Where the other fields begin, shape (calls, fields).
    """

    kernel: int
    begin: MemoryIndices
    distance: MemoryIndices
    listed: MemoryIndices


@dataclass(frozen=True)
class Stretch:
    """A repeated sequence of calls.

    Attributes
    ----------
    calls
        What is called in each repetition.
    count
        How many repetitions there are.
    """

    calls: tuple[KernelCalls, ...]
    count: int


@dataclass(frozen=True)
class Layout:
    """The calls of a program.

    Attributes
    ----------
    fields
        By kernel that is called.
    stretches
        The calls in their order.
    """

    fields: dict[int, Fields]
    stretches: tuple[Stretch, ...]


def layout(program: Program) -> Layout:
    """Return the layout of a program's calls."""
    arguments: dict[int, list[MemoryIndices]] = {}
    for loop in program.schedule.loops:
        arguments.setdefault(loop.kernel, []).append(loop.arguments)
    together = {kernel: np.concatenate(each) for kernel, each in arguments.items()}
    fields = {kernel: _fields(each) for kernel, each in together.items()}
    found = Layout(fields, _stretches(program, fields))
    needed = Counter(each.kernel for stretch in found.stretches for each in stretch.calls)
    irregular = [kernel for kernel, each in together.items() if needed[kernel] > max(_FEW, len(each) // _LONG)]
    if not irregular:
        return found
    fields |= {kernel: _listed(fields[kernel], together[kernel]) for kernel in irregular}
    return Layout(fields, _stretches(program, fields))


def _fields(arguments: MemoryIndices) -> Fields:
    """Return the fields of all calls of a kernel from its memory indices, shape (calls, arguments)."""
    first = arguments[0]
    if len(arguments) == 1 and len(first):
        # Told where they begin, and not where they are: other programs may have them elsewhere, and the same code.
        begin = int(np.argmin(first))
        return Fields(np.zeros(len(first), dtype=np.int64), first - first[begin], (begin,))
    moved = np.ascontiguousarray((arguments - first).T)
    members: dict[bytes, list[int]] = {}
    for argument, row in enumerate(moved):
        members.setdefault(row.tobytes() if row.any() else b"", []).append(argument)
    field, offset, begins = np.full(len(first), -1), first.copy(), []
    for key, own in members.items():
        if key:
            begin = own[int(np.argmin(first[own]))]
            field[own], offset[own] = len(begins), first[own] - first[begin]
            begins.append(begin)
    return Fields(field, offset, tuple(begins))


def _listed(fields: Fields, arguments: MemoryIndices) -> Fields:
    """Return fields, with some listed if that is shorter."""
    regular, irregular = [], []
    for number, argument in enumerate(fields.first):
        column = arguments[:, argument : argument + 1]
        pieces = repetitions(column, np.zeros(len(column), dtype=np.int64))
        length = sum(each.length * min(each.count, 2) for each in pieces)
        (irregular if _SHORTER * length > len(column) else regular).append(number)
    order = [*regular, *irregular]
    number = np.array([*np.argsort(order), -1])  # the last one for what belongs to no field
    return Fields(number[fields.field], fields.offset, tuple(fields.first[each] for each in order), len(irregular))


def _stretches(program: Program, fields: dict[int, Fields]) -> tuple[Stretch, ...]:
    """Return a program's calls as stretches."""
    loops = program.schedule.loops
    if not loops:
        return ()
    width = 1 + max(len(each.regular) for each in fields.values())
    rows = np.zeros((sum(len(loop.arguments) for loop in loops), width), dtype=np.int64)
    listed: list[MemoryIndices] = []
    begin = 0
    for loop in loops:
        results, own = program.kernels[loop.kernel].results, fields[loop.kernel]
        end = begin + len(loop.arguments)
        rows[begin:end, 0] = loop.first + results * np.arange(end - begin)
        rows[begin:end, 1 : 1 + len(own.regular)] = loop.arguments[:, own.regular]
        listed.extend(loop.arguments[:, own.irregular])
        begin = end
    kinds = np.repeat([loop.kernel for loop in loops], [len(loop.arguments) for loop in loops])
    parts = _parts(program)
    part = np.repeat(np.arange(len(parts)), [each.size for each in parts])
    found: list[Stretch] = []
    for each in repetitions(rows, kinds + (1 + kinds.max()) * part):
        calls = tuple(_calls(rows, kinds, listed, fields, each, index) for index in range(each.length))
        # Calls of a batch one after the other, though they come in turn: it takes less time.
        is_batch = parts[part[each.begin]].batch
        found += [Stretch((one,), each.count) for one in calls] if is_batch else [Stretch(calls, each.count)]
    return tuple(found)


@dataclass
class _CallSequence:
    """Calls that are a batch, or a chain.

    Attributes
    ----------
    batch
        Whether they are independent of each other.
    size
        How many they are.
    """

    batch: bool
    size: int


def _parts(program: Program) -> list[_CallSequence]:
    """Return the batches and chains of a program."""
    parts = [_CallSequence(False, 0)]
    for loop in program.schedule.loops:
        for begin, end in pairwise((*loop.stages, len(loop.arguments))):
            size = end - begin
            if size < _NARROW and not parts[-1].batch:
                parts[-1].size += size
            else:
                parts.append(_CallSequence(size >= _NARROW, size))
    return parts


def _calls(
    rows: MemoryIndices,
    kinds: MemoryIndices,
    listed: list[MemoryIndices],
    fields: dict[int, Fields],
    found: Repetition,
    index: int,
) -> KernelCalls:
    """Return the calls of one row of a repetition."""
    first = found.begin + index
    kernel = int(kinds[first])
    width = 1 + len(fields[kernel].regular)
    distance = rows[first + found.length] - rows[first] if found.count > 1 else np.zeros_like(rows[first])
    own = np.array(listed[first : found.begin + found.length * found.count : found.length])
    return KernelCalls(kernel, rows[first, :width], distance[:width], own)
