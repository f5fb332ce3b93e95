"""Cost of DCA in shares of that of HDCA on the closed loops over 10 s, by solver and tolerance, beside Table 2.

Run: python benchmarks/divide_and_conquer/solvers.py [--quick]

The cost is the number of right-hand sides times the measured time of one in compiled C. Needs a C compiler and
`pip install extensisq`, which has an Adams PECE method as MATLAB's ode113 is one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from unittest import mock

import extensisq.shampine
import numpy as np
from extensisq import SWAG
from figures import panels
from flow import Flow, integrate
from matlab import Ode23, Ode45
from rates import interleaved, repeated
from scipy.integrate import LSODA, RK23, RK45, OdeSolver, ode

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STOP = 0.1 if QUICK else 10.0
EXPONENTS = range(3, 10)
CASES = ("loop-4",) if QUICK else ("loop-4", "loop-8", "double-loop-8")
# Table 1: time of one right-hand side in ms, DCA to HDCA; Table 2: κ for 1e-3 to 1e-9.
PUBLISHED_TIMES = {"loop-4": 7.394 / 5.203, "loop-8": 13.388 / 8.806, "double-loop-8": 15.501 / 15.278}
PUBLISHED = {
    ("loop-4", "ode45"): (0.76, 0.99, 0.94, 0.87, 0.91, 0.96, 5.93),
    ("loop-4", "ode113"): (1.21, 1.61, 1.47, 1.48, 1.32, 1.47, 5.96),
    ("loop-4", "ode23"): (1.14, 1.42, 1.48, 1.51, 1.55, 1.78, 2.71),
    ("loop-8", "ode45"): (0.83, 0.95, 0.89, 0.81, 0.78, 0.77, 0.77),
    ("loop-8", "ode113"): (1.73, 1.77, 1.79, 1.64, 1.60, 1.73, 2.89),
    ("loop-8", "ode23"): (1.57, 1.62, 1.70, 1.73, 1.74, 1.76, 1.80),
    ("double-loop-8", "ode45"): (0.57, 0.62, 0.59, 0.56, 0.57, 0.57, 1.16),
    ("double-loop-8", "ode113"): (0.89, 1.01, 1.07, 0.96, 0.99, 1.45, 4.73),
    ("double-loop-8", "ode23"): (0.75, 0.76, 0.80, 0.82, 0.82, 0.84, 0.90),
}
LIKE = {"ode45": "ode45 control", "ode113": "SWAG, largest", "ode23": "ode23 control"}
"""Which of ours is set beside which of the paper's."""


def _stepped(method: Callable[..., OdeSolver], flow: Flow, tolerance: float) -> int:
    return integrate(flow, method, tolerance, np.array([0.0, STOP])).evaluations


def _largest(values: np.ndarray) -> float:
    return float(np.max(np.abs(values), initial=0.0))


def _largest_component(flow: Flow, tolerance: float) -> int:
    """Run the Adams method with the norm of ode113."""
    with mock.patch.object(extensisq.shampine, "norm", _largest):
        return _stepped(SWAG, flow, tolerance)


def _vode(flow: Flow, tolerance: float) -> int:
    flow.evaluations = 0
    solver = ode(flow).set_integrator("vode", method="adams", rtol=tolerance, atol=tolerance, nsteps=10**7)
    solver.set_initial_value(flow.start, 0.0).integrate(STOP)
    if not solver.successful():
        raise RuntimeError("vode fails")
    return flow.evaluations


SOLVERS: dict[str, Callable[[Flow, float], int]] = {
    "ode45 control": partial(_stepped, Ode45),
    "rk45": partial(_stepped, RK45),
    "ode23 control": partial(_stepped, Ode23),
    "rk23": partial(_stepped, RK23),
    "SWAG, largest": _largest_component,
    "SWAG": partial(_stepped, SWAG),
    "vode, Adams": _vode,
    "lsoda": partial(_stepped, LSODA),
}


def counted(flow: Flow, solver: str, tolerance: float) -> int | None:
    """Return the number of right-hand sides; None where the solver fails."""
    try:
        return SOLVERS[solver](flow, tolerance)
    except RuntimeError:
        return None


def main() -> None:
    """Print one table for each case; draw κ over the tolerance."""
    ours: dict[tuple[str, str], list[float]] = {}
    for case in CASES:
        flows = [Flow(case, name) for name in ("dca", "hdca")]
        times = interleaved({flow.formulation.name: repeated(flow) for flow in flows})
        ratio = times["dca"][0] / times["hdca"][0]
        print(f"\n{case}: DCA {times['dca'][0]:.2f} µs, HDCA {times['hdca'][0]:.2f} µs in compiled C: {ratio:.2f}")
        print(
            f"published: {PUBLISHED_TIMES[case]:.2f}\n\n| solver | " + " | ".join(f"1e-{k}" for k in EXPONENTS) + " |"
        )
        print("|" + " --- |" * (1 + len(EXPONENTS)))
        for solver in SOLVERS:
            cells = []
            for exponent in EXPONENTS:
                dca, hdca = (counted(flow, solver, 10.0**-exponent) for flow in flows)
                kappa = ratio * dca / hdca if dca and hdca else float("nan")
                ours.setdefault((case, solver), []).append(kappa)
                cells.append(f"{dca or 'fails'}/{hdca or 'fails'}: {kappa:.2f}")
            print(f"| {solver} | {' | '.join(cells)} |", flush=True)
        for name in LIKE:
            published = PUBLISHED[case, name]
            print(f"| published, {name} | " + " | ".join(f"{each:.2f}" for each in published) + " |")
            counts = (each / PUBLISHED_TIMES[case] for each in published)
            print(f"| … as counts | {' | '.join(f'{each:.2f}' for each in counts)} |")
    tolerances = [10.0**-k for k in EXPONENTS]
    pairs = {
        case: {
            name: {"ours": ours[case, LIKE[name]], "published": list(PUBLISHED[case, name])}
            for name in ("ode45", "ode113", "ode23")
        }
        for case in CASES
    }
    panels("dca-kappa.svg", tolerances, pairs)


if __name__ == "__main__":
    main()
