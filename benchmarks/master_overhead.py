"""What the master adds to the units' own time: two units with three connections and a power bond, beside FMPy.

The units are the halves of the two-mass oscillator, native, with one explicit internal step, so that their own time
does not depend on what they are told. For each step of both: the calls of the FMI that any master makes, alone in a
loop of C; the master's run, its steps made by compiled code and by Python; and `fmpy.simulate_fmu` of each unit alone.
The overhead is the master's time less that of the calls. Least of many runs taken in turn, for what else the machine
does only adds.

    python benchmarks/master_overhead.py [--quick]
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from pathlib import Path

import fmpy
from calls_alone import calls_alone

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from cosim.linear_units import CONNECTIONS, LinearSystem, export_linear, halves

from mbsfmu import cosimulate
from mbsfmu.compiling.compiler import SWITCH

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STEP, REPEATS = 1e-3, 2 if QUICK else 60
STEPS = {"1": 50 if QUICK else 2000, "0": 50 if QUICK else 100}  # what is short is rarely interrupted by other work
EXTRAPOLATIONS = ("zero", "linear", "quadratic", "derivatives")
SETTINGS = [(algorithm, extrapolation) for algorithm in ("jacobi", "gauss-seidel") for extrapolation in EXTRAPOLATIONS]
WAYS = {"1": "compiled", "0": "Python"}


def export_fmus() -> list[Path]:
    """Write both units; the second one also takes the position of the first, which it does not use."""
    folder = Path(tempfile.mkdtemp())
    one, two = halves()
    a, b, c, d = two.matrices
    widened = LinearSystem(
        "two",
        (a, b @ [[1, 0]], c, d @ [[1, 0]]),
        two.initial_states(None),
        {"velocity": "m/s", "other": "m"},
        {each.name: each.unit for each in two.outputs},
    )
    return [export_linear(system, folder, "rk4", STEP) for system in (one, widened)]


def measure(units: list[Path], least: dict[tuple[str, ...], float]) -> None:
    """Measure everything once; keep the least times in µs for a step of both units."""

    def note(seconds: float, steps: int, *name: str) -> None:
        microseconds = 1e6 * seconds / steps
        least[name] = min(least.get(name, microseconds), microseconds)

    for extrapolation in EXTRAPOLATIONS:
        slopes, rates = extrapolation != "zero", extrapolation == "derivatives"
        note(calls_alone(units, STEPS["1"], STEP, slopes, rates), STEPS["1"], "calls", extrapolation)
    for way, steps in STEPS.items():
        os.environ[SWITCH] = way
        for algorithm, extrapolation in SETTINGS:
            result = cosimulate(
                units,
                connections=(*CONNECTIONS, "one.position=two.other"),
                algorithm=algorithm,
                extrapolation=extrapolation,
                step=STEP,
                stop=steps * STEP,
            )
            note(result.wall_seconds, steps, way, algorithm, extrapolation)
    begin = time.perf_counter()
    for unit in units:
        fmpy.simulate_fmu(str(unit), stop_time=STEPS["1"] * STEP, step_size=STEP, output_interval=STEP)
    note(time.perf_counter() - begin, STEPS["1"], "fmpy")


def main() -> None:
    """Measure and print the table."""
    logging.disable(logging.WARNING)
    units = export_fmus()
    least: dict[tuple[str, ...], float] = {}
    for _ in range(REPEATS):
        measure(units, least)
    print(
        f"microseconds for a step of both units; least of {REPEATS} runs of {STEPS['1']} steps, in Python {STEPS['0']}"
    )
    print(f"fmpy.simulate_fmu of each unit alone, unpacking and loading with it: {least['fmpy',]:.1f}\n")
    print(f"| | {' | '.join(EXTRAPOLATIONS)} |\n|" + " --- |" * (1 + len(EXTRAPOLATIONS)))
    calls = [least["calls", each] for each in EXTRAPOLATIONS]
    print(f"| calls of the FMI alone | {' | '.join(f'{each:.2f}' for each in calls)} |")
    for way, name in WAYS.items():
        for algorithm in ("jacobi", "gauss-seidel"):
            runs = [least[way, algorithm, each] for each in EXTRAPOLATIONS]
            cells = [f"{run - call:.2f}" for run, call in zip(runs, calls, strict=True)]
            print(f"| {algorithm}, overhead, {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
