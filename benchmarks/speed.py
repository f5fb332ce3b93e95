"""What a step of 1 ms of the four-bar costs, in every way to make it and in Exudyn; what an export costs.

Needs gcc and, for its comparison, Exudyn: pip install exudyn. All ways take turns, so that what else runs on the
machine disturbs them alike; ratios are taken within a turn. Run: python benchmarks/speed.py [--rounds 42]
[--exports 7] [--quick]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import fmpy
import numpy as np
from c_host import compile_host, host_command
from exudyn_four_bar import FourBar, exu
from fmpy.simulation import instantiate_fmu

import mbsfmu
from mbsfmu.base.errors import InputError
from mbsfmu.compiling.compiler import platform_names
from mbsfmu.compiling.kept import FOLDER

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
MODEL, STOP, STEP = "four-bar-frictionless", 0.2 if QUICK else 10.0, 1e-3
STEPS = round(STOP / STEP)
SLOW_EVERY, HOST_RUNS = 6, 1 if QUICK else 9
FORMULATIONS = ("double-step", "penalty")
FASTER = {"double-step": 10, "penalty": 10, "dca-alm": 2}
"""Formulations in the C host, and how many times as fast as Exudyn they are to be."""
SLOW = ("Python FMU", "in process, interpreter")
HERE = Path(__file__).parent

# Modified Newton or full, relative tolerance of the residual.
EXUDYN = ((False, 1e-4), (True, 1e-6), (True, 1e-4))
EXUDYN_REFERENCE = (False, 1e-10)
CLOSE = 1e-6
"""Exudyn's cylinder length may deviate by this from its own converged one, in m, for its time to count."""

# The command line inside a started interpreter with everything imported.
_TIMED_COMMAND = """
import sys, time
from mbsfmu.cli.commands import cli
import mbsfmu.cli.export
begin = time.perf_counter()
cli.main(sys.argv[1:], standalone_mode=False)
print(time.perf_counter() - begin)
"""

Timed = Callable[[], float]
Times = dict[int, float]
"""µs per step by round."""


def in_host(host: Path, unit: Path, folder: Path) -> Timed:
    """Time fmi2DoStep in the host, in µs: the median of runs that together take about as long as one of Exudyn."""
    command = host_command(host, unit, folder, STEP, STEPS, HOST_RUNS)

    def timed() -> float:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return statistics.median(float(line) for line in done.stdout.split())

    return timed


def in_fmpy(unit: Path, folder: Path) -> Timed:
    """Time FMPy's doStep, in µs."""
    description = fmpy.read_model_description(str(unit))
    slave = instantiate_fmu(fmpy.extract(str(unit), str(folder)), description, "CoSimulation")

    def timed() -> float:
        slave.setupExperiment(startTime=0.0)
        slave.enterInitializationMode()
        slave.exitInitializationMode()
        begin = time.perf_counter()
        for index in range(STEPS):
            slave.doStep(index * STEP, STEP)
        seconds = time.perf_counter() - begin
        slave.reset()
        return 1e6 * seconds / STEPS

    return timed


def in_process(formulation: str, *, compiled: bool) -> Timed:
    """Time a run in process, which reads all variables after every step, in µs per step."""
    simulation = mbsfmu.models.built_in(MODEL).simulation(formulation=formulation, step=STEP, compiled=compiled)

    def timed() -> float:
        begin = time.perf_counter()
        simulation.run(STOP)
        return 1e6 * (time.perf_counter() - begin) / STEPS

    return timed


def in_exudyn(modified: bool, tolerance: float) -> Timed:
    """Time Exudyn's solver, in µs per step."""

    def timed() -> float:
        seconds, _ = FourBar().run(STEP, modified=modified, tolerance=tolerance)
        return 1e6 * seconds / STEPS

    return timed


def ways(folder: Path) -> dict[str, Timed]:
    """Prepare every way to make a step."""
    model = mbsfmu.models.built_in(MODEL)
    host = compile_host(folder)
    units = {
        (backend, formulation): mbsfmu.export(
            model,
            folder / backend / formulation,
            layout="monolithic",
            backend=backend,
            formulation=formulation,
            step=STEP,
        )[0]
        for backend, formulations in (("native", FASTER), ("python", FORMULATIONS))
        for formulation in formulations
    }
    made: dict[str, Timed] = {}
    for formulation in FASTER:
        unit = units["native", formulation]
        made[f"native FMU, C host, {formulation}"] = in_host(host, unit, folder / f"unpacked-{formulation}")
    for backend, title in (("native", "native"), ("python", "Python")):
        for formulation in FORMULATIONS:
            made[f"{title} FMU, FMPy, {formulation}"] = in_fmpy(
                units[backend, formulation], folder / f"{backend}-{formulation}"
            )
    for compiled, title in ((True, "compiled loop"), (False, "interpreter")):
        for formulation in FORMULATIONS:
            made[f"in process, {title}, {formulation}"] = in_process(formulation, compiled=compiled)
    for choice in EXUDYN:
        made[exudyn_title(*choice)] = in_exudyn(*choice)
    return made


def exudyn_title(modified: bool, tolerance: float) -> str:
    """Name a choice of Exudyn's solver."""
    return f"Exudyn, {'modified' if modified else 'full'} Newton, {tolerance:.0e}"


def time_steps(rounds: int) -> dict[str, Times]:
    """Let all ways take turns, those in Python seldom; return the times of each."""
    with tempfile.TemporaryDirectory() as folder:
        timed = ways(Path(folder))
        times: dict[str, Times] = {name: {} for name in timed}
        for turn in range(rounds):
            for name, way in timed.items():
                if turn % SLOW_EVERY == 0 or not name.startswith(SLOW):
                    times[name][turn] = way()
    return times


def ratios(one: Times, other: Times) -> list[float]:
    """Return the quartiles, over the rounds that both have, of the ratio within a round."""
    return quartiles([one[turn] / other[turn] for turn in one.keys() & other.keys()])


def quartiles(values: Iterable[float]) -> list[float]:
    """Return the quartiles; of a single value, which ways in Python have in few rounds, this value three times."""
    values = list(values)
    return statistics.quantiles(values, n=4) if len(values) > 1 else values * 3


def print_steps(times: dict[str, Times]) -> None:
    """Print median, quartiles and ratio to the first of every way."""
    base = next(iter(times.values()))
    print("| one step of 1 ms | median [µs] | quartiles [µs] | 10 s take [s] | ratio |\n|" + " --- |" * 5)
    for name, values in times.items():
        low, median, high = quartiles(values.values())
        row = f"{median:.3g} | {low:.3g} – {high:.3g} | {median * STEPS / 1e6:.3g} | {ratios(values, base)[1]:.3g}"
        print(f"| {name} | {row} |")


def compare_motion() -> dict[str, float]:
    """Print how far Exudyn's motion is from ours; return each choice's deviation from the converged one, in m."""
    ours = mbsfmu.models.built_in(MODEL).simulation(step=1e-3).run(STOP)
    _, reference = FourBar(record=True).run(STEP, modified=EXUDYN_REFERENCE[0], tolerance=EXUDYN_REFERENCE[1])
    lengths = np.interp(reference[:, 0], ours.time, ours["cylinder.length"])
    difference = float(np.max(np.abs(reference[:, 1] - lengths)))
    held = np.abs(reference[reference[:, 0] <= 1.0, 1] - lengths[0])
    print("\n| cylinder length at [s] | ours [m] | Exudyn [m] |\n| --- | --- | --- |")
    for instant in (1.0, 2.5, 5.0, 8.0, 10.0):
        at = int(np.argmin(np.abs(reference[:, 0] - instant)))
        print(f"| {instant:g} | {lengths[at]:.5f} | {reference[at, 1]:.5f} |")
    print(f"\nLargest difference {1e3 * difference:.2f} mm of {1e3 * np.ptp(lengths):.0f} mm of motion; ", end="")
    print(f"held at rest in the first second to {np.max(held):.1g} m.")
    deviations = {}
    for modified, tolerance in EXUDYN:
        _, found = FourBar(record=True).run(STEP, modified=modified, tolerance=tolerance)
        deviations[exudyn_title(modified, tolerance)] = float(np.max(np.abs(found[:, 1] - reference[:, 1])))
    print("\n| deviation from converged | [m] |\n| --- | --- |")
    for name, deviation in deviations.items():
        print(f"| {name} | {deviation:.1g} |")
    return deviations


def print_sizes() -> int:
    """Print the size of the unit for each platform that can be built here; return the largest in bytes."""
    sizes: dict[str, int] = {}
    model = mbsfmu.models.built_in(MODEL)
    print("\n| FMU for | size [kB] |\n| --- | --- |")
    for platforms in (*((each,) for each in platform_names(2)), platform_names(2)):
        title = ", ".join(platforms)
        with tempfile.TemporaryDirectory() as folder:
            try:
                (unit,) = mbsfmu.export(model, folder, layout="monolithic", platforms=platforms)
            except InputError:
                print(f"| {title} | not here: needs the extra 'cross' |")
                continue
            sizes[title] = unit.stat().st_size
            print(f"| {title} | {sizes[title] / 1e3:.0f} |")
    return max(sizes[each] for each in platform_names(2) if each in sizes)


def time_export(exports: int) -> float:
    """Print what an export takes with nothing kept from earlier ones; return the median of the whole command in s."""
    whole, computed, inside = [], [], []
    for _ in range(exports):
        for command, seconds in ((["-m", "mbsfmu"], whole), (["-c", _TIMED_COMMAND], inside)):
            with tempfile.TemporaryDirectory() as folder:
                cache = {FOLDER: folder}
                # The first call of zig makes its C library, which takes minutes and is not what is measured.
                zig = {"ZIG_GLOBAL_CACHE_DIR": str(Path.home() / ".cache" / "zig")}
                arguments = ["export", MODEL, "-o", str(Path(folder) / "out"), "--layout", "monolithic", "--quiet"]
                before, begin = _processor_time(), time.perf_counter()
                done = subprocess.run(
                    [sys.executable, *command, *arguments],
                    check=True,
                    capture_output=True,
                    text=True,
                    env={**os.environ, **zig, **cache},
                )
                taken = time.perf_counter() - begin
            seconds.append(float(done.stdout.split()[-1]) if seconds is inside else taken)
            if seconds is whole:
                computed.append(_processor_time() - before)
    print("\n| export, monolithic, nothing kept | median [s] | least – most [s] |\n| --- | --- | --- |")
    rows = {"whole command": whole, "its processor time": computed, "without start and imports": inside}
    for title, seconds in rows.items():
        print(f"| {title} | {statistics.median(seconds):.2f} | {min(seconds):.2f} – {max(seconds):.2f} |")
    return statistics.median(whole)


def _processor_time() -> float:
    """Return what all ended children have used, in s; what else runs on the machine counts little in it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def print_floors(times: dict[str, Times], deviations: dict[str, float], size: int, export: float) -> None:
    """Print what was aimed at beside what was found."""
    close = [times[name] for name, deviation in deviations.items() if deviation <= CLOSE]
    print("\n| floor | found | |\n| --- | --- | --- |")
    for formulation, wanted in FASTER.items():
        steps = times[f"native FMU, C host, {formulation}"]
        low, faster, high = min((ratios(each, steps) for each in close), key=lambda found: found[1])
        found = f"{faster:.1f} times, quartiles {low:.1f} – {high:.1f}"
        print(f"| {wanted} times as fast as Exudyn, {formulation} | {found} | {_verdict(faster >= wanted)} |")
    for formulation in FORMULATIONS:
        steps = times[f"native FMU, C host, {formulation}"]
        low, step, high = quartiles(steps.values())
        found = f"{step:.2f} µs, quartiles {low:.2f} – {high:.2f}"
        print(f"| at most 3 µs per step in the C host, {formulation} | {found} | {_verdict(step <= 3)} |")
    print(f"| FMU below 200 kB | {size / 1e3:.0f} kB | {_verdict(size < 200_000)} |")
    print(f"| export below 5 s | {export:.2f} s | {_verdict(export < 5)} |")


def _verdict(met: bool) -> str:
    return "met" if met else "**missed**"


def main() -> None:
    """Measure and print everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--rounds", type=int, default=1 if QUICK else 42, help="of all ways; those in Python in every sixth"
    )
    parser.add_argument("--exports", type=int, default=1 if QUICK else 7)
    parser.add_argument("--quick", action="store_true", help="a taste of it, in seconds")
    given = parser.parse_args()
    print(f"Exudyn {exu.__version__}; {given.rounds} rounds\n")
    times = time_steps(given.rounds)
    print_steps(times)
    deviations = compare_motion()
    size = print_sizes()
    print_floors(times, deviations, size, time_export(given.exports))


if __name__ == "__main__":
    main()
