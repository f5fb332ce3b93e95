"""Right-hand sides of `dca` in loops and in straight code over the number of bodies, beside Pinocchio's.

Run: python benchmarks/divide_and_conquer/large.py [--quick | --ladders]

Needs g++; see `compiled.py`. What it takes to make the code is processor time of one go, kept code apart; times of one
evaluation are least ones of interleaved rounds. With `--quick` Pinocchio's algorithm is left out, with `--ladders`
chains are.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from compiled import QUICK, Timed, articulated_body, interleaved, pinocchios, repeated, spatial_chain
from flow import Flow

from mbsfmu.coupled import CoupledModel
from mbsfmu.formulations.recorded_system import Code
from mbsfmu.formulations.workspace import RecordedFunction
from mbsfmu.models import ladder, pendulum
from mbsfmu.native.program_code import program_code

SIZES = (8,) if QUICK else (16, 32, 64, 128, 256, 512, 1024)
ABA_UP_TO = 512  # its data grow as the square of the number of bodies
STRAIGHT_UP_TO = 8 if QUICK else 32  # beyond, compilers take minutes
LADDERS = (2,) if QUICK else (4, 8, 16, 32, 64, 128, 256, 512)
STRAIGHT_LADDERS_UP_TO = 0 if QUICK else 8


def length(flow: Flow) -> tuple[int, int]:
    """Return how many kernels the code of a right-hand side has, and its length in characters."""
    function = flow.formulation.explicit
    assert isinstance(function, RecordedFunction)
    return len({loop.kernel for loop in function.program.schedule.loops}), len(program_code(function, {}))


def made_of(model: CoupledModel) -> tuple[Flow, list[str]]:
    """Return a flow in loops, and what its code and making it come to."""
    begin = time.process_time()
    flow = Flow(model, "dca", code=Code.LOOPS, compiled=False)
    kernels, characters = length(flow)
    return flow, [model.name, str(kernels), str(characters // 1000), f"{time.process_time() - begin:.2f}"]


def timed_functions(flow: Flow, *, straight: bool) -> dict[str, Timed]:
    """Return the compiled right-hand side in loops, and in straight code."""
    functions = {"loops": repeated(flow)}
    if straight:
        functions["straight"] = repeated(Flow(flow.model, "dca", code=Code.STRAIGHT))
    return functions


def print_row(cells: Sequence[str]) -> None:
    """Print a row of a table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def print_chains(folder: Path) -> None:
    """Print a row for each chain."""
    columns = "chain", "kernels", "code [kB]", "made [s]", "loops [µs]", "of a body [ns]", "straight [µs]", "aba [µs]"
    print_row([*columns, "loops/aba"])
    print_row(["---"] * 9)
    aba = None if QUICK else articulated_body(folder, ("-O2",))
    for size in SIZES:
        for model, spatial in ((pendulum(size), False), (spatial_chain(size), True)):
            flow, told = made_of(model)
            functions = timed_functions(flow, straight=size <= STRAIGHT_UP_TO)
            if aba is not None and size <= ABA_UP_TO:
                functions["aba"] = pinocchios(aba, flow, spatial=spatial, world=False)
            times = {name: least for name, (_, least) in interleaved(functions, 20, max(2, 4096 // size)).items()}
            shown = [f"{times[name]:.2f}" if name in times else "–" for name in ("straight", "aba")]
            ratio = f"{times['loops'] / times['aba']:.1f}" if "aba" in times else "–"
            of_body = f"{times['loops'] / size * 1e3:.0f}"
            print_row([*told, f"{times['loops']:.2f}", of_body, *shown, ratio])


def print_ladders() -> None:
    """Print a row for each ladder; three bodies close a loop."""
    print_row(["ladder", "kernels", "code [kB]", "made [s]", "loops [µs]", "of a loop [ns]", "straight [µs]"])
    print_row(["---"] * 7)
    for size in LADDERS:
        flow, told = made_of(ladder(size))
        functions = timed_functions(flow, straight=size <= STRAIGHT_LADDERS_UP_TO)
        times = {name: least for name, (_, least) in interleaved(functions, 20, max(2, 1024 // size)).items()}
        straight = f"{times['straight']:.2f}" if "straight" in times else "–"
        print_row([*told, f"{times['loops']:.2f}", f"{times['loops'] / size * 1e3:.0f}", straight])


def main() -> None:
    """Print both tables."""
    if "--ladders" not in sys.argv:
        with tempfile.TemporaryDirectory() as folder:
            print_chains(Path(folder))
        print()
    print_ladders()


if __name__ == "__main__":
    main()
