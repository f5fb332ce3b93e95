"""What machines cost in the lanes of one core, beside the loop for single runs; docs/guides/ensembles.md has the table.

python benchmarks/ensembles.py [--quick] [--many]

Both run the same machine data in the same process, in turns. A step's time is that of a run less that of one half as
long: starts do not count. The ratio of each pair of turns is taken, of these the median.
Single runs by equal steps estimate their errors, which runs in lanes do not. `--many` runs 10,000 four-bars for 10 s in
steps of 1 ms on all cores instead.
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import mbsfmu
from mbsfmu import CoupledModel, EnsembleResult, Simulation
from mbsfmu.compiling.compiler import OPTIMIZATION
from mbsfmu.native.ensemble_library import vectors_of_this_machine

STEP = 1e-3
MODELS = {"four-bar": "boom.mass", "quick-return": "crank.mass", "pendulum-8": "link_2.mass", "loop-8": "link_2.mass"}
"""Built-in models, and the parameter that differs."""
DRIVEN = {"four-bar": {"circuit.valve.command": mbsfmu.SineSignal(amplitude=5.0, frequency=1.0)}}
"""Signals of models that are at rest without, where steps are chosen."""
LONG = {f"pendulum-{links}": "link_2.mass" for links in (12, 16, 24)}
"""Longer chains, whose dense inverses are in lanes: steps are chosen, in most lanes alone."""
RESTING = {"quick-return"}
"""Models that stay at rest, where chosen steps measure nothing."""
EQUAL = {"solver": "trapezoidal", "step": STEP}
CHOSEN = {"solver": "rodas5p", "relative_tolerance": 1e-6, "absolute_tolerance": 1e-6}
LONGER = 5.0
"""How many times as long runs with chosen steps are, which are longer."""
MACHINES, ALONE = 64, 10
"""How many run in lanes, and how often a single run is made for each time that is taken."""


def seconds_a_step(run: Callable[[float], float], stop: float) -> float:
    """Return the processor seconds of a step, given what makes a run to a time in s and returns its steps."""
    spent, steps = [], []
    for end in (0.5 * stop, stop):
        begin = time.process_time()
        steps.append(run(end))
        spent.append(time.process_time() - begin)
    return (spent[1] - spent[0]) / (steps[1] - steps[0])


def steps_of(simulation: Simulation, end: float) -> int:
    """Make a run, and return how many steps it has."""
    return simulation.run(end, output_step=end).statistics.steps


def compared(
    model: CoupledModel, options: Any, parameter: str, lanes: int, stop: float, turns: int
) -> tuple[float, float, float]:
    """Return µs of a machine's step in lanes, the ratio of the scalar loop's to it, and the largest difference.

    The difference is a share of the range of each output, in the first machine.
    """
    simulation = model.simulation(formulation="double-step", **options)
    values = simulation.get(parameter) * np.linspace(0.9, 1.1, MACHINES)
    ensemble = model.ensemble({parameter: values}, lanes=lanes, **options)
    simulation.set(parameter, float(values[0]))
    single = simulation.run(stop, output_step=stop / 10)
    some = ensemble.run(stop, output_step=stop / 10)
    apart = max(float(np.max(np.abs(some[name][0] - single[name])) / max(np.ptp(single[name]), 1e-9)) for name in some)
    ratios, cost = [], []
    for _ in range(turns):
        in_lanes = seconds_a_step(lambda end: float(ensemble.run(end, output_step=end, workers=1).steps.sum()), stop)
        alone = seconds_a_step(lambda end: sum(steps_of(simulation, end) for _ in range(ALONE)), stop)
        cost.append(in_lanes)
        ratios.append(alone / in_lanes)
    return 1e6 * float(np.median(cost)), float(np.median(ratios)), apart


def many(machines: int, stop: float) -> EnsembleResult:
    """Run many four-bars on all cores."""
    masses = np.linspace(100.0, 400.0, machines)
    ensemble = mbsfmu.models.four_bar().ensemble({"boom.mass": masses}, step=STEP)
    ensemble.run(STEP, output_step=STEP, outputs=["boom.angle"])  # compiled
    return ensemble.run(stop, output_step=0.1 * stop, outputs=["boom.angle", "cylinder.force"])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one model in both ways, few turns")
    parser.add_argument("--many", action="store_true", help="10,000 four-bars for 10 s; with --quick 100 for 1 s")
    arguments = parser.parse_args()
    if arguments.many:
        begin = time.process_time()
        result = many(*((100, 1.0) if arguments.quick else (10_000, 10.0)))
        spent = f"{result.wall_seconds:.2f} s on the clock, {time.process_time() - begin:.2f} processor seconds"
        print(f"{result.machines} machines, {result.steps.sum():.3g} steps: {spent}")
        return
    os.environ.setdefault(OPTIMIZATION, "suited")  # single runs of large models begin without it else
    logging.disable(logging.WARNING)  # of motions that a millisecond does not resolve, in every turn
    widest = vectors_of_this_machine()
    print(f"vector library of mathematics: {'yes' if widest.mathematics else 'no'}")
    print("| model | lanes | µs a step of a machine | scalar loop : lanes | largest difference |")
    print("|---|---|---|---|---|")
    stop, turns = (0.2, 1) if arguments.quick else (2.0, 7)
    rows = [(name, EQUAL) for name in MODELS]
    rows += [(name, CHOSEN) for name in (*MODELS, *LONG) if name not in RESTING]
    for name, options in rows:
        if arguments.quick and name != "four-bar":
            continue
        model = mbsfmu.models.built_in(name)
        if options is CHOSEN:
            model = model.model_copy(update={"signals": DRIVEN.get(name, model.signals)})
        most = arguments.quick or name in LONG
        for lanes in [widest.lanes] if most else [each for each in (2, 4, 8) if each <= widest.lanes]:
            length = stop if options is EQUAL else LONGER * stop
            cost, ratio, apart = compared(model, options, {**MODELS, **LONG}[name], lanes, length, turns)
            print(f"| {name}, {options['solver']} | {lanes} | {cost:.3f} | {ratio:.2f} | {apart:.0e} |", flush=True)


if __name__ == "__main__":
    main()
