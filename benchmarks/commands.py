"""Processor time of commands, of points of a sweep and of adaptive explicit runs, as docs/studies/speed.md tells them.

python benchmarks/commands.py [--rounds 7] [--quick]

Everything takes turns. Bytecode is kept, as it is where packages are installed, whatever the environment says.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import fmpy
from c_host import compile_host, host_command

import mbsfmu
from mbsfmu.native.native_package import export_native

QUICK = "--quick" in sys.argv  # a taste of it in seconds
MODEL, STOP = "four-bar-frictionless", 0.1 if QUICK else 10.0
FORMULATIONS = ("dca",) if QUICK else ("dca", "double-step")
OUTPUT_STEPS = (1e-2, 1e-3)
POINTS = (2, 4 if QUICK else 202)
"""Of two sweeps: their difference has no start in it."""
SWEEP = [
    *("-m", "mbsfmu", "--quiet", "sweep", "four-bar", "--step", "1e-3", "--stop", "2"),
    *("--workers", "1", "--fresh", "--force", "-o", "points.parquet"),
]
COMMANDS = {
    "`import mbsfmu`": ["-c", "import mbsfmu"],
    "`mbsfmu --help`": ["-m", "mbsfmu", "--help"],
    "`mbsfmu simulate four-bar`, the second time": ["-m", "mbsfmu", "--quiet", "simulate", "four-bar"],
}


def of_children(arguments: list[str], folder: Path) -> float:
    """Return the processor time in s that Python takes with these arguments, user and system."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_a_point(folder: Path) -> float:
    """Return the processor time in ms that a point of 2000 steps takes in a sweep, its start left out."""
    few, many = (of_children([*SWEEP, "--vary", f"boom.mass=100:400:{points}"], folder) for points in POINTS)
    return 1e3 * (many - few) / (POINTS[1] - POINTS[0])


class Explicit:
    """`rk45` in process, all variables recorded, and in a native unit with as many outputs."""

    def __init__(self, formulation: str, output_step: float, host: Path, folder: Path) -> None:
        self.title = f"`{formulation}`, outputs every {1e3 * output_step:g} ms"
        self.simulation = mbsfmu.models.built_in(MODEL).simulation(
            formulation=formulation, solver="rk45", step=output_step
        )
        self.steps = round(STOP / output_step)
        inside = folder / f"{formulation}-{output_step:g}"
        unit = export_native(self.simulation, folder / f"{inside.name}.fmu", platforms=[fmpy.platform])
        self.command = host_command(host, unit, inside, output_step, self.steps, 3)

    def in_unit(self) -> float:
        """Return the time of a run in the C host in ms."""
        done = subprocess.run(self.command, check=True, capture_output=True, text=True)
        return 1e-3 * self.steps * min(map(float, done.stdout.split()))

    def in_process(self) -> float:
        """Return the processor time of a run in process in ms."""
        before = resource.getrusage(resource.RUSAGE_SELF)
        self.simulation.run(STOP)
        after = resource.getrusage(resource.RUSAGE_SELF)
        return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="one round of everything shorter")
    rounds = 1 if QUICK else parser.parse_args().rounds
    times: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for arguments in COMMANDS.values():  # what the first time leaves behind is there in the rounds
            of_children(arguments, folder)
        host = compile_host(folder)
        explicit = [Explicit(form, step, host, folder) for form in FORMULATIONS for step in OUTPUT_STEPS]
        for _ in range(rounds):
            for title, arguments in COMMANDS.items():
                times[title].append(1e3 * of_children(arguments, folder))
            times["a point of `mbsfmu sweep`, 2000 steps"].append(of_a_point(folder))
            for each in explicit:
                times[f"unit, {each.title}"].append(each.in_unit())
                times[f"in process, {each.title}"].append(each.in_process())
    print("\n| | least [ms] | median [ms] |\n| --- | --- | --- |")
    for title, measured in times.items():
        print(f"| {title} | {min(measured):.3g} | {statistics.median(measured):.3g} |")


if __name__ == "__main__":
    main()
