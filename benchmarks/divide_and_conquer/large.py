"""Right-hand sides of `dca` in loops and in straight code over the number of bodies, beside Pinocchio's.

Run: python benchmarks/divide_and_conquer/large.py [--quick]

Needs g++; see `compiled.py`. What it takes to make the code is processor time of one go, kept code apart; times of one
evaluation are least ones of interleaved rounds. With `--quick` Pinocchio's algorithm is left out.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from compiled import QUICK, Timed, articulated_body, interleaved, pinocchios, repeated, spatial_chain
from flow import Flow

from mbsfmu.formulations.recorded_system import Code
from mbsfmu.formulations.workspace import RecordedFunction
from mbsfmu.models import pendulum
from mbsfmu.native.program_code import program_code

SIZES = (8,) if QUICK else (16, 32, 64, 128, 256, 512, 1024)
ABA_UP_TO = 512  # its data grow as the square of the number of bodies
STRAIGHT_UP_TO = 8 if QUICK else 32  # beyond, compilers take minutes


def length(flow: Flow) -> tuple[int, int]:
    """Return how many kernels the code of a right-hand side has, and its length in characters."""
    function = flow.formulation.explicit
    assert isinstance(function, RecordedFunction)
    return len({loop.kernel for loop in function.program.schedule.loops}), len(program_code(function, {}))


def main() -> None:
    """Print a row for each chain."""
    columns = (
        "chain | kernels | code [kB] | made [s] | loops [µs] | of a body [ns] | straight [µs] | aba [µs] | loops/aba"
    )
    print(f"| {columns} |")
    print("|" + " --- |" * 9)
    with tempfile.TemporaryDirectory() as folder:
        aba = None if QUICK else articulated_body(Path(folder), ("-O2",))
        for size in SIZES:
            for model, spatial in ((pendulum(size), False), (spatial_chain(size), True)):
                begin = time.process_time()
                flow = Flow(model, "dca", code=Code.LOOPS, compiled=False)
                kernels, characters = length(flow)
                made = time.process_time() - begin
                functions: dict[str, Timed] = {"loops": repeated(flow)}
                if size <= STRAIGHT_UP_TO:
                    functions["straight"] = repeated(Flow(model, "dca", code=Code.STRAIGHT))
                if aba is not None and size <= ABA_UP_TO:
                    functions["aba"] = pinocchios(aba, flow, spatial=spatial, world=False)
                times = {name: least for name, (_, least) in interleaved(functions, 20, max(2, 4096 // size)).items()}
                shown = [f"{times[name]:.2f}" if name in times else "–" for name in ("straight", "aba")]
                ratio = f"{times['loops'] / times['aba']:.1f}" if "aba" in times else "–"
                print(
                    f"| {model.name} | {kernels} | {characters // 1000} | {made:.2f} | {times['loops']:.2f} "
                    f"| {times['loops'] / size * 1e3:.0f} | {' | '.join(shown)} | {ratio} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
