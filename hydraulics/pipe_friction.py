"""Friction of flow in round pipes: fully developed, and the weighting functions of unsteady laminar flow."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from mbsfmu.modelling.fields import Array


def laminar_resistance(length: Array | float, diameter: Array, viscosity: Array) -> Array:
    """Return Δp / Q in Pa s/m³ of laminar flow [Hagen and Poiseuille]; lengths in m, the dynamic viscosity in Pa s."""
    return 128.0 * viscosity * length / (np.pi * diameter**4)


def reynolds_number(flow: Array, diameter: Array, kinematic_viscosity: Array) -> Array:
    """Return the Reynolds number of a flow in m³/s in a pipe with a diameter in m; viscosity in m²/s."""
    return 4.0 * np.abs(flow) / (np.pi * diameter * kinematic_viscosity)


def turbulent_factor(reynolds: Array) -> Array:
    """Return the friction factor divided by that of laminar flow, 64 / Re; 1 in laminar flow.

    Turbulent flow has 0.3164 / Re^¼ [Blasius 1913, up to Re = 10⁵; Merritt: Hydraulic Control Systems, 1967].
    """
    return np.maximum(0.3164 / 64.0 * np.maximum(reynolds, 1.0) ** 0.75, 1.0)


class Weighting(NamedTuple):
    """Weighting function W(τ) = Σ m e^(−n τ) of the acceleration in wall friction, τ = 4 ν t / d² [Zielke 1968].

    Laminar flow loses Δp = R (Q + ½ ∫ W(τ(t − u)) Q̇(u) du) with the resistance R of steady flow.

    Attributes
    ----------
    factors, rates
        m and n, dimensionless.
    """

    factors: tuple[float, ...]
    rates: tuple[float, ...]


UnsteadyFriction = Literal["trikha", "kagawa"]
WEIGHTINGS: dict[str, Weighting] = {
    "trikha": Weighting((40.0, 8.1, 1.0), (8000.0, 200.0, 26.4)),
    "kagawa": Weighting(
        (1.0, 1.16725, 2.20064, 3.92861, 6.78788, 11.6761, 20.0612, 34.4541, 59.1642, 101.590),
        (26.3744, 72.8033, 187.424, 536.626, 1570.60, 4618.13, 13601.1, 40082.5, 118153.0, 348316.0),
    ),
}
"""Approximations of Zielke's weighting function: by three terms [A. K. Trikha: An efficient method for simulating
frequency-dependent friction in transient liquid flow, J. Fluids Eng. 97 (1975)], and by ten [T. Kagawa et al.: High
speed and accurate computing method of frequency-dependent friction in laminar pipe flow for characteristics method,
Trans. JSME B 49 (1983)]."""
