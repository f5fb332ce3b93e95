"""Right-hand sides of `dca` in loops over the number of bodies, beside straight code and Pinocchio's.

Run: python benchmarks/divide_and_conquer/large.py [--quick | --ladders | --threads]

Needs g++; see `compiled.py`. What it takes to make the code is processor time of one go, kept code apart; times of one
evaluation are least ones of interleaved rounds. With `--quick` Pinocchio's algorithm is left out, with `--ladders`
chains are. With `--threads` it is the balanced assembly with one and two threads, and a model of what more would give:
see `threads.py`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from compiled import AXES, QUICK, Timed, articulated_body, interleaved, pinocchios, repeated, spatial_chain
from flow import Flow
from threads import shared_table

from mbsfmu import Beam
from mbsfmu.coupled import CoupledModel
from mbsfmu.formulations.recorded_system import Code
from mbsfmu.formulations.workspace import RecordedFunction
from mbsfmu.model import Mechanism
from mbsfmu.models import ladder, pendulum
from mbsfmu.native.program_code import program_code
from mbsfmu.parts import Revolute

SIZES = (8,) if QUICK else (4, 16, 64, 256, 512, 1024, 4096)
ABA_UP_TO = 512  # its data grow as the square of the number of bodies
STRAIGHT_UP_TO = 8 if QUICK else 16  # beyond, compilers take minutes
LADDERS = (2,) if QUICK else (4, 8, 16, 32, 64, 128, 256, 512)
STRAIGHT_LADDERS_UP_TO = 0 if QUICK else 8


def binary_tree(bodies: int) -> CoupledModel:
    """Return a tree of rods, two on the end of each, with hinges about Z, Y and X by depth."""
    links, joints = [], []
    for index in range(bodies):
        name = f"link_{index}"
        links.append(Beam(name=name, length=1.0, mass=1.0))
        depth = (index + 1).bit_length() - 1
        parent = "ground.O" if index == 0 else f"link_{(index - 1) // 2}.end"
        axis, ends = AXES[depth % 3], {"parent": parent, "child": f"{name}.start"}
        joints.append(Revolute(name=f"joint_{index}", axis=axis, angle=0.1 * depth, **ends))
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=tuple(links), joints=tuple(joints))
    return CoupledModel(name=f"tree-{bodies}", systems={"mechanism": mechanism})


def length(flow: Flow) -> tuple[int, int, int]:
    """Return how many kernels the code of a right-hand side has, its length in characters, and its memory in kB."""
    function = flow.formulation.explicit
    assert isinstance(function, RecordedFunction)
    schedule = function.program.schedule
    kernels = len({loop.kernel for loop in schedule.loops})
    return kernels, len(program_code(function, {})), schedule.size * 8 // 1000


def made_of(model: CoupledModel) -> tuple[Flow, list[str]]:
    """Return a flow in loops, and what its code and making it come to."""
    begin = time.process_time()
    flow = Flow(model, "dca", code=Code.LOOPS, compiled=False)
    kernels, characters, memory = length(flow)
    made = time.process_time() - begin
    return flow, [model.name, str(kernels), str(characters // 1000), str(memory), f"{made:.2f}"]


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
    columns = "mechanism", "kernels", "code [kB]", "memory [kB]", "made [s]", "loops [µs]", "of a body [ns]"
    print_row([*columns, "balanced [µs]", "straight [µs]", "aba [µs]", "loops/aba"])
    print_row(["---"] * 11)
    aba = None if QUICK else articulated_body(folder, ("-O2",))
    for size in SIZES:
        models = ((pendulum(size), False), (spatial_chain(size), True), (binary_tree(size), None))
        for model, spatial in models[: 1 if QUICK else None]:
            flow, told = made_of(model)
            functions = timed_functions(flow, straight=size <= STRAIGHT_UP_TO)
            if not QUICK:
                balanced = Flow(model, "dca", code=Code.LOOPS, assembly="balanced", compiled=False)
                functions["balanced"] = repeated(balanced)
            if aba is not None and size <= ABA_UP_TO and spatial is not None:
                functions["aba"] = pinocchios(aba, flow, spatial=spatial, world=False)
            times = {name: least for name, (_, least) in interleaved(functions, 20, max(2, 4096 // size)).items()}
            shown = [f"{times[name]:.2f}" if name in times else "–" for name in ("balanced", "straight", "aba")]
            ratio = f"{times['loops'] / times['aba']:.2f}" if "aba" in times else "–"
            of_body = f"{times['loops'] / size * 1e3:.0f}"
            print_row([*told, f"{times['loops']:.2f}", of_body, *shown, ratio])


def print_ladders() -> None:
    """Print a row for each ladder; three bodies close a loop."""
    print_row(
        ["ladder", "kernels", "code [kB]", "memory [kB]", "made [s]", "loops [µs]", "of a loop [ns]", "straight [µs]"]
    )
    print_row(["---"] * 8)
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
    if "--threads" in sys.argv:
        shared_table((16,) if QUICK else (256, 1024, 4096))
    else:
        main()
