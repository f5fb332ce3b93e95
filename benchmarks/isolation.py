"""What a process of its own costs a unit: processor time and time of the clock for a step of one of two coupled lags.

The difference between a run and a shorter one, so that beginning and loading do not count; least of several.

    python benchmarks/isolation.py [--quick]
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from cosim.linear_units import LinearSystem, export_linear

from mbsfmu import cosimulate
from mbsfmu.compiling.compiler import SWITCH

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STEP, SHORT, LONG, REPEATS = 1e-3, 50, 150 if QUICK else 5000, 1 if QUICK else 3
WAYS = {"compiled": ("1", None), "Python": ("0", None), "isolated": ("1", ["all"])}


def spent(unit: Path, algorithm: str, isolate: list[str] | None, steps: int) -> np.ndarray:
    """Return processor time of the master and of other processes, and time of the clock, in s."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    before = [resource.getrusage(each) for each in who]
    begin = time.perf_counter()
    cosimulate(
        [f"a={unit}", f"b={unit}"], connections=["a.x=b.u", "b.x=a.u"], step=STEP, stop=steps * STEP,
        algorithm=algorithm, isolate=isolate,
    )  # fmt: skip
    clock = time.perf_counter() - begin
    used = [resource.getrusage(each) for each in who]
    times = [new.ru_utime + new.ru_stime - old.ru_utime - old.ru_stime for old, new in zip(before, used, strict=True)]
    return np.array([*times, clock])


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
                runs = [
                    spent(unit, algorithm, isolate, LONG) - spent(unit, algorithm, isolate, SHORT)
                    for _ in range(REPEATS)
                ]
                least = np.min(runs, axis=0) / (LONG - SHORT) / 2.0 * 1e6
                print(f"| {algorithm}, {way} | {' | '.join(f'{each:.1f}' for each in least)} |", flush=True)


if __name__ == "__main__":
    main()
