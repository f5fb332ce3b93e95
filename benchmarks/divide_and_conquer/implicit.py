"""Implicit steps of `dca` in loops over the number of bodies, or of rungs: the trapezoidal rule, and `rodas5p`.

Run: python benchmarks/divide_and_conquer/implicit.py [--quick]

What a step takes is the least of some rounds, in processor time, each of several steps behind the start. Where steps
are as long as a tolerance lets them be, it is one of them.
"""

from __future__ import annotations

import time

import numpy as np
from machines import TREES
from rates import QUICK

from mbsfmu.formulations.first_order import FirstOrderFormulation
from mbsfmu.models import ladder
from mbsfmu.simulation.simulation import Simulation

SIZES = (2, 3) if QUICK else (64, 256, 1024)
LOOPS = (1, 2) if QUICK else (16, 32, 64, 128, 256)
ROUNDS = 1 if QUICK else 6
ROUND = {"trapezoidal": 0.02, "rodas5p": 0.02} if QUICK else {"trapezoidal": 0.1, "rodas5p": 1.0}  # s
SOLVERS = tuple(ROUND)
KINDS = ("ladder",) if QUICK else ("planar", "tree", "spatial", "ladder")


def of_a_step(simulation: Simulation, length: float) -> float:
    """Return what a step costs in ms, by rounds of a length in s."""
    simulation.initialize()
    simulation.step(0.0, length)
    costs = []
    for _ in range(ROUNDS):
        steps, begin = simulation.statistics.steps, time.process_time()
        simulation.step(simulation.time, length)
        costs.append(1e3 * (time.process_time() - begin) / (simulation.statistics.steps - steps))
    return min(costs)


def main() -> None:
    """Print a row for each mechanism, and how costs grow."""
    columns = "mechanism | numbers of one | trapezoidal [ms] | of one [µs] | rodas5p [ms] | of one [µs]"
    print(f"| {columns} |")
    print("|" + " --- |" * 6)
    growing = []
    for kind in KINDS:
        found: dict[str, list[float]] = {solver: [] for solver in SOLVERS}
        sizes = LOOPS if kind == "ladder" else SIZES
        for size in sizes:
            cells = [f"{kind}-{size}", ""]
            for solver in SOLVERS:
                model = ladder(size) if kind == "ladder" else TREES[kind](size).model()
                simulation = model.simulation(formulation="dca", solver=solver, step=1e-3, code="loops")
                formulation = simulation.formulation
                assert isinstance(formulation, FirstOrderFormulation)
                if solver == "trapezoidal":
                    cells[1] = f"{formulation.recorded.implicit.changes.program.schedule.size / size:.0f}"
                found[solver].append(of_a_step(simulation, ROUND[solver]))
                cells += [f"{found[solver][-1]:.3g}", f"{1e3 * found[solver][-1] / size:.3g}"]
            print(f"| {' | '.join(cells)} |", flush=True)
        for solver, times in found.items():
            slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
            growing.append(f"{kind}, {solver}: n^{slope:.2f}")
    print("\n".join(growing))


if __name__ == "__main__":
    main()
