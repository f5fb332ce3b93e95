"""Cost of a full gradient: 50 parameters and 1,000 samples of an input, in processor time of forward runs.

Run as `python benchmarks/gradient_cost.py [--quick]`.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import mbsfmu
from mbsfmu.analysis.gradient import Adjoint, measure
from mbsfmu.compiling.compiler import OPTIMIZATION

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

PARAMETERS, STEPS = 50, 1000


def least(call: Callable[[], object], repetitions: int) -> float:
    """Return the least processor time in s of some calls."""
    found = []
    for _ in range(repetitions):
        begin = time.process_time()
        call()
        found.append(time.process_time() - begin)
    return min(found)


def cost(model: mbsfmu.CoupledModel, of: str, stop: float, repetitions: int) -> str:
    """Return the cost of a forward run and of a gradient in a sentence."""
    simulation = model.simulation(formulation="double-step", solver="trapezoidal", step=stop / STEPS)
    system = simulation.functions.system
    chosen = list(range(min(PARAMETERS, len(system.parameters))))
    inputs = list(range(min(1, len(system.inputs))))

    def run() -> None:
        simulation.reset()
        simulation.run(stop)

    def gradient() -> None:
        simulation.reset()
        Adjoint(simulation, [measure(of)], stop).gradient(0, chosen, inputs)

    run()
    gradient()
    forward, full = least(run, repetitions), least(gradient, repetitions)
    return (
        f"{system.name}: {of} by {len(chosen)} parameters and {len(inputs) * STEPS} samples: "
        f"{1e3 * full:.1f} ms, a forward run {1e3 * forward:.1f} ms, ratio {full / forward:.1f}"
    )


def main(*, quick: bool) -> None:
    """Print the cost for two machines with valves and loops."""
    from excavator import excavator  # noqa: PLC0415

    logging.getLogger("mbsfmu").setLevel(logging.ERROR)
    os.environ.setdefault(OPTIMIZATION, "suited")  # of the forward runs and of the adjoint
    repetitions = 2 if quick else 10
    cases = [
        (mbsfmu.models.four_bar(), "integral(cylinder.force)", 2.0),
        (mbsfmu.models.four_bar(), "cylinder.force", 2.0),
    ]
    if not quick:
        cases += [(excavator(), "boom.angle", 1.0), (excavator(), "integral(boom_cylinder.force)", 1.0)]
    for model, of, stop in cases:
        print(cost(model, of, stop, repetitions))


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
