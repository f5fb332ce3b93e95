"""The coupled four-bar against the monolithic run of the units' internal step, and against one of a far smaller step.

Run: python benchmarks/coupling/tight_reference.py [--quick]

10 s, internal step 0.5 ms; the tight reference has 0.025 ms and is itself off by less than 3e-5. Errors are the largest
of any output over time in shares of its range.
"""

from __future__ import annotations

import logging
import sys
import tempfile

import numpy as np

import mbsfmu

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
MODEL, INTERNAL, TIGHT, STOP = "four-bar-frictionless", 5e-4, 2.5e-5, 1.05 if QUICK else 10.0
STEPS = (2e-3,) if QUICK else (2e-3, 1e-3, 5e-4)
SETTINGS = (("jacobi", "linear"), ("gauss-seidel", "zero"), ("gauss-seidel", "linear"), ("newton", "linear"))


def error(result: mbsfmu.CosimulationResult, reference: mbsfmu.Trajectory) -> float:
    """Return the largest error of any output that a reference on the grid of internal steps has."""
    rows = np.round(result.time / INTERNAL).astype(int)
    shares = [0.0]
    for name in result:
        _, _, output = name.partition(".")
        if name.startswith("energy_residual.") or output not in reference:
            continue
        extent = float(np.ptp(reference[output]))
        if extent > 1e-9 * float(np.max(np.abs(reference[output]))):
            shares.append(float(np.max(np.abs(result[name] - reference[output][rows]))) / extent)
    return max(shares)


def main() -> None:
    """Print one row for each setting and step."""
    logging.disable(logging.WARNING)
    model = mbsfmu.models.built_in(MODEL)
    alike = model.simulation(step=INTERNAL).run(STOP)
    tight = model.simulation(step=TIGHT).run(STOP, output_step=INTERNAL)
    package = mbsfmu.export(model, tempfile.mkdtemp(), layout="separate", step=INTERNAL)[-1]
    print("| algorithm | step [s] | against the same internal step | against the tight reference |\n|" + " --- |" * 4)
    for algorithm, extrapolation in SETTINGS:
        for step in STEPS:
            options = {"algorithm": algorithm, "extrapolation": extrapolation, "step": step, "stop": STOP}
            result = mbsfmu.cosimulate(package, **options)
            errors = " | ".join(f"{error(result, reference):.3g}" for reference in (alike, tight))
            print(f"| {algorithm}, {extrapolation} | {step:g} | {errors} |", flush=True)


if __name__ == "__main__":
    main()
