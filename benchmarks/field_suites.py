"""Benchmark problems of the field by pure defaults in every formulation: errors, what runs say of them, steps, times.

Errors are the largest of a case's variables, in fractions of their ranges; where a reference has its values at the end
alone, the error over the run follows in brackets, against a run with a tolerance of 1e-12. What a run says is its own
estimate, or that of `--check-error` where it has none: of the same variable, and the largest of all. Times are
processor times of a second run.

Run: python benchmarks/field_suites.py [NAME ...] [--quick]
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time as clock
from functools import cache
from pathlib import Path

import numpy as np

from mbsfmu import Result, SimulationError
from mbsfmu.compiling.compiler import OPTIMIZATION

os.environ.setdefault(OPTIMIZATION, "suited")  # what is timed is optimized from its first step on
sys.path.append(str(Path(__file__).parents[1] / "tests"))
from field_case import FieldCase, estimated_errors
from field_cases import cases

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
WAYS_THROUGH = {"A02, N = 32", "A02, N = 40"}
"""Cases that also run by the equal steps that the sentence of the default formulation names."""


@cache
def reference(case: FieldCase) -> Result:
    """Return a run of a case with a tolerance of 1e-12, for what is known at its end alone."""
    return case.make().simulation(relative_tolerance=1e-12).run(stop=case.stop)


def over_the_run(case: FieldCase, result: Result, variable: str) -> float:
    """Return the largest error of a variable over a run relative to its range, against the reference run."""
    exact = reference(case)
    values = np.interp(exact.time, result.time, result[variable])
    return float(np.max(np.abs(values - exact[variable])) / np.ptp(exact[variable]))


def row(case: FieldCase, options: dict[str, str]) -> list[str]:
    """Return the cells of a run: error, variable, what is said of it, the largest that is said, steps, ms."""
    simulation = case.make().simulation(**options)
    with estimated_errors() as said:
        try:
            simulation.run(stop=case.stop)
            begin = clock.process_time()
            result = simulation.run(stop=case.stop)
        except SimulationError as error:
            why, _, cause = str(error).partition(": ")
            return ["–", "–", "–", f"ends: {cause if 'change point' in cause else why}", "–", "–"]
        seconds = clock.process_time() - begin
        estimate, by = result.error, ""
        if estimate.note.startswith("not estimated"):
            said.clear()
            estimate, by = case.make().simulation(**options, check_error=True).run(stop=case.stop).error, " (checked)"
    error, variable = case.error(result)
    known_at_end = len(case.known(result.time)[variable]) == 1
    over_run = f" ({over_the_run(case, result, variable):.1e})" if known_at_end else ""
    of_it = f"{said[variable]:.1e}{by}" if variable in said else "–"
    largest = (
        estimate.note.partition(":")[0] if estimate.share is None else f"{estimate.share:.1e} `{estimate.variable}`"
    )
    numbers = str(result.statistics.steps), f"{1e3 * seconds:.3g}"
    return [f"{error:.1e}{over_run}", f"`{variable}`", of_it, largest, *numbers]


def main() -> None:
    """Print a row for each case and formulation."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true", help="one case, for the tests")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    print("| case | formulation | error | of | said of it | largest said | steps | ms |")
    print("|" + " --- |" * 8)
    for case in cases():
        if case.name not in (given.names or [each.name for each in cases()]) or (given.quick and case.name != "A01"):
            continue
        choices = [{"formulation": name} for name in FORMULATIONS[: 1 if given.quick else None]]
        if case.name in WAYS_THROUGH:
            choices.append({"formulation": "dca", "solver": "trapezoidal"})
        for options in choices:
            print(f"| {' | '.join([case.name, ', '.join(options.values()), *row(case, options)])} |", flush=True)


if __name__ == "__main__":
    main()
