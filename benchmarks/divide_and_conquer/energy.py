"""Energy error of HDCA over 60 s with equal steps: trapezoidal rule, classical Runge-Kutta, implicit midpoint rule.

Run: python benchmarks/divide_and_conquer/energy.py [--quick]
"""

from __future__ import annotations

import sys
import time

import casadi as ca
import numpy as np
from flow import Floats, Flow

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STOP = 0.2 if QUICK else 60.0


class Steps:
    """Steps of equal size of a flow and their Jacobian.

    Parameters
    ----------
    flow
        The right-hand side.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        explicit = flow.formulation.explicit.function
        parts = ("coordinates", flow.formulation.moving)
        fixed = {name: getattr(flow.functions, name) for name in explicit.name_in() if name not in parts}
        size = len(flow.start)
        y = ca.SX.sym("y", size)
        ends = dict(zip(parts, ca.vertsplit(y, size // 2), strict=True))
        rates = explicit.call([ends.get(name, fixed.get(name)) for name in explicit.name_in()])[0][:size]
        self._both = ca.Function("both", [y], [rates, ca.jacobian(rates, y)])
        self.rates = ca.Function("rates", [y], [rates])

    def _f(self, y: Floats) -> Floats:
        return np.asarray(self.rates(y))[:, 0]

    def implicit(self, y: Floats, step: float, share: float) -> Floats:
        """Solve x = y + share h f(x) with Newton's method from the explicit prediction."""
        x = y + share * step * self._f(y)
        for _ in range(20):
            rates, jacobian = (np.asarray(each) for each in self._both(x))
            change = np.linalg.solve(np.eye(len(y)) - share * step * jacobian, x - y - share * step * rates[:, 0])
            x = x - change
            if np.max(np.abs(change)) < 1e-11 * (1.0 + np.max(np.abs(x))):
                return x
        raise RuntimeError("Newton's method does not converge")

    def midpoint(self, y: Floats, step: float) -> Floats:
        """Return y after a step of the implicit midpoint rule."""
        return 2.0 * self.implicit(y, step, 0.5) - y

    def trapezoidal(self, y: Floats, step: float) -> Floats:
        """Return y after a step of the trapezoidal rule."""
        return self.implicit(y + 0.5 * step * self._f(y), step, 0.5)

    def rk4(self, y: Floats, step: float) -> Floats:
        """Return y after a step of the classical method of order four."""
        first = self._f(y)
        second = self._f(y + 0.5 * step * first)
        third = self._f(y + 0.5 * step * second)
        return y + step / 6.0 * (first + 2.0 * second + 2.0 * third + self._f(y + step * third))


def main() -> None:
    """Print one row for each case, step and rule."""
    columns = "| case | step [ms] | rule | largest energy error [J], 0-10 s | 0-30 s | 0-60 s | mean, 50-60 s"
    print(f"{columns} | loops, positions [m, rad] | time [s] |\n|" + " --- |" * 9)
    for case in ("pendulum-4", "loop-4"):
        flow = Flow(case, "hdca")
        steps = Steps(flow)
        for step in (0.01, 0.005):
            for name in ("trapezoidal", "midpoint", "rk4"):
                y, errors, begin = flow.start, [], time.perf_counter()
                for _ in range(round(STOP / step)):
                    y = getattr(steps, name)(y, step)
                    errors.append(flow.errors(y))
                seconds = time.perf_counter() - begin
                energy, violation = np.array(errors)[:, 0], np.array(errors)[:, 1]
                times = step * np.arange(1, len(energy) + 1)
                most = " | ".join(f"{np.max(np.abs(energy[times <= end])):.2g}" for end in (10.0, 30.0, 60.0))
                row = f"| {case} | {step * 1e3:g} | {name} | {most} | {np.mean(energy[times > STOP - 10.0]):+.2g}"
                print(f"{row} | {np.max(violation):.1e} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
