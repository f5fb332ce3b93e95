"""SciPy's explicit Runge-Kutta methods with the step control of MATLAB's ode45 and ode23, after Shampine and Reichelt.

The MATLAB ODE Suite, SIAM Journal on Scientific Computing 18 (1997).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import RK23, RK45
from scipy.integrate._ivp.rk import RungeKutta, rk_step


class LargestNorm(RungeKutta):
    """SciPy's own control, but of the largest component instead of the root mean square."""

    def _estimate_error_norm(self, K: Any, h: float, scale: Any) -> float:
        return float(np.max(np.abs(self._estimate_error(K, h) / scale)))


class MatlabControl(RungeKutta):
    """Largest component of error / max(|y|, threshold), threshold = atol / rtol; one free choice after a failure."""

    def __init__(self, fun: Any, t0: float, y0: Any, t_bound: float, **options: Any) -> None:
        super().__init__(fun, t0, y0, t_bound, **options, first_step=abs(t_bound - t0))
        self._threshold = self.atol / self.rtol
        self._power = 1.0 / (self.error_estimator_order + 1)
        self._longest = 0.1 * abs(t_bound - t0)
        steep = np.max(np.abs(self.f) / np.maximum(np.abs(y0), self._threshold)) / (0.8 * self.rtol**self._power)
        self.h_abs = min(self._longest, 1.0 / steep if steep > 0.0 else np.inf)

    def _step_impl(self) -> tuple[bool, str | None]:
        failed = False
        length = min(self.h_abs, self._longest)
        while True:
            if length < 16.0 * np.spacing(abs(self.t)):
                return False, self.TOO_SMALL_STEP
            if 1.1 * length >= self.t_bound - self.t:
                length = self.t_bound - self.t
            y, rates = rk_step(self.fun, self.t, self.y, self.f, length, self.A, self.B, self.C, self.K)
            scale = np.maximum(np.maximum(np.abs(self.y), np.abs(y)), self._threshold)
            share = float(np.max(np.abs(self._estimate_error(self.K, length) / scale))) / self.rtol
            if share <= 1.0:
                break
            length *= 0.5 if failed else max(0.1, 0.8 * share**-self._power)
            failed = True
        self.h_previous, self.y_old = length, self.y
        self.t, self.y, self.f = self.t + length, y, rates
        self.h_abs = length if failed else length / max(0.2, 1.25 * share**self._power)
        return True, None


class RK45Largest(LargestNorm, RK45):
    """Dormand-Prince, largest component."""


class Ode45(MatlabControl, RK45):
    """Dormand-Prince as ode45 controls it."""


class Ode23(MatlabControl, RK23):
    """Bogacki-Shampine as ode23 controls it."""
