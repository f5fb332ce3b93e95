"""Processor time of the first run of built-in models, nothing being kept: tracing, compiling, and a short run.

Run: python benchmarks/first_runs.py [--quick]

Each run is a process of its own with an empty folder for what is kept; its time and that of the compilers that it
starts count. What Python takes to load the packages is in it, but not to compile them, which is done once when packages
are installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from mbsfmu.formulations.formulation import FORMULATIONS
from mbsfmu.models import BUILT_IN

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
MODELS = ("loop-4",) if QUICK else (*BUILT_IN, "pendulum-16", "ladder-4")
CHOSEN = ("dca",) if QUICK else FORMULATIONS.names()


def first_run(model: str, formulation: str, bytecode: str) -> float:
    """Return the processor time of a first run in s, with a folder for Python's bytecode, which stays."""
    with tempfile.TemporaryDirectory() as folder:
        run = ["--quiet", "simulate", model, "--formulation", formulation, "--stop", "0.01"]
        call = [sys.executable, "-m", "mbsfmu", *run]
        environment = {**os.environ, "MBSFMU_CACHE": folder, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        before = os.times()
        subprocess.run(call, env=environment, check=True, capture_output=True)
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    """Print a row for each model."""
    print(f"| model | {' | '.join(CHOSEN)} |")
    print("|" + " --- |" * (1 + len(CHOSEN)))
    with tempfile.TemporaryDirectory() as bytecode:
        for formulation in CHOSEN:
            first_run(MODELS[0], formulation, bytecode)
        for model in MODELS:
            times = [f"{first_run(model, formulation, bytecode):.1f}" for formulation in CHOSEN]
            print(f"| {model} | {' | '.join(times)} |", flush=True)


if __name__ == "__main__":
    main()
