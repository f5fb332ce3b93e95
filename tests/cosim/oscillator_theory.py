"""What theory says of the coupled oscillator: the linear map from one communication point to the next."""

from __future__ import annotations

import numpy as np
from cosim.linear_units import halves
from scipy.linalg import block_diag, expm
from scipy.optimize import brentq


def step_map(algorithm: str, extrapolation: str, step: float, **oscillator) -> np.ndarray:
    """Return the map of (states of one, states of two, outputs one step before), units being exact between points.

    With inputs u₀ + u₁ θ over a step of length h, a unit's states go to e^{Ah} x + Γ₀ u₀ + Γ₁ u₁, where
    Γ₀ = ∫ e^{A(h−s)} B ds and Γ₁ = ∫ e^{A(h−s)} B s/h ds. All inputs are outputs y = C x of the other unit: Jacobi
    takes u₀ = yₙ and u₁ = yₙ − yₙ₋₁ (zero if held) for both FMUs, Gauss–Seidel for the first one; its second unit
    holds yₙ₊₁ or runs from yₙ to yₙ₊₁. Where two stands does not act back on anything and would add an eigenvalue 1;
    it is left out.
    """
    one, two = (system.matrices for system in halves(**oscillator))
    keep = [1, 2]
    two = (two[0][np.ix_(keep, keep)], two[1][keep], two[2][:, keep], two[3])
    (free1, held1, ramp1), (free2, held2, ramp2) = (_responses(a, b, step) for a, b, _, _ in (one, two))
    velocity, force = one[2][2:3], two[2][2:3]
    linear = extrapolation == "linear"
    # Rows: states of one (2), of two (2), then velocity and force one step before.
    pick1, pick2 = np.eye(6)[:2], np.eye(6)[2:4]
    velocity_now, force_now = velocity @ pick1, force @ pick2
    velocity_rise = (velocity_now - np.eye(6)[4:5]) * linear
    force_rise = (force_now - np.eye(6)[5:6]) * linear
    new1 = free1 @ pick1 + held1 @ force_now + ramp1 @ force_rise
    if algorithm == "jacobi":
        begin, rise = velocity_now, velocity_rise
    else:
        reached = velocity @ new1
        begin, rise = (velocity_now, reached - velocity_now) if linear else (reached, 0.0 * reached)
    new2 = free2 @ pick2 + held2 @ begin + ramp2 @ rise
    result = np.concatenate([new1, new2, velocity_now, force_now])
    return result if linear else result[:4, :4]


def _responses(a: np.ndarray, b: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return e^{Ah}, Γ₀ and Γ₁ from one exponential, with the input and its slope as further states (Van Loan)."""
    n = len(a)
    wide = block_diag(a * step, np.zeros((2, 2)))
    wide[:n, n : n + 1], wide[n, n + 1] = b * step, 1.0
    power = expm(wide)
    return power[:n, :n], power[:n, n : n + 1], power[:n, n + 1 :]


def spectral_radius(algorithm: str, extrapolation: str, step: float, **oscillator) -> float:
    """Return the largest magnitude of the eigenvalues of the map: above 1 the run diverges."""
    return float(np.max(np.abs(np.linalg.eigvals(step_map(algorithm, extrapolation, step, **oscillator)))))


def stability_limit(algorithm: str, extrapolation: str, **oscillator) -> float:
    """Return the smallest communication step in s beyond which the run diverges."""
    steps = np.geomspace(1e-4, 1.0, 400)
    radii = [spectral_radius(algorithm, extrapolation, step, **oscillator) for step in steps]
    first = int(np.argmax(np.array(radii) > 1.0))
    if first == 0:
        raise ValueError("the smallest step diverges already")
    return float(
        brentq(
            lambda step: spectral_radius(algorithm, extrapolation, step, **oscillator) - 1.0,
            steps[first - 1],
            steps[first],
            xtol=1e-9,
        )
    )
