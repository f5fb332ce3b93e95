"""Observed orders of all algorithms and extrapolations, on the oscillator and on the four-bar, as table and figure.

The oscillator is compared with its exact solution, the four-bar with its monolithic run of the units' internal step;
the valve's signal is given to the master, which ends a step where it jumps.

    python benchmarks/coupling/orders.py docs/studies/coupling-orders.svg [--quick]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from cosim.linear_units import CONNECTIONS, NAMES, exact, export_linear, halves

import mbsfmu
from mbsfmu import CosimulationError, cosimulate
from mbsfmu.cosim.coupling.algorithms import ALGORITHMS

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
INTERNAL, STOP = 1e-3 if QUICK else 1e-4, 1.2
LINES = {"zero": "-o", "linear": "--s", "quadratic": "-.^", "derivatives": ":d"}  # `adaptive` is one of the first two


def oscillator() -> Callable[..., float]:
    """Return the error of the oscillator at 1 s as a function of the settings."""
    folder = Path(tempfile.mkdtemp())
    units = [export_linear(system, folder, "rk4", 1e-3) for system in halves()]
    expected = exact(1.0)

    def error(**settings: object) -> float:
        result = cosimulate(units, connections=CONNECTIONS, stop=1.0, **settings)
        return max(abs(result[name][-1] - value) for name, value in zip(NAMES, expected, strict=True))

    return error


def four_bar() -> Callable[..., float]:
    """Return the largest relative error of the cylinder's force over time as a function of the settings."""
    model = mbsfmu.models.four_bar(circuit="frictionless")
    package = mbsfmu.export(model, tempfile.mkdtemp(), layout="separate", step=INTERNAL)[-1]
    reference = model.simulation(step=INTERNAL).run(STOP)
    force = reference["cylinder.force"]

    def error(**settings: object) -> float:
        try:
            result = cosimulate(package, stop=STOP, inputs=model.signals, **settings)
        except CosimulationError:
            return np.nan
        expected = np.interp(result.time, reference.time, force)
        return float(np.max(np.abs(result["cylinder.force"] - expected)) / np.ptp(force))

    return error


def main(path: str = "") -> None:
    """Measure, print and draw into a file, or one that is not kept."""
    mpl.rcParams.update({"svg.hashsalt": "mbsfmu", "svg.fonttype": "none"})
    figure = Figure(figsize=(13, 6.5), layout="constrained")
    axes = figure.subplots(2, 4, sharex="row", sharey="row")
    cases = (
        ("oscillator", oscillator(), (0.02, 0.01) if QUICK else (0.02, 0.01, 0.005, 0.0025)),
        ("four-bar", four_bar(), (8e-3, 4e-3) if QUICK else (4e-3, 2e-3, 1e-3, 5e-4)),
    )
    for row, (name, error, steps) in zip(axes, cases, strict=True):
        for axis, algorithm in zip(row, ALGORITHMS, strict=True):
            for extrapolation, line in LINES.items():
                errors = [error(algorithm=algorithm, extrapolation=extrapolation, step=step) for step in steps]
                done = np.isfinite(errors)
                order = float(np.polyfit(np.log(steps)[done], np.log(errors)[done], 1)[0]) if done.sum() > 1 else np.nan
                print(f"{name} {algorithm} {extrapolation}: {order:.2f}, errors {' '.join(f'{e:.1e}' for e in errors)}")
                axis.loglog(steps, errors, line, label=f"{extrapolation}: {order:.2f}", markersize=4)
            axis.set_title(f"{name}, {algorithm}", fontsize=10)
            axis.legend(fontsize=8)
            axis.grid(True, linewidth=0.3)
            axis.set_xticks(steps, [f"{1e3 * step:g}" for step in steps])
            axis.minorticks_off()
            axis.set_xlabel("communication step [ms]")
        row[0].set_ylabel("error [m, m/s]" if name == "oscillator" else "error of the force [relative]")
    path = path if path else str(Path(tempfile.mkdtemp()) / "orders.svg")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(*[word for word in sys.argv[1:] if word != "--quick"])
