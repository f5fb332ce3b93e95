"""What `dca` and `hdca` are off by at equal tolerances, in equal steps, and where heavy loads hang on light links.

Run: python benchmarks/divide_and_conquer/tolerances.py [--quick]

Errors are the largest of all angles over 1 s, against `dca` with `dop853` at 1e-12; both close loops by the same rate.
Those of loads are at the end of 0.05 s, with trapezoidal steps of 1 ms.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from rings import ring
from ropes import rope, rope_of_beams

from mbsfmu import models
from mbsfmu.simulation.run_result import Result
from mbsfmu.system_model.coupled_model import CoupledModel

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STOP = 0.05 if QUICK else 1.0
TOLERANCE, TIGHT, STEP = 1e-6, 1e-12, 5e-3
NAMES = ("pendulum-4",) if QUICK else ("pendulum-4", "pendulum-16", "loop-4", "loop-8", "bennett", "ladder-4")


def run(model: CoupledModel, formulation: str, solver: str, **options: Any) -> Result:
    """Return a run of a second."""
    loops = {"stabilisation": 10.0}
    return model.simulation(formulation=formulation, solver=solver, **loops, **options).run(STOP, output_step=0.01)


def cells(model: CoupledModel) -> str:
    """Return evaluations or steps and errors by each solver, `dca` before `hdca`."""
    tight = run(model, "dca", "dop853", relative_tolerance=TIGHT, absolute_tolerance=TIGHT, compiled=False)
    angles = [name for name in tight.names if name.endswith("angle")]
    own = {"relative_tolerance": TOLERANCE, "absolute_tolerance": TOLERANCE}
    told = []
    for solver, options in (("rk45", own), ("rodas5p", own), ("rk4", {"step": STEP})):
        for formulation in ("dca", "hdca"):
            found = run(model, formulation, solver, **options)
            off = max(float(np.max(np.abs(found[name] - tight[name]))) for name in angles)
            work = {"rk45": f"{found.statistics.rhs_evaluations}: ", "rodas5p": f"{found.statistics.steps}: "}
            told.append(f"{work.get(solver, '')}{off:.1e}")
    return " | ".join(told)


def loaded(model: CoupledModel) -> str:
    """Return how many times its own inertia a coordinate carries at most, and the error of `hdca` by that of `dca`."""
    made = model.simulation(formulation="hdca", compiled=False).initialization
    stop, tight = 0.05, {"relative_tolerance": TIGHT, "absolute_tolerance": TIGHT, "compiled": False}
    exact = model.simulation(formulation="dca", solver="dop853", **tight).run(stop)
    angles = [name for name in exact.names if name.endswith((".angle", "cardan_angle.z"))]
    off = []
    for formulation in ("hdca", "dca"):
        found = model.simulation(formulation=formulation, solver="trapezoidal", step=1e-3).run(stop)
        off.append(max(abs(float(found[name][-1] - exact[name][-1])) for name in angles))
    return f"{np.max(made.carried_inertias / made.apparent_inertias):.1e} | {off[0] / off[1]:.2g}"


def main() -> None:
    """Print both tables."""
    solvers = ("`rk45`, evaluations", "`rodas5p`, steps", f"`rk4`, {1e3 * STEP:g} ms")
    print("| | " + " | ".join(f"{solver}: {each}" for solver in solvers for each in ("dca", "hdca")) + " |")
    print("|" + " --- |" * 7)
    rings = {} if QUICK else {"ring": ring(6), "ring with a light link": ring(6, odd=1e-4)}
    for name, model in {**{name: models.built_in(name) for name in NAMES}, **rings}.items():
        print(f"| {name} | {cells(model)} |", flush=True)
    print("\n| | carried by own inertia | hdca / dca |\n| --- | --- | --- |")
    count = 4 if QUICK else 16
    for load in (30.0,) if QUICK else (1.0, 30.0, 1e3, 3e4):
        print(f"| {count} links on hinges, the last of {load:g} kg | {loaded(rope(count, load))} |", flush=True)
    for load, axial in () if QUICK else ((1.0, 0.05), (300.0, 0.05), (1.0, 1e-4)):
        told = f"6 beams on ball joints, {axial:g} kg m² about their axes, load of {load:g} kg"
        print(f"| {told} | {loaded(rope_of_beams(6, load, axial))} |", flush=True)


if __name__ == "__main__":
    main()
