"""Sensitivities by default of machines, next to those of rodas5p with a tolerance of 1e-11: error, what is said, cost.

All coordinates and pressures are differentiated by a mass, an inertia, a damping and a start pressure. Errors are the
largest ones over the run, as shares of the largest derivative; what is said is `errors` of the result, and of the
reference. Costs are processor times of a second call, for which everything is compiled.

Run: python benchmarks/derivative_steps.py [NAME ...] [--quick]
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

import mbsfmu
from mbsfmu import CoupledModel, Mechanism, SensitivityResult
from mbsfmu.analysis.derivative_steps import DerivativeErrors, common_times, derivative_errors

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
TIGHT: dict[str, Any] = {"solver": "rodas5p", "relative_tolerance": 1e-11, "absolute_tolerance": 1e-11}
STOPS = {
    **dict.fromkeys(("four-bar", "four-bar-friction", "four-bar-throttle", "four-bar-frictionless"), 1.5),
    **dict.fromkeys(("quick-return", "quick-return-throttle", "quick-return-friction-and-valve"), 1.0),
    **dict.fromkeys(("five-bar", "double-pentagon", "loop-4", "loop-8", "double-loop-8"), 0.5),
    **dict.fromkeys(("bennett", "slewing-four-bar", "pendulum-1", "pendulum-3", "ladder-4"), 0.5),
    **dict.fromkeys(("crane", "press", "excavator"), 1.0),
}
"""Of built-in models and examples, in s."""
CHANGED = ("*.mass", "*.inertia_zz", "*.damping", "*.initial_pressure")
"""Parameters by which is differentiated: the first that matches each."""


def oscillator(stiffness: float, *, height: float = 0.0, displacement: float = 0.01) -> CoupledModel:
    """Return a mass of 2 kg on a spring, or one that falls from a height in m onto a stop of this stiffness in N/m."""
    force = (
        mbsfmu.JointStop(name="stop", joint="slide", lower=0.0, stiffness=stiffness, damping=0.0)
        if height
        else mbsfmu.JointSpringDamper(name="spring", joint="slide", stiffness=stiffness, damping=40.0)
    )
    slide = mbsfmu.Prismatic(
        name="slide", parent="ground.O", child="body.origin", axis=(0, 0, 1), displacement=height or displacement
    )
    mechanism = Mechanism(
        gravity=(0, 0, -9.81 if height else 0.0),
        ground={"O": (0, 0, 0)},
        bodies=(mbsfmu.RigidBody(name="body", mass=2.0, inertia=(1, 1, 1)),),
        joints=(slide,),
        forces=(force,),
    )
    return CoupledModel(name="oscillator", systems={"mechanism": mechanism}, stop_time=0.35)


OWN: dict[str, tuple[Callable[[], CoupledModel], float]] = {
    "oscillator of 50 Hz": (lambda: oscillator(2e5), 0.2),
    "oscillator at rest": (lambda: oscillator(2e3, displacement=0.0), 0.5),
    "mass onto a stop": (lambda: oscillator(2e5, height=0.2), 0.35),
}


def changed(model: CoupledModel) -> tuple[list[str], list[str]]:
    """Return the parameters by which a model is differentiated, and what is."""
    system = model.system()
    names = [each.name for each in system.parameters]
    found = [next((name for name in names if fnmatch(name, pattern)), None) for pattern in CHANGED]
    read = [each.name for each in (*system.coordinates, *system.states) if each.unit in ("rad", "m", "Pa")]
    return [name for name in found if name is not None], read


def errors(result: SensitivityResult, tight: SensitivityResult, given: Any) -> DerivativeErrors:
    """Return the errors of sensitivities from others."""
    own, others = common_times(result.time, tight.time)
    derivatives = result.derivatives[own], tight.derivatives[others]
    return derivative_errors(
        result.outputs, result.parameters, given, derivatives, (result.values[own], tight.values[others])
    )


def row(name: str, model: CoupledModel, stop: float) -> str:
    """Return a row of the table."""
    parameters, outputs = changed(model)
    result = model.sensitivities(parameters, outputs, stop=stop)
    begin = time.process_time()
    model.sensitivities(parameters, outputs, stop=stop)
    cost = time.process_time() - begin
    tight = model.sensitivities(parameters, outputs, stop=stop, **TIGHT)
    start = {each.name: each.start for each in model.system().parameters}

    true = errors(result, tight, np.array([start[each] for each in parameters], dtype=float))
    said = " | ".join(f"{each:.1e}" for each in (true.largest, result.errors.largest, tight.errors.largest))
    return f"| {name} | {result.errors.steps} | {said} | {cost:.2f} s |"


def main(names: list[str], *, quick: bool) -> None:
    """Print the table."""
    logging.getLogger("mbsfmu").setLevel(logging.ERROR)
    print("| machine | steps | error | said | said of the reference | cost |\n|---|---|---|---|---|---|")
    for name, (make, stop) in OWN.items():
        if not names or name in names:
            print(row(name, make(), stop), flush=True)
    for name, stop in {} if quick else STOPS.items():
        if not names or name in names:
            print(row(name, mbsfmu.models.built_in(name), stop), flush=True)


if __name__ == "__main__":
    main([each for each in sys.argv[1:] if each != "--quick"], quick="--quick" in sys.argv)
