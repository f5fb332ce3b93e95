"""The closed loops with Dormand-Prince at 1e-6, 10 s as published and 100 s: violation of the loops, energy error.

Run: python benchmarks/divide_and_conquer/loops.py [--quick]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from figures import STYLES, curves
from flow import Flow, integrate
from matlab import Ode45
from scipy.integrate import RK45

sys.path.insert(0, str(Path(__file__).parents[1]))

from drawing import COLOURS

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
CASES = ("loop-4",) if QUICK else ("loop-4", "loop-8", "double-loop-8")
WHAT = (
    ("energy error [J]", "dca-energy.svg"),
    ("positions of the loops [m, rad]", "dca-positions.svg"),
    ("velocities of the loops [m/s, rad/s]", "dca-velocities.svg"),
)
PUBLISHED, STOP = (1.5, 2.0) if QUICK else (10.0, 100.0)
TIMES = np.linspace(0.0, STOP, 2001)
DRAWN = np.unique(np.geomspace(20, len(TIMES) - 1, 200).astype(int))  # from 1 s on


def growth(sizes: np.ndarray, end: float) -> float:
    """Return the exponent of a power of time that fits the running maximum from 1 s to an end."""
    chosen = (TIMES >= 1.0) & (end >= TIMES)
    return float(np.polyfit(np.log(TIMES[chosen]), np.log(np.maximum.accumulate(sizes)[chosen]), 1)[0])


def main() -> None:
    """Print largest errors over 10 s and growth exponents; draw all over time."""
    columns = "| case | formulation | control | evaluations, 10 s | energy [J] | positions [m, rad]"
    print(
        f"{columns} | velocities [m/s, rad/s] | energy, 100 s | positions grow, 1-10 s | 1-100 s |\n|" + " --- |" * 10
    )
    points: list[dict[str, tuple[list[float], list[float]]]] = [{}, {}, {}]
    styles = {}
    for colour, case in zip(COLOURS, CASES, strict=False):
        for formulation, style in STYLES.items():
            flow = Flow(case, formulation)
            for label, method in (("`rk45`", RK45), ("ode45", Ode45)):
                count = integrate(flow, method, 1e-6, np.array([0.0, PUBLISHED])).evaluations
                run = integrate(flow, method, 1e-6, TIMES)
                errors = np.abs([flow.errors(values) for values in run.values])
                most = " | ".join(f"{each:.1e}" for each in errors[PUBLISHED >= TIMES].max(axis=0))
                long = f"{errors[:, 0].max():.1e}"
                rates = " | ".join(f"t^{growth(errors[:, 1], end):.2f}" for end in (PUBLISHED, STOP))
                size = np.max(np.abs(run.values)[PUBLISHED >= TIMES])
                print(
                    f"| {case} | {formulation} | {label} | {count} | {most} | {long} | {rates} | {size:.0f} |",
                    flush=True,
                )
            name = f"{case}, {formulation}"
            styles[name] = (colour, style)
            for kind, curve in enumerate(points):
                running = np.maximum.accumulate(errors[:, kind])
                curve[name] = TIMES[DRAWN].tolist(), running[DRAWN].tolist()
    for (label, file), curve in zip(WHAT, points, strict=True):
        curves(file, curve, ("time [s]", f"{label}, largest so far"), styles)


if __name__ == "__main__":
    main()
