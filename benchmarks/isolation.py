"""What a process of its own costs a unit: processor time and time of the clock for a step of one of two coupled lags.

Beginning and loading do not count; least of several runs. Needs Linux, which tells what other processes use.

    python benchmarks/isolation.py [--quick]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from cosim.linear_units import LinearSystem, export_linear

from mbsfmu import Cosimulation
from mbsfmu.compiling.compiler import SWITCH

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STEP, STEPS, REPEATS = 1e-3, 100 if QUICK else 5000, 1 if QUICK else 3
WAYS = {"compiled": ("1", None), "Python": ("0", None), "isolated": ("1", ["all"])}


def used() -> np.ndarray:
    """Return processor time of this process and of those that it has started, and time of the clock, in s."""
    started = " ".join(each.read_text() for each in Path("/proc/self/task").glob("*/children")).split()
    others = sum(int(Path("/proc", each, "schedstat").read_text().split()[0]) for each in started)
    return np.array([time.process_time(), 1e-9 * others, time.perf_counter()])


def spent(unit: Path, algorithm: str, isolate: list[str] | None) -> np.ndarray:
    """Return the same of the steps of a run between its first and its last: a start takes as long as thousands."""
    with Cosimulation(
        [f"a={unit}", f"b={unit}"], connections=["a.x=b.u", "b.x=a.u"], step=STEP, stop=(STEPS + 4) * STEP,
        algorithm=algorithm, isolate=isolate,
    ) as run:  # fmt: skip
        for _ in range(3):
            run.step()
        before = used()
        run.run(until=(STEPS + 2.5) * STEP)  # not to the end, where the processes end too
        return used() - before


def main() -> None:
    """Measure, and print a table."""
    matrices = [np.array([[value]]) for value in (-2.0, 2.0, 1.0, 0.0)]
    print("| µs for a step of a unit | master | unit's process | clock |")
    print("| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        unit = export_linear(LinearSystem("lag", matrices, [1.0], {"u": "1"}, {"x": "1"}), Path(folder), "rk4", STEP)
        for algorithm in ("gauss-seidel", "newton"):
            for way, (compiled, isolate) in WAYS.items():
                os.environ[SWITCH] = compiled
                least = np.min([spent(unit, algorithm, isolate) for _ in range(REPEATS)], axis=0) / STEPS / 2.0 * 1e6
                print(f"| {algorithm}, {way} | {' | '.join(f'{each:.1f}' for each in least)} |", flush=True)


if __name__ == "__main__":
    main()
