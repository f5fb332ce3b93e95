"""What an iterated step costs: rings of small FMUs, Jacobi beside fixed-point and Newton's iteration.

Each FMU is a lag of first order, native, with one explicit internal step, and takes 0.9 times what the one before it
gives. Held inputs; iterated steps take two sweeps. Processor time of a run without that of one of a single step, least
of several runs.

    python benchmarks/coupling/iterated.py [--quick]
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))
from calls_alone import calls_alone
from cosim.linear_units import LinearSystem, export_linear

from mbsfmu import cosimulate
from mbsfmu.compiling.compiler import SWITCH
from mbsfmu.cosim import Connection, write_ssp

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STEP, REPEATS = 1e-3, 1 if QUICK else 5
COUNTS = (2, 5) if QUICK else (2, 10, 50, 200)
UNIT_STEPS = 100 if QUICK else 200_000  # of all FMUs in a run
WAYS = (("jacobi", "1"), ("fixed-point", "1"), ("newton", "1"), ("newton", "0"))


def export_ring(unit: Path, count: int) -> Path:
    """Write a package of a ring of an FMU."""
    names = [f"lag_{index}" for index in range(count)]
    wires = [Connection((names[index - 1], "x"), (names[index], "u"), factor=0.9) for index in range(count)]
    return write_ssp(unit.parent / f"ring_{count}.ssp", "ring", dict.fromkeys(names, unit), wires, 1.0)


def seconds_of(package: Path, algorithm: str, way: str, steps: int) -> tuple[float, float]:
    """Return the processor time in s of a run, and the sweeps of a step."""
    os.environ[SWITCH] = way
    begin = time.process_time()
    result = cosimulate(package, algorithm=algorithm, step=STEP, stop=steps * STEP)
    return time.process_time() - begin, result.iterations / result.steps


def main() -> None:
    """Measure and print the table."""
    logging.disable(logging.WARNING)
    heads = ("calls alone", "jacobi", "fixed-point", "newton", "newton, Python", "newton / jacobi", "sweeps")
    print(f"| FMUs | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 1)}")
    with tempfile.TemporaryDirectory() as folder:
        matrices = [np.array([[value]]) for value in (-2.0, 2.0, 1.0, 0.0)]
        unit = export_linear(LinearSystem("lag", matrices, [1.0], {"u": "1"}, {"x": "1"}), Path(folder), "rk4", STEP)
        for count in COUNTS:
            package, most = export_ring(unit, count), UNIT_STEPS // count
            cost = {("calls", "1"): min(calls_alone(package, most, STEP) for _ in range(REPEATS)) / most}
            sweeps = 0.0
            for algorithm, way in WAYS:
                steps = most if way == "1" else max(most // 50, 10)
                whole, one = (
                    min(seconds_of(package, algorithm, way, each)[0] for _ in range(REPEATS)) for each in (steps, 1)
                )
                sweeps = seconds_of(package, algorithm, way, 10)[1]
                cost[algorithm, way] = (whole - one) / (steps - 1)
            cells = [f"{1e6 * each:.3g}" for each in cost.values()]
            ratio = cost["newton", "1"] / cost["jacobi", "1"]
            print(f"| {count} | {' | '.join(cells)} | {ratio:.1f} | {sweeps:.1f} |", flush=True)


if __name__ == "__main__":
    main()
