"""Worst and median time of a step of 1 ms of every built-in model in a native unit, with iterations limited and not.

Needs gcc. A host in C times every fmi2DoStep of several runs; of each step the least of all runs counts, which leaves
out what else the machine does, and the median and the largest of these are told. Run: python benchmarks/step_times.py
[--quick] [MODEL …]
"""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from c_host import compile_host, host_command

import mbsfmu
from mbsfmu.models import BUILT_IN

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STEP, STEPS, RUNS = 1e-3, 200 if QUICK else 3000, 2 if QUICK else 15
MODELS = ("pendulum-2", "loop-4") if QUICK else (*BUILT_IN, "four-bar-frictionless", "pendulum-2", "pendulum-32")
FORMULATIONS = ("double-step",) if QUICK else ("double-step", "penalty")
LIMITS = (None, 2, 1)


def times_of_steps(host: Path, model: str, formulation: str, iterations: int | None, folder: Path) -> list[float]:
    """Return the time of every step in µs, the least of all runs."""
    unit = mbsfmu.export(
        mbsfmu.models.built_in(model),
        folder,
        layout="monolithic",
        formulation=formulation,
        step=STEP,
        iterations=iterations,
    )[0]
    command = host_command(host, unit, folder / "unpacked", STEP, STEPS, RUNS)
    done = subprocess.run([*command, "each"], check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]


def main() -> None:
    """Print one row for each model and formulation."""
    logging.disable(logging.WARNING)
    chosen = [name for name in sys.argv[1:] if not name.startswith("--")] or MODELS
    titles = ["converged" if limit is None else f"{limit} iterations" for limit in LIMITS]
    print(f"| model, formulation | {' | '.join(f'{title}: median, worst [µs]' for title in titles)} |")
    print("|" + " --- |" * (1 + len(titles)))
    with tempfile.TemporaryDirectory() as name:
        host = compile_host(Path(name))
        for model in chosen:
            for formulation in FORMULATIONS:
                cells = []
                for limit in LIMITS:
                    times = times_of_steps(
                        host, model, formulation, limit, Path(name) / f"{model}-{formulation}-{limit}"
                    )
                    cells.append(f"{np.median(times):.2f}, {np.max(times):.2f}")
                print(f"| {model}, {formulation} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
