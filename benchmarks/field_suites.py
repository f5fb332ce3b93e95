"""Benchmark problems of the field by pure defaults in every formulation: errors, what runs say of them, steps, times.

Errors are the largest of a case's variables, in fractions of their ranges. What a run says is its own estimate, or that
of `--check-error` where it has none. Times are processor times of the second run, which loads compiled code.

Run: python benchmarks/field_suites.py [NAME ...] [--quick]
"""

from __future__ import annotations

import argparse
import logging
import sys
import time as clock
from pathlib import Path

from mbsfmu import CoupledModel, SimulationError

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from field_cases import FieldCase, cases

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")
LARGE = 64
"""Coordinates beyond which the default formulation runs alone, and by equal steps besides."""


def row(case: FieldCase, options: dict[str, str]) -> list[str]:
    """Return the cells of a run: error, variable, what the run says, steps, ms."""
    simulation = case.make().simulation(**options)
    try:
        simulation.run(stop=case.stop)
        begin = clock.process_time()
        result = simulation.run(stop=case.stop)
    except SimulationError as error:
        return ["–", "–", f"ends: {str(error).rpartition(': ')[2]}", "–", "–"]
    seconds = clock.process_time() - begin
    error, variable = case.error(result)
    estimate, by = result.error, ""
    if estimate.note.startswith("not estimated"):
        estimate, by = case.make().simulation(**options, check_error=True).run(stop=case.stop).error, " (checked)"
    said = estimate.note if estimate.share is None else f"{estimate.share:.1e}"
    return [f"{error:.1e}", f"`{variable}`", f"{said}{by}", str(result.statistics.steps), f"{1e3 * seconds:.3g}"]


def coordinates(model: CoupledModel) -> int:
    """Return how many coordinates the joints of a model have at most."""
    return sum(len(joint.elements) for system in model.systems.values() for joint in system.joints if not joint.cut)


def main() -> None:
    """Print a row for each case and formulation."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true", help="one case, for the tests")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    print("| case | formulation | error | of | said | steps | ms |")
    print("|" + " --- |" * 7)
    for case in cases():
        if case.name not in (given.names or [each.name for each in cases()]) or (given.quick and case.name != "A01"):
            continue
        if coordinates(case.make()) > LARGE:
            choices = [{}, {"formulation": "dca", "solver": "trapezoidal"}]
        else:
            choices = [{"formulation": name} for name in FORMULATIONS[: 1 if given.quick else None]]
        for options in choices:
            name = ", ".join(options.values()) or "default"
            print(f"| {' | '.join([case.name, name, *row(case, options)])} |", flush=True)


if __name__ == "__main__":
    main()
