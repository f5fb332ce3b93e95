"""The closed loops over 10 s with Dormand-Prince at 1e-6: violation of the loops and energy error over time.

Run: python benchmarks/divide_and_conquer/loops.py
"""

from __future__ import annotations

import numpy as np
from figures import STYLES, curves
from flow import Flow, integrate
from matlab import Ode45
from scipy.integrate import RK45

from mbsfmu.report.plots import COLOURS

CASES = ("loop-4", "loop-8", "double-loop-8")
WHAT = (
    ("energy error [J]", "dca-energy.svg"),
    ("violation of the loops, positions [m, rad]", "dca-positions.svg"),
    ("violation of the loops, velocities [m/s, rad/s]", "dca-velocities.svg"),
)
TIMES = np.linspace(0.0, 10.0, 501)


def growth(sizes: np.ndarray) -> float:
    """Return the exponent of a power of time that fits the running maximum from 0.5 s on."""
    chosen = TIMES >= 0.5
    return float(np.polyfit(np.log(TIMES[chosen]), np.log(np.maximum.accumulate(sizes)[chosen]), 1)[0])


def main() -> None:
    """Print largest errors and growth exponents; draw them over time."""
    columns = "| case | formulation | control | evaluations | largest energy error [J]"
    print(f"{columns} | position [m, rad] | velocity [m/s, rad/s] | growth of the position's |\n|" + " --- |" * 8)
    points: list[dict[str, tuple[list[float], list[float]]]] = [{}, {}, {}]
    styles = {}
    for colour, case in zip(COLOURS, CASES, strict=False):
        for formulation, style in STYLES.items():
            flow = Flow(case, formulation)
            for label, method in (("`rk45`", RK45), ("ode45", Ode45)):
                run = integrate(flow, method, 1e-6, TIMES)
                errors = np.abs([flow.errors(values) for values in run.values])
                most = " | ".join(f"{each:.1e}" for each in errors.max(axis=0))
                rate = f"t^{growth(errors[:, 1]):.2f}"
                print(f"| {case} | {formulation} | {label} | {run.evaluations} | {most} | {rate} |", flush=True)
            name = f"{case}, {formulation}"
            styles[name] = (colour, style)
            for kind, curve in enumerate(points):
                running = np.maximum.accumulate(errors[:, kind])
                curve[name] = TIMES[1:].tolist(), running[1:].tolist()
    for (label, file), curve in zip(WHAT, points, strict=True):
        curves(file, curve, ("time [s]", f"{label}, largest so far"), styles)


if __name__ == "__main__":
    main()
