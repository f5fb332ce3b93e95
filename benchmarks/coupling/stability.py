"""Stability limits of the oscillator: where the step-to-step map has spectral radius 1, and where runs begin to grow.

python benchmarks/coupling/stability.py [--quick]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from cosim.linear_units import CONNECTIONS, export_linear, halves
from cosim.oscillator_theory import stability_limit

from mbsfmu import CosimulationError, cosimulate

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
INTERNAL, STEPS, OSCILLATOR = 2e-3, 100 if QUICK else 4000, {"damping": 4.0}
CLOSE = 0.5 if QUICK else 1e-5


def grows(units: list[Path], algorithm: str, extrapolation: str, step: float) -> bool:
    """Tell whether the amplitude grows from the second to the last quarter of a long run."""
    try:
        result = cosimulate(
            units,
            connections=CONNECTIONS,
            algorithm=algorithm,
            extrapolation=extrapolation,
            step=step,
            stop=STEPS * step,
        )
    except CosimulationError:
        return True
    speed = np.abs(result["two.speed"])
    return bool(speed[3 * STEPS // 4 :].max() > speed[STEPS // 4 : STEPS // 2].max())


def main() -> None:
    """Bisect, and print both limits."""
    folder = Path(tempfile.mkdtemp())
    units = [export_linear(system, folder, "rk4", INTERNAL) for system in halves(**OSCILLATOR)]
    for algorithm in ("jacobi", "gauss-seidel"):
        for extrapolation in ("zero", "linear"):
            expected = stability_limit(algorithm, extrapolation, **OSCILLATOR)
            low, high = 0.5 * expected, 2.0 * expected
            while high - low > CLOSE * high:
                middle = 0.5 * (low + high)
                low, high = (low, middle) if grows(units, algorithm, extrapolation, middle) else (middle, high)
            print(
                f"{algorithm:13s} {extrapolation:7s} map {expected:.6f} s, runs {low:.6f} s, "
                f"off by {100 * (low / expected - 1):+.3f} %"
            )


if __name__ == "__main__":
    main()
