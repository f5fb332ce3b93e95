"""How accurate runs are where nothing is said of the solver: every built-in model and example beside equal steps.

Errors are the largest differences of any variable from a tight run, as shares of its range, over the model's own time.
Times are those of compiled runs, taken in turn, the least of three.

Run: python benchmarks/default_accuracy.py [NAME ...] [--tolerance 1e-7] [--json FILE]
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import mbsfmu
from mbsfmu import CoupledModel, Result

BUILT_IN = (
    *("four-bar", "four-bar-friction", "four-bar-throttle", "four-bar-friction-and-valve", "four-bar-frictionless"),
    *("quick-return", "quick-return-friction", "quick-return-throttle", "quick-return-friction-and-valve"),
    *("quick-return-frictionless", "five-bar", "double-pentagon", "loop-4", "loop-8", "double-loop-8", "bennett"),
    *("slewing-four-bar", "pendulum-1", "pendulum-3", "pendulum-8", "ladder-4"),
)
EXAMPLES = ("crane", "excavator", "log_crane", "press", "robot_arm", "stewart_platform")
TIGHT = 1e-11
REPEATS = 3
STILL = 1e-4
"""Share of the largest range in the same unit below which a variable's range says nothing."""
OF_THE_RUN = ("solver.", "constraint.", "energy.drift")
"""What belongs to the run and not to the machine, and is zero but for errors."""


def models(names: list[str]) -> Iterator[tuple[str, Callable[[], CoupledModel]]]:
    """Yield names and makers of the models."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    for name in BUILT_IN:
        if not names or name in names:
            yield name, lambda name=name: mbsfmu.models.built_in(name)
    for name in EXAMPLES:
        if not names or name in names:
            yield name, lambda name=name: getattr(importlib.import_module(name), name)()


def errors(result: Result, expected: Result) -> dict[str, float]:
    """Return the largest error of each variable that moves, as a share of its range."""
    ranges = {name: float(np.ptp(expected[name])) for name in expected.names}
    units = {name: expected.unit(name).replace("N.m", "N") for name in ranges}  # moments of hinges are zero
    widest = {unit: max(ranges[name] for name in ranges if units[name] == unit) for unit in set(units.values())}
    return {
        name: float(np.max(np.abs(result[name] - expected[name]))) / ranges[name]
        for name in ranges
        if ranges[name] > STILL * widest[units[name]] and not any(each in name for each in OF_THE_RUN)
    }


def run(model: CoupledModel, **options: float | str) -> tuple[Result, float]:
    """Return a run to the model's own end, and the least processor time in s that it took."""
    simulation, times = model.simulation(**options), []
    result = simulation.run()  # loads and compiles
    for _ in range(REPEATS):
        begin = clock.process_time()
        result = simulation.run()
        times.append(clock.process_time() - begin)
    return result, min(times)


def main() -> None:
    """Print a row for each model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--tolerance", type=float, help="of the adaptive run, in place of the default")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="one model, for the tests")
    given, rows = parser.parse_args(), []
    logging.disable(logging.WARNING)
    chosen = {"relative_tolerance": given.tolerance, "absolute_tolerance": given.tolerance} if given.tolerance else {}
    print("| model | time, s | error, equal steps | variable | ms | error, default | variable | ms | steps |")
    print("|" + " --- |" * 9)
    for name, make in models(["loop-4"] if given.quick else given.names):
        model = make()
        tight = {"solver": "rodas5p", "relative_tolerance": TIGHT, "absolute_tolerance": TIGHT}
        expected = model.simulation(**tight).run()
        cells = [name, f"{expected.time[-1]:g}"]
        row: dict[str, object] = {"model": name, "stop": float(expected.time[-1])}
        for what, options in (("equal", {"solver": "trapezoidal"}), ("default", chosen)):
            result, seconds = run(model, **options)
            found = errors(result, expected)
            worst = max(found, key=lambda each: found[each])
            row |= {what: found[worst], f"{what}_variable": worst, f"{what}_ms": 1e3 * seconds}
            cells += [f"{found[worst]:.1e}", f"`{worst}`", f"{1e3 * seconds:.3g}"]
        rows.append(row | {"steps": result.statistics.steps, "solver": result.solver})
        print(f"| {' | '.join([*cells, str(result.statistics.steps)])} |", flush=True)
        if given.json:
            given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
