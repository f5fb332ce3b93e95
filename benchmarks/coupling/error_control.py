"""Error control held against its tolerance: the oscillator against its exact solution, mechanisms against their whole.

Errors are the largest over time as a share of each signal's magnitude; mechanisms are compared with their monolithic
run of the units' internal step, so that what is off is the coupling. Steps end where the valve's signal jumps, which
its unit tells.

    python benchmarks/coupling/error_control.py [--quick]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from cosim.linear_units import CONNECTIONS, NAMES, exact, export_linear, halves

import mbsfmu
from mbsfmu import CosimulationResult, cosimulate

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
INTERNAL, STOP = 1e-3 if QUICK else 2e-4, 1.05 if QUICK else 1.2
SETTINGS = (("gauss-seidel", "linear"), ("gauss-seidel", "quadratic"), ("newton", "linear"))


def told(tolerance: float, error: float, result: CosimulationResult) -> str:
    """Return a line of the table."""
    return (
        f"{tolerance:7g}: {error / tolerance:6.3f} of the tolerance, {result.steps} steps of "
        f"{result.smallest_step:.2g} to {result.largest_step:.2g} s, {result.rejected_steps} rejected"
    )


def oscillator() -> None:
    """Print errors over six decades."""
    folder = Path(tempfile.mkdtemp())
    units = [export_linear(system, folder, "rk4", 1e-3) for system in halves()]
    for algorithm, extrapolation in SETTINGS:
        for tolerance in 10.0 ** -np.arange(2, 3 if QUICK else 8 if extrapolation == "quadratic" else 7):
            result = cosimulate(
                units,
                connections=CONNECTIONS,
                algorithm=algorithm,
                extrapolation=extrapolation,
                step=0.01,
                stop=2.0,
                control="error",
                tolerance=tolerance,
                absolute_tolerance=0.1 * tolerance,
                smallest_step=1e-7,
            )
            chosen = np.unique(np.linspace(0, result.steps, 200).astype(int))
            states = np.array([exact(time) for time in result.time[chosen]])
            off = np.abs(np.column_stack([result[name][chosen] for name in NAMES]) - states)
            error = float(np.max(off.max(axis=0) / np.abs(states).max(axis=0)))
            print(f"oscillator {algorithm} {extrapolation} {told(tolerance, error, result)}")


def mechanism(name: str) -> None:
    """Print errors over the decades at which the internal step still tells."""
    model = mbsfmu.models.built_in(name)
    package = mbsfmu.export(model, tempfile.mkdtemp(), layout="separate", step=INTERNAL)[-1]
    reference = model.simulation(step=INTERNAL).run(STOP)
    outputs = ("cylinder.length", "cylinder.force")
    for algorithm, extrapolation in SETTINGS:
        for tolerance in (1e-2,) if QUICK else (1e-2, 1e-3, 1e-4):
            result = cosimulate(
                package,
                algorithm=algorithm,
                extrapolation=extrapolation,
                step=1e-3,
                stop=STOP,
                control="error",
                tolerance=tolerance,
                smallest_step=1e-7,
            )
            error = max(
                float(np.max(np.abs(result[output] - np.interp(result.time, reference.time, reference[output]))))
                / float(np.max(np.abs(reference[output])))
                for output in outputs
            )
            print(f"{name} {algorithm} {extrapolation} {told(tolerance, error, result)}")


if __name__ == "__main__":
    oscillator()
    mechanism("four-bar-frictionless")
