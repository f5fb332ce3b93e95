"""Step control from residual energy beside fixed steps, on the quick-return mechanism, at the same number of steps.

Errors are the largest of the piston's length and force over time, relative to their ranges, against the monolithic
run with a step that is far smaller; units step internally with it too, so that what differs is the coupling.

    python benchmarks/coupling/energy_control.py [MODEL] [--quick]
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np

import mbsfmu

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
INTERNAL, STOP = (1e-3, 1.1) if QUICK else (1e-4, 10.0)
TOLERANCES = (1e-1,) if QUICK else (1e-1, 3e-2, 1e-2, 3e-3)
COMPARED = ("cylinder.length", "cylinder.force")


def main(name: str = "quick-return-frictionless") -> None:
    """Run the pairs and print them."""
    model = mbsfmu.models.built_in(name)
    package = mbsfmu.export(model, tempfile.mkdtemp(), layout="separate", step=INTERNAL)[-1]
    reference = model.simulation(step=INTERNAL).run(STOP)

    def error(result: mbsfmu.CosimulationResult) -> str:
        shares = [
            np.max(np.abs(result[output] - np.interp(result.time, reference.time, reference[output])))
            / np.ptp(reference[output])
            for output in COMPARED
        ]
        return " ".join(f"{share:.2e}" for share in shares)

    for algorithm, extrapolation in (
        ("jacobi", "zero"),
        ("gauss-seidel", "zero"),
        ("jacobi", "linear"),
        ("gauss-seidel", "linear"),
    ):
        for tolerance in TOLERANCES:
            options = {"algorithm": algorithm, "extrapolation": extrapolation, "stop": STOP}
            try:
                controlled = mbsfmu.cosimulate(
                    package, **options, control="energy", tolerance=tolerance, step=1e-3, largest_step=2e-2
                )
            except mbsfmu.CosimulationError as failure:
                print(f"{algorithm:13s} {extrapolation:7s} {tolerance:6g}: {failure}")
                continue
            count = controlled.iterations
            try:
                fixed = mbsfmu.cosimulate(package, **options, step=STOP / count)
                told = f"{error(fixed)}, residual {fixed.energy_residual_max:.3g} J"
            except mbsfmu.CosimulationError:
                told = "diverged"
            print(
                f"{algorithm:13s} {extrapolation:7s} {tolerance:6g}: {count} sweeps, "
                f"{controlled.rejected_steps} rejected, "
                f"{controlled.smallest_step:.2g} to {controlled.largest_step:.2g} s: {error(controlled)}, "
                f"residual {controlled.energy_residual_max:.3g} J; fixed: {told}"
            )


if __name__ == "__main__":
    main(*[word for word in sys.argv[1:] if word != "--quick"])
