"""Implicit steps of `dca` in loops over the number of bodies: the trapezoidal rule, and `rodas5p`.

Run: python benchmarks/divide_and_conquer/implicit.py [--quick]

A step is the difference between runs of two lengths, each the least of some rounds, in processor time; starts and
readings are in both. Where steps are as long as a tolerance lets them be, it is one of them.
"""

from __future__ import annotations

import time

import numpy as np
from machines import TREES
from rates import QUICK

from mbsfmu.formulations.first_order import FirstOrder
from mbsfmu.simulation.simulation import Simulation

SIZES = (4, 8) if QUICK else (64, 256, 1024)
ROUNDS = 1 if QUICK else 3
SHORT, LONG = (0.002, 0.004) if QUICK else (0.05, 0.45)  # s
SOLVERS = ("trapezoidal", "rodas5p")


KINDS = ("planar",) if QUICK else ("planar", "tree", "spatial")


def cost(simulation: Simulation, stop: float) -> tuple[float, int]:
    """Return the processor time of a run in ms, and its steps."""
    begin = time.process_time()
    simulation.run(stop=stop, output_step=stop)
    return 1e3 * (time.process_time() - begin), simulation.statistics.steps


def of_a_step(simulation: Simulation) -> float:
    """Return what a step costs in ms."""
    cost(simulation, SHORT)
    rounds = [(cost(simulation, SHORT), cost(simulation, LONG)) for _ in range(ROUNDS)]
    short, long = (min(each[index][0] for each in rounds) for index in range(2))
    return (long - short) / max(rounds[0][1][1] - rounds[0][0][1], 1)


def main() -> None:
    """Print a row for each mechanism, and how costs grow."""
    columns = "mechanism | numbers of a body | trapezoidal [ms] | of a body [µs] | rodas5p [ms] | of a body [µs]"
    print(f"| {columns} |")
    print("|" + " --- |" * 6)
    growing = []
    for kind in KINDS:
        found: dict[str, list[float]] = {solver: [] for solver in SOLVERS}
        for size in SIZES:
            cells = [f"{kind}-{size}", ""]
            for solver in SOLVERS:
                simulation = (
                    TREES[kind](size).model().simulation(formulation="dca", solver=solver, step=1e-3, code="loops")
                )
                formulation = simulation.formulation
                assert isinstance(formulation, FirstOrder)
                if solver == "trapezoidal":
                    cells[1] = f"{formulation.recorded.implicit.changes.program.schedule.size / size:.0f}"
                found[solver].append(of_a_step(simulation))
                cells += [f"{found[solver][-1]:.3g}", f"{1e3 * found[solver][-1] / size:.3g}"]
            print(f"| {' | '.join(cells)} |", flush=True)
        for solver, times in found.items():
            slope = np.polyfit(np.log(SIZES), np.log(np.abs(times)), 1)[0]
            growing.append(f"{kind}, {solver}: n^{slope:.2f}")
    print("\n".join(growing))


if __name__ == "__main__":
    main()
