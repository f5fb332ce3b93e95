"""A comparison that is made up: two algorithms with two steps each on two outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mbsfmu.comparison import Comparison, Run
from mbsfmu.comparison.reference_run import TightRun
from mbsfmu.comparison.run import RunCurves
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.view.plots.plot import Curve

TIMES = np.array([0.0, 0.5, 1.0])
MONOLITHIC = {"crank.angle": np.array([0.0, 1.0, 2.0]), "cylinder.length": np.array([1.0, 1.5, 1.2])}
UNITS = {"crank.angle": "rad", "cylinder.length": "m"}
ERRORS = {"jacobi": {1e-3: 0.04, 5e-4: 0.02}, "gauss-seidel": {1e-3: 0.008, 5e-4: 0.004}}
STEP_ERROR = 0.001


def made_run(algorithm: str, step: float, message: str = "", bonds: bool = True, reached: int = 3) -> Run:
    """A run that is off by `ERRORS` of the range in the crank's angle, by half of it in the cylinder's length."""
    worst, label = ERRORS[algorithm][step], f"{algorithm} {step:g} s"
    errors: dict[str, float | None] = {"crank.angle": worst, "cylinder.length": worst / 2}
    times = TIMES[:reached]
    outputs = {name: Curve.of(label, times, values[:reached] + worst) for name, values in MONOLITHIC.items()}
    off = {name: Curve.of(label, times, np.full(reached, worst)) for name in MONOLITHIC}
    residual = Curve.of(label, times, 0.1 * times) if bonds else None
    return Run(
        algorithm,
        step,
        "diverged" if message else "ok",
        dict.fromkeys(errors) if message else errors,
        None if message or not bonds else 12.5 * worst,
        round(1.0 / step),
        0.25,
        message,
        costs=() if message else (0.5 * 1e-3 / step,),
        loading_seconds=0.02,
        error_total=dict.fromkeys(errors) if message else {"crank.angle": worst, "cylinder.length": worst + STEP_ERROR},
        curves=RunCurves(outputs, off, residual),
    )


def made_comparison(
    runs: Sequence[Run] | None = None, model: str = "four-bar", description: str = "four links"
) -> Comparison:
    """What `compare` could have given."""
    if runs is None:
        runs = [made_run(algorithm, step) for algorithm, steps in ERRORS.items() for step in steps]
    reference = {
        "step": 5e-4,
        "stop": 1.0,
        "newton_mean": 2.25,
        "newton_max": 4,
        "energy_drift_max": 3e-7,
        "actuator_work_max": 812.0,
        "actuator_work_min": -31.0,
        "wall_seconds": 1.75,
        "cost": 1.5,
        "error": {"crank.angle": STEP_ERROR / 2, "cylinder.length": STEP_ERROR},
    }
    monolithic = Trajectory(TIMES, np.column_stack(list(MONOLITHIC.values())), list(MONOLITHIC), list(UNITS.values()))
    order = {"jacobi": 1.04, "gauss-seidel": None}
    tight = TightRun("dca", "rodas5p", 1e-6, {"crank.angle": 2e-6, "cylinder.length": 4e-6})
    return Comparison(
        model, description, "double-step", reference, dict(UNITS), list(runs), order, monolithic, tight=tight
    )
