"""Chains in sections shared by threads, and a model of the critical path on more processors.

The model: every part of the very code, a section of a phase or a phase for one thread, is timed alone, its data in the
processor's cache. A phase takes the longest of its sections, and what it costs to share, which among p processors is
log₂ p times as long as among two, where it is measured. The balanced assembly is modelled for as many processors as
there are bodies: a phase takes no less than one call, and the quickest of the powers of two up to that number counts.
"""

from __future__ import annotations

import ctypes
import math
import time
from dataclasses import dataclass

from flow import Flow
from machines import TREES
from rates import QUICK, compiled_rates, interleaved, repeated

from mbsfmu.coupled.coupled_model import CoupledModel
from mbsfmu.systems.system import Code
from mbsfmu.tracing.tape.memory_layout import Phase, layout
from mbsfmu.tracing.tape.recorded_program import Program
from mbsfmu.tracing.workspace import RecordedFunction

PROCESSORS = (2,) if QUICK else (2, 8, 64)
SHARES, PARTS_MEASURED = (20, 1) if QUICK else (20000, 15)


@dataclass(frozen=True)
class Measured:
    """A phase.

    Attributes
    ----------
    parts
        Times of its sections in µs, of one where there are none.
    shared
        Whether threads share it.
    longest
        Share of it that one call takes; 1 where calls depend on each other.
    """

    parts: list[float]
    shared: bool
    longest: float


class Shared:
    """A right-hand side for threads, compiled."""

    def __init__(self, model: CoupledModel, **options: object) -> None:
        self._flow = Flow(model, "dca", code=Code.LOOPS, compiled=False, **options)
        self._library: ctypes.CDLL = compiled_rates(self._flow)
        self._run = repeated(self._flow, self._library)

    def on_one(self, repetitions: int) -> None:
        """Evaluate it with one thread."""
        self._library.threads(1)
        self._run(repetitions)

    def on_two(self, repetitions: int) -> None:
        """Evaluate it with two threads."""
        self._library.threads(2)
        self._run(repetitions)

    def sharing(self) -> float:
        """Return what it costs two threads to share nothing, in µs."""
        begin = time.perf_counter()
        self._library.shares(2, SHARES)
        return (time.perf_counter() - begin) / SHARES * 1e6

    def measured(self) -> list[Measured]:
        """Return the times of all phases."""
        function = self._flow.formulation.explicit
        assert isinstance(function, RecordedFunction)
        found, first = [], 0
        for phase in layout(function.program).phases:
            count = len(phase.sections) if phase.shared and phase.sections else 1
            parts = [self._time(number) for number in range(first, first + count)]
            first += count
            is_cut = phase.shared and not phase.sections
            found.append(Measured(parts, phase.shared, _longest(phase, function.program) if is_cut else 1.0))
        return found

    def _time(self, part: int) -> float:
        """Return the least time of a part in µs, of some tens of microseconds each."""
        repetitions, least = 1, math.inf
        for _ in range(PARTS_MEASURED):
            begin = time.perf_counter()
            self._library.timed_part(part, repetitions)
            least = min(least, (time.perf_counter() - begin) / repetitions * 1e6)
            repetitions = 1 + int(20.0 / least)
        return least


def shared_table(sizes: tuple[int, ...]) -> None:
    """Print measured times and those of the model for chains."""
    modelled = " | ".join(f"model, {count} [µs]" for count in PROCESSORS)
    columns = (
        f"sequential [µs] | 1 thread [µs] | 2 threads [µs] | to share [µs] | {modelled} | balanced, n processors [µs]"
    )
    print(f"| chain | {columns} |")
    print("|" + " --- |" * (6 + len(PROCESSORS)))
    for size in sizes:
        for model in (TREES[kind](size).model() for kind in ("planar", "spatial")):
            two = Shared(model, unit_threads=2)
            sequential = repeated(Flow(model, "dca", code=Code.LOOPS, compiled=False))
            functions = {"sequential": sequential, "1": two.on_one, "2": two.on_two}
            times = {name: least for name, (_, least) in interleaved(functions, 60, max(2, 4096 // size)).items()}
            sharing = two.sharing()
            sections = {count: two if count == 2 else Shared(model, unit_threads=count) for count in PROCESSORS}
            exposed = [times[name] for name in functions] + [sharing]
            exposed += [on_processors(own.measured(), count, sharing) for count, own in sections.items()]
            balanced = Shared(model, unit_threads=2, assembly="balanced").measured()
            exposed.append(min(on_processors(balanced, 2**power, sharing) for power in range(size.bit_length())))
            print(f"| {model.name} | {' | '.join(f'{each:.3g}' for each in exposed)} |", flush=True)


def on_processors(phases: list[Measured], count: int, sharing: float) -> float:
    """Return the time in µs on a number of processors, given what it costs two to share."""
    found = 0.0
    for phase in phases:
        if not phase.shared or count == 1:
            found += sum(phase.parts)
            continue
        parts = phase.parts if len(phase.parts) > 1 else [max(phase.parts[0] / count, phase.parts[0] * phase.longest)]
        found += max(parts) + sharing * math.log2(count)
    return found


def _longest(phase: Phase, program: Program) -> float:
    """Return which share of the operations of a phase its longest call takes."""
    calls = [
        (stretch.count, program.kernels[each.kernel].cost) for stretch in phase.stretches for each in stretch.calls
    ]
    return max(cost for _, cost in calls) / sum(count * cost for count, cost in calls)
