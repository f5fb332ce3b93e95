"""What `dca` and `hdca` are off by at equal tolerances, and in equal steps of the classical Runge–Kutta method.

Run: python benchmarks/divide_and_conquer/tolerances.py [--quick]

Errors are the largest of all angles over 1 s, against `dca` with `dop853` at 1e-12; both close loops by the same rate.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from rings import ring

from mbsfmu import models
from mbsfmu.coupled import CoupledModel
from mbsfmu.simulation.result import Result

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STOP = 0.2 if QUICK else 1.0
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


def main() -> None:
    """Print the table."""
    solvers = ("`rk45`, evaluations", "`rodas5p`, steps", f"`rk4`, {1e3 * STEP:g} ms")
    print("| | " + " | ".join(f"{solver}: {each}" for solver in solvers for each in ("dca", "hdca")) + " |")
    print("|" + " --- |" * 7)
    rings = {"ring": ring(6), "ring with a light link": ring(6, odd=1e-4)}
    for name, model in {**{name: models.built_in(name) for name in NAMES}, **rings}.items():
        print(f"| {name} | {cells(model)} |", flush=True)


if __name__ == "__main__":
    main()
