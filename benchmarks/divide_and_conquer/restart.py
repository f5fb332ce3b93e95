"""HDCA on closed loops over 10 s with Dormand-Prince: momenta started anew, and loops that close by Φ̇ + a Φ = 0.

Run: python benchmarks/divide_and_conquer/restart.py [--quick]

The first table has the two options of the formulation, the second the share at which momenta start anew: how many times
the kinetic energy the open tree would have with them.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from flow import Flow
from scipy.integrate import RK45

from mbsfmu.formulations.dca import GROWN, Hdca, HdcaOptions

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STOP = 0.5 if QUICK else 10.0
CASES = ("loop-4",) if QUICK else ("loop-4", "loop-8", "double-loop-8")
TOLERANCES = (1e-3, 1e-6) if QUICK else (1e-3, 1e-6, 1e-9)
STABILISATION = HdcaOptions().stabilisation
SETTINGS = ((math.inf, 0.0), (GROWN, 0.0), (GROWN, 1.0), (math.inf, STABILISATION), (GROWN, STABILISATION))
SHARES = (1.0, 2.0, GROWN, 100.0)
COLUMNS = "right-hand sides | energy [J] | positions [m, rad] | velocities [m/s, rad/s] |"


def run(flow: Flow, tolerance: float, grown: float) -> str:
    """Return evaluations, and largest energy error, violations of positions and of velocities, as cells."""
    assert isinstance(flow.formulation, Hdca)
    flow.evaluations = 0
    solver = RK45(flow, 0.0, flow.start, STOP, rtol=tolerance, atol=tolerance)
    size, errors = len(flow.start) // 2, []
    while solver.status == "running":
        solver.step()
        errors.append(np.abs(flow.errors(solver.y)))
        (with_impulses, without), momenta = flow.formulation.restarted_momenta()
        if solver.status == "running" and with_impulses > grown * without:
            solver.y = np.concatenate([solver.y[:size], momenta])
            solver.f = flow(solver.t, solver.y)
    if solver.status == "failed":
        return f"fails at {solver.t:.1f} s | – | – | –"
    return f"{flow.evaluations} | " + " | ".join(f"{each:.1e}" for each in np.max(errors, axis=0))


def main() -> None:
    """Print both tables."""
    print(f"| case | tolerance | momenta anew | a [1/s] | {COLUMNS}\n|" + " --- |" * 8)
    for case in CASES:
        flows = {rate: Flow(case, "hdca", stabilisation=rate) for _, rate in SETTINGS}
        for tolerance in TOLERANCES:
            for grown, rate in SETTINGS:
                anew, cells = "yes" if grown < math.inf else "no", run(flows[rate], tolerance, grown)
                print(f"| {case} | {tolerance:g} | {anew} | {rate:g} | {cells} |", flush=True)
    print(f"\n| case | anew beyond | {COLUMNS}\n|" + " --- |" * 6)
    for case in CASES:
        flow = Flow(case, "hdca", stabilisation=STABILISATION)
        for share in SHARES:
            print(f"| {case} | {share:g} | {run(flow, TOLERANCES[1], share)} |", flush=True)


if __name__ == "__main__":
    main()
