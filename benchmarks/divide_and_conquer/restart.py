"""HDCA on closed loops over 10 s with momenta started anew, p = M ż, so that the impulses do not add up in them.

Run: python benchmarks/divide_and_conquer/restart.py [--quick]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
from flow import Flow
from scipy.integrate import RK45
from scipy.integrate._ivp.rk import RungeKutta

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STOP = 0.5 if QUICK else 10.0
CASES = ("loop-4",) if QUICK else ("loop-4", "loop-8", "double-loop-8")


def run(flow: Flow, method: Callable[..., RungeKutta], tolerance: float, interval: float) -> tuple[str, str]:
    """Return evaluations, and largest energy error, violations of positions and of velocities, as cells."""
    flow.evaluations = 0
    solver = method(flow, 0.0, flow.start, STOP, rtol=tolerance, atol=tolerance)
    size, begin, errors = len(flow.start) // 2, 0.0, []
    while solver.status == "running":
        solver.step()
        errors.append(np.abs(flow.errors(solver.y)))
        if solver.status == "running" and solver.t - begin > interval:
            flow.functions.coordinates[:], flow.functions.velocities[:] = solver.y[:size], solver.f[:size]
            flow.formulation.initial_momenta()
            solver.y = np.concatenate([solver.y[:size], flow.functions.momenta])
            solver.f = flow(solver.t, solver.y)
            begin = solver.t
    if solver.status == "failed":
        return f"fails at {solver.t:.1f} s", "– | – | –"
    return str(flow.evaluations), " | ".join(f"{each:.1e}" for each in np.max(errors, axis=0))


def main() -> None:
    """Print one row for each case, tolerance and interval."""
    columns = "| case | tolerance | momenta anew | evaluations | energy [J] | positions [m, rad]"
    print(f"{columns} | velocities [m/s, rad/s] |\n|" + " --- |" * 7)
    for case in CASES:
        flow = Flow(case, "hdca")
        for tolerance in (1e-3, 1e-6):
            for label, interval in (("never", math.inf), ("each 1 s", 1.0), ("each 0.3 s", 0.3)):
                evaluations, errors = run(flow, RK45, tolerance, interval)
                print(f"| {case} | {tolerance:g} | {label} | {evaluations} | {errors} |", flush=True)


if __name__ == "__main__":
    main()
