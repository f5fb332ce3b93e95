"""A crank and a rod of equal lengths through their singular configuration, with all formulations.

Run: python benchmarks/projections/singular.py [--quick]

Folded up, the slider's equation has no derivative: the motion can go on in two ways, and momentum decides. With the
rod's angle the crank's with the other sign, the mechanism has one degree of freedom and Lagrange's equation in closed
form; SciPy's DOP853 at 1e-12 integrates it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from drawing import COLOURS, INK, REFERENCE, new_figure, svg
from folding import folding, folding_angle

from mbsfmu import SimulationError

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
DOCS = Path(tempfile.mkdtemp()) if QUICK else Path(__file__).parents[2] / "docs" / "studies"
STOP, STEP = 0.05 if QUICK else 5.0, 1e-3
ADAPTIVE = {"solver": "rk45", "relative_tolerance": 1e-9, "absolute_tolerance": 1e-9}
RUNS: dict[str, dict[str, Any]] = {
    "dca-alm, rk4": {"formulation": "dca-alm", "solver": "rk4"},
    "dca-alm, rk45 at 1e-9": {"formulation": "dca-alm", **ADAPTIVE},
    "dca-alm without projections, rk45 at 1e-9": {"formulation": "dca-alm", "projections": False, **ADAPTIVE},
    "dca-alm, trapezoidal": {"formulation": "dca-alm"},
    "penalty, trapezoidal": {"formulation": "penalty"},
    "double-step, trapezoidal": {"formulation": "double-step"},
    "double-step, rk45 at 1e-9": {"formulation": "double-step", **ADAPTIVE},
    "dca, rk45 at 1e-9": {"formulation": "dca", **ADAPTIVE},
    "hdca, rk45 at 1e-9": {"formulation": "hdca", **ADAPTIVE},
}
DRAWN = (
    "dca-alm, rk4",
    "dca-alm, rk45 at 1e-9",
    "dca-alm, trapezoidal",
    "double-step, trapezoidal",
    "dca, rk45 at 1e-9",
    "hdca, rk45 at 1e-9",
)


def main() -> None:
    """Print the errors; draw them over time."""
    model = folding()
    print("| | error of the crank's angle [rad] | constraints [m, rad] | energy error [J] | most iterations |")
    print("|" + " --- |" * 5)
    figure, axes = new_figure(2, 5.6)
    for number, (label, options) in enumerate(RUNS.items()):
        try:
            result = model.simulation(compiled=False, step=STEP, **options).run(STOP)
        except SimulationError as error:
            print(f"| {label} | fails: {error} | | | |", flush=True)
            continue
        exact = folding_angle(result.time)
        errors = np.abs(result["crank.angle"] - exact)
        iterations = [count.most for count in result.statistics.iterations.values()]
        print(
            f"| {label} | {errors.max():.1e} | {result.largest('constraint.position'):.1e}"
            f" | {result.largest('energy.drift'):.1e} | {max(iterations, default='')} |",
            flush=True,
        )
        if number == 0:
            axes[0].plot(result.time, exact, color=REFERENCE, linewidth=1.6)
        if label in DRAWN:
            colour = COLOURS[DRAWN.index(label)]
            axes[1].semilogy(result.time[10::10], errors[10::10] + 1e-16, color=colour, linewidth=1.2, label=label)
    axes[0].set_ylabel("crank's angle [rad]")
    axes[0].set_yticks([0.5 * np.pi, 1.5 * np.pi, 2.5 * np.pi, 3.5 * np.pi], ["π/2", "3π/2", "5π/2", "7π/2"])
    axes[1].set_ylabel("error [rad]")
    axes[1].set_xlabel("time [s]")
    axes[1].legend(fontsize=8, frameon=False, ncols=2, labelcolor=INK)
    (DOCS / "dca-alm-singular.svg").write_text(svg(figure, axes), encoding="utf-8")


if __name__ == "__main__":
    main()
