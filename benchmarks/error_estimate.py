"""The error that runs tell, and the true one: the tables of docs/studies/error-estimate.md.

python benchmarks/error_estimate.py             what steps of the trapezoidal rule tell with double-step and dca
python benchmarks/error_estimate.py --check     what a second run tells: the default, and penalty, hdca and dca-alm

Both take [--quick] [--models NAMES].
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu import CoupledModel
from mbsfmu.integration.error_measure import ErrorMeasure
from mbsfmu.io.checkpoints import RunError
from mbsfmu.models import built_in
from mbsfmu.simulation.run_result import Result
from mbsfmu.simulation.simulation import Simulation

EXAMPLES = Path(__file__).parents[1] / "examples"
MODELS = {
    "four-bar": 2.0, "four-bar-friction": 2.0, "four-bar-throttle": 2.0, "four-bar-frictionless": 2.0,
    "quick-return": 2.5, "quick-return-throttle": 2.5, "quick-return-frictionless": 2.5,
    "five-bar": 0.7, "double-pentagon": 0.5, "loop-4": 0.4, "loop-8": 0.4, "double-loop-8": 0.4, "ladder-3": 0.4,
    "bennett": 0.5, "slewing-four-bar": 1.0, "pendulum-4": 1.0,
    "crane.py:crane": 2.0, "press.py:press": 2.0, "excavator.py:excavator": 2.0,
}  # fmt: skip
"""Models, those of examples as file:function, and how long they run in s: before they get chaotic."""
STEPS = (1e-4, 2.5e-4, 1e-3, 2e-3, 4e-3)
FORMULATIONS = ("double-step", "dca")
CHECKED = ("penalty", "hdca", "dca-alm")
TIGHT: dict[str, Any] = {"solver": "rodas5p", "relative_tolerance": 1e-12, "absolute_tolerance": 1e-12}


def model_of(name: str) -> CoupledModel:
    """Return a built-in model, or that of an example."""
    file, _, function = name.partition(":")
    if not function:
        return built_in(name)
    spec = importlib.util.spec_from_file_location(Path(file).stem, EXAMPLES / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function)()


def true_error(simulation: Simulation, result: Result, exact: Result) -> tuple[float, str]:
    """Return the largest error of a run as a share of the range of its variable, and which that is."""
    measure = ErrorMeasure(simulation.functions.system)
    # Formulations in absolute coordinates have others than the tight run, which are not compared.
    known = [name for name in measure.names if name in exact.names and name in result.names]
    place = [measure.names.index(name) for name in known]
    largest, lowest, highest = np.zeros((3, len(measure.names)))
    largest[place] = [np.abs(result[name] - exact[name]).max() for name in known]
    lowest[place], highest[place] = ([pick(exact[name]) for name in known] for pick in (np.min, np.max))
    return measure.worst(largest, lowest, highest)


@lru_cache
def tight(name: str, stop: float, step: float) -> Result:
    """Return a tight run of a model to a time in s, with an output every step in s."""
    return model_of(name).simulation(**TIGHT).run(stop, output_step=step)


def row(name: str, model: CoupledModel, options: dict[str, Any], stop: float) -> str:
    """Return a row of the table of a run by options."""
    cells = [name, options.get("formulation", "default"), f"{1e3 * options['step']:g}" if "step" in options else ""]
    simulation = model.simulation(**options)
    try:
        result = simulation.run(stop)
    except RunError as error:
        return f"| {' | '.join(cells)} | the run ends: {error} | | | |"
    true, where = true_error(simulation, result, tight(name, stop, result.step))
    share, variable, note = result.error
    told = note if share is None else f"{share:.2g}"
    ratio = "" if share is None else f"{share / true:.2f}"
    return f"| {' | '.join(cells)} | {told} | {variable or ''} | {true:.2g} {where} | {ratio} |"


def runs(steps: Sequence[float], *, check: bool) -> Iterator[dict[str, Any]]:
    """Yield the options of the runs of a model."""
    if check:
        yield {"check_error": True}
    for formulation in CHECKED if check else FORMULATIONS:
        for step in steps:
            options: dict[str, Any] = {"solver": "trapezoidal", "formulation": formulation, "step": step}
            yield options | ({"check_error": True} if check else {})


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two models at two steps")
    parser.add_argument("--check", action="store_true", help="errors by a second run")
    parser.add_argument("--models", help="comma-separated names in place of all")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    sys.path.insert(0, str(EXAMPLES))
    names = options.models.split(",") if options.models else list(MODELS)
    steps = STEPS
    if options.quick:
        names, steps = ["pendulum-4", "five-bar"], (1e-3, 4e-3)
    print("| model | formulation | step in ms | estimated | of | true error | estimated / true |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        model = model_of(name)
        for chosen in runs(steps, check=options.check):
            print(row(name, model, chosen, MODELS[name]), flush=True)


if __name__ == "__main__":
    main()
