"""What a point of a sweep costs, beside the steps of its run; docs/guides/parameter-studies.md has the table.

python benchmarks/sweeps.py [--quick]

A four-bar for 2 s, over masses of its boom, in one process. A point's time is the difference of two sweeps of more
and of fewer points, in processor seconds: what a sweep makes once does not count. Steps are those of a single run: the
difference of two runs, of which one is half as long, with the same outputs.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np

import mbsfmu
from mbsfmu.base.executors import InlineExecutor
from mbsfmu.studies import subject

STOP = 2.0
SETTINGS: dict[str, dict[str, Any]] = {"steps of 1 ms (trapezoidal)": {"step": [1e-3]}, "rodas5p": {}}


def spent(call: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def a_point(model: mbsfmu.CoupledModel, settings: dict[str, Any], counts: tuple[int, int], turns: int) -> float:
    """Return the processor seconds of a point of a sweep."""

    def swept(count: int) -> float:
        masses = np.linspace(150.0, 300.0, count).tolist()
        options: dict[str, Any] = {"settings": settings, "stop": STOP, "executor": InlineExecutor()}
        return spent(lambda: mbsfmu.sweep(model, {"boom.mass": masses}, **options))

    few, many = counts
    swept(many)  # compiled
    return float(np.median([swept(many) - swept(few) for _ in range(turns)])) / (many - few)


def steps_alone(model: mbsfmu.CoupledModel, settings: dict[str, Any], turns: int) -> float:
    """Return the processor seconds of the steps of a single run."""
    simulation = model.simulation(**{name: values[0] for name, values in settings.items()})
    output_step = simulation.solver.output_step(STOP)

    def run(stop: float) -> float:
        return spent(lambda: simulation.run(stop, output_step=output_step))

    run(STOP)
    return 2.0 * float(np.median([run(STOP) - run(0.5 * STOP) for _ in range(10 * turns)]))


def one_by_one(_model: object, points: Sequence[object], _stop: float) -> list[tuple[object]]:
    """Return points as tasks of one each."""
    return [(each,) for each in points]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few points and turns")
    quick = parser.parse_args().quick
    logging.disable(logging.WARNING)  # of errors, at every point
    model = mbsfmu.models.four_bar()
    counts, turns = ((2, 18), 1) if quick else ((16, 272), 5)
    print("| runs | a point, one by one | a point in an ensemble | steps of a single run |")
    print("|---|---|---|---|")
    for name, settings in SETTINGS.items():
        with mock.patch.object(subject, "grouped", one_by_one):
            alone = a_point(model, settings, counts, turns)
        with mock.patch("mbsfmu.studies.point_run.LEAST_STEPS", 0.0):
            together = a_point(model, settings, counts, turns)
        steps = steps_alone(model, settings, turns)
        print(f"| {name} | {1e3 * alone:.2f} ms | {1e3 * together:.2f} ms | {1e3 * steps:.2f} ms |")


if __name__ == "__main__":
    main()
