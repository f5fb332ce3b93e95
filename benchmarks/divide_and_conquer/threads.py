"""The balanced assembly shared by threads, and a model of its critical path.

The model: a phase that is shared takes the longest of its parts, no less than one call, and what it costs to share;
others take what they take. Operations take as long as they do on the average in one thread, and sharing among p
processors log₂ p times as long as among two, which is measured. As many processors are taken as make it quickest.
"""

from __future__ import annotations

import math
import time

from flow import Flow
from machines import TREES
from rates import Timed, compiled_rates, interleaved, repeated

from mbsfmu.formulations.recorded_system import Code
from mbsfmu.formulations.workspace import RecordedFunction
from mbsfmu.programs.layout import Phase, layout
from mbsfmu.programs.program import Program

PROCESSORS = (1, 2, 8, 64, 4096)
SHARES = 20000


def shared_table(sizes: tuple[int, ...]) -> None:
    """Print measured times and those of the model for chains."""
    modelled = " | ".join(f"model, {count} [µs]" for count in PROCESSORS)
    columns = "chain | phases | shared | operations in them | to share [µs]"
    columns += " | sequential [µs] | 1 thread [µs] | 2 threads [µs]"
    print(f"| {columns} | {modelled} |")
    print("|" + " --- |" * (8 + len(PROCESSORS)))
    for size in sizes:
        for model in (TREES[kind](size).model() for kind in ("planar", "spatial")):
            flow = Flow(model, "dca", code=Code.LOOPS, unit_threads=2, compiled=False)
            function = flow.formulation.explicit
            assert isinstance(function, RecordedFunction)
            library = compiled_rates(flow)
            run = repeated(flow, library)

            def with_threads(count: int, run: Timed = run, library: object = library) -> Timed:
                def timed(repetitions: int) -> None:
                    library.threads(count)  # pyright: ignore[reportAttributeAccessIssue]
                    run(repetitions)

                return timed

            sequential = repeated(Flow(model, "dca", code=Code.LOOPS, compiled=False))
            functions = {"sequential": sequential, "1": with_threads(1), "2": with_threads(2)}
            times = {name: least for name, (_, least) in interleaved(functions, 20, max(4, 4096 // size)).items()}
            begin = time.perf_counter()
            library.shares(2, SHARES)
            barrier = (time.perf_counter() - begin) / SHARES * 1e6
            phases = layout(function.program).phases
            costs = [(_cost(phase, function.program), _longest(phase, function.program)) for phase in phases]
            whole = sum(cost for cost, _ in costs)
            each = times["1"] / whole
            found = [_modelled(phases, costs, count, each, barrier) for count in PROCESSORS]
            share = sum(cost for phase, (cost, _) in zip(phases, costs, strict=True) if phase.shared) / whole
            shown = [f"{100 * share:.0f} %", f"{barrier:.2f}", *(f"{times[name]:.0f}" for name in functions)]
            shown += [f"{one:.0f}" for one in found]
            shared = sum(phase.shared for phase in phases)
            print(f"| {model.name} | {len(phases)} | {shared} | {' | '.join(shown)} |", flush=True)


def _cost(phase: Phase, program: Program) -> int:
    """Return how many operations a phase takes."""
    return sum(
        stretch.count * program.kernels[each.kernel].cost for stretch in phase.stretches for each in stretch.calls
    )


def _longest(phase: Phase, program: Program) -> int:
    """Return how many operations its longest call takes."""
    return max(program.kernels[each.kernel].cost for stretch in phase.stretches for each in stretch.calls)


def _modelled(
    phases: tuple[Phase, ...], costs: list[tuple[int, int]], processors: int, each: float, barrier: float
) -> float:
    """Return the time in µs on a number of processors, given those of an operation and of a share between two."""

    def time_on(count: int) -> float:
        found = 0.0
        for phase, (cost, longest) in zip(phases, costs, strict=True):
            shared = max(cost / count, longest) * each + barrier * math.log2(count)
            found += shared if phase.shared else cost * each
        return found

    return min(time_on(2**power) for power in range(processors.bit_length()))
