"""The chain of 16 links over 10 s: right-hand sides and energy error of DCA and HDCA under several step controls.

Run: python benchmarks/divide_and_conquer/pendulum.py [--quick]
"""

from __future__ import annotations

import sys

import numpy as np
from flow import Flow, integrate
from matlab import Ode45, RK45Largest
from scipy.integrate import RK45

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
TOLERANCE, STOP, CHAIN = 1e-6, 0.2 if QUICK else 10.0, "pendulum-4" if QUICK else "pendulum-16"
PUBLISHED = {"dca": 3493, "hdca": 3169}
CONTROLS = {
    "root mean square of error / (atol + rtol max(abs y)): `rk45`": RK45,
    "the same with the largest component": RK45Largest,
    "ode45: largest component of error / max(abs y, atol / rtol)": Ode45,
}


def main() -> None:
    """Print one row for each control."""
    times = np.linspace(0.0, STOP, 1001)
    flows = {name: Flow(CHAIN, name) for name in PUBLISHED}
    print("| step control | DCA | HDCA | HDCA/DCA | largest energy error, DCA [J] | HDCA [J] |\n|" + " --- |" * 6)
    print(f"| published, MATLAB's ode45 | 3493 | 3169 | {3169 / 3493:.3f} | – | – |")
    for label, method in CONTROLS.items():
        counts, errors = [], []
        for flow in flows.values():
            run = integrate(flow, method, TOLERANCE, times)
            counts.append(run.evaluations)
            errors.append(max(abs(flow.errors(values)[0]) for values in run.values))
        dca, hdca = counts
        print(f"| {label} | {dca} | {hdca} | {hdca / dca:.3f} | {errors[0]:.2g} | {errors[1]:.2g} |", flush=True)


if __name__ == "__main__":
    main()
