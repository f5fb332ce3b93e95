"""What error control costs beside compiled steps: the rings of `iterated.py`, Jacobi, linear, steps of one length.

A controlled step is made once as a whole and once in two halves, and a second run makes whole steps beside: four steps
of compiled code, with three saved states and three restored ones of each FMU. All else is Python. Processor time, least
of several runs.

    python benchmarks/coupling/controlled.py [--quick]
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from cosim.linear_units import LinearSystem, export_linear
from iterated import QUICK, export_ring

from mbsfmu import Cosimulation

STEP, REPEATS = 5e-4, 1 if QUICK else 5
COUNTS = (2,) if QUICK else (2, 10, 50)
STEPS = {"fixed": 40 if QUICK else 2000, "error": 20 if QUICK else 300}
IN_ONE = 4
"""Compiled steps in a controlled one."""


def microseconds(package: Path, control: str) -> float:
    """Return the processor time in µs of a step, but for the first three."""
    bounds = {} if control == "fixed" else {"smallest_step": STEP, "largest_step": STEP}
    least, stop = np.inf, STEPS[control] * STEP
    for _ in range(REPEATS):
        with Cosimulation(
            package, algorithm="jacobi", extrapolation="linear", control=control, step=STEP, stop=stop, **bounds
        ) as run:
            for _ in range(3):
                run.step()
            begin = time.process_time()
            run.run()
            least = min(least, (time.process_time() - begin) / (run.statistics.steps - 3))
    return 1e6 * float(least)


def main() -> None:
    """Measure and print the table."""
    logging.disable(logging.WARNING)
    print("| FMUs | compiled step | four of them | controlled step | Python and states, share |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        matrices = [np.array([[value]]) for value in (-2.0, 2.0, 1.0, 0.0)]
        unit = export_linear(LinearSystem("lag", matrices, [1.0], {"u": "1"}, {"x": "1"}), Path(folder), "rk4", 1e-3)
        for count in COUNTS:
            package = export_ring(unit, count)
            fixed, controlled = (microseconds(package, control) for control in STEPS)
            share = 1.0 - IN_ONE * fixed / controlled
            print(f"| {count} | {fixed:.1f} | {IN_ONE * fixed:.1f} | {controlled:.0f} | {share:.2f} |")


if __name__ == "__main__":
    main()
