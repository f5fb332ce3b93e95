"""Where it pays to step units in threads of their own: two equal mechanisms beside each other.

Run: python benchmarks/coupling/threads.py [--quick]

Two units of the double pentagon, Jacobi, 2000 communication steps; the longer a communication step, the more internal
steps of 1 ms a unit makes in a call. Medians of runs with one and two threads taking turns.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import mbsfmu

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
ROUNDS = 1 if QUICK else 7
STEPS = (1e-3,) if QUICK else (1e-3, 4e-3, 1.6e-2, 6.4e-2)
COUNT = 50 if QUICK else 2000


def main() -> None:
    """Print one row for each communication step."""
    print("| step [s] | one thread: a step [µs] | two threads [µs] | ratio |\n|" + " --- |" * 4)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (path,) = mbsfmu.export(mbsfmu.models.built_in("double-pentagon"), folder, layout="monolithic")
        units = [Path(shutil.copy(path, folder / f"{unit}.fmu")) for unit in ("one", "two")]
        for step in STEPS:
            found: dict[int, list[float]] = {1: [], 2: []}
            for _ in range(ROUNDS):
                for threads, seconds in found.items():
                    run = mbsfmu.cosimulate(units, algorithm="jacobi", step=step, stop=COUNT * step, threads=threads)
                    seconds.append(run.statistics.wall_seconds / COUNT * 1e6)
            one, two = (float(np.median(seconds)) for seconds in found.values())
            print(f"| {step:g} | {one:.1f} | {two:.1f} | {two / one:.2f} |", flush=True)


if __name__ == "__main__":
    main()
