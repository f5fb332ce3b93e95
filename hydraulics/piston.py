"""Piston equations: areas, friction, end stops, cushions."""

from __future__ import annotations

import numpy as np

from hydraulics.flow import throttle_coefficient
from mbsfmu.modelling.fields import Array

CUSHION_DISCHARGE = 0.61
"""Discharge coefficient of a cushion orifice, sharp-edged [Merritt: Hydraulic Control Systems, 1967]."""


def ring(outer: Array, inner: Array | float) -> Array:
    """Return the annular area in m² between two diameters in m."""
    return 0.25 * np.pi * (outer**2 - inner**2)


def friction(
    velocity: Array,
    *,
    viscous: Array | float,
    coulomb: Array | float,
    static: Array | float,
    stribeck_velocity: Array | float,
    smoothing_velocity: Array | float,
) -> Array:
    """Return the seal friction in N, opposite to the velocity.

    Viscous friction and the Stribeck curve F_C + (F_S − F_C) exp(−(v/v_S)²), with the smoothed sign tanh(v/v_0).

    Parameters
    ----------
    velocity
        v in m/s.
    viscous
        In N s/m.
    coulomb, static
        F_C and F_S in N.
    stribeck_velocity, smoothing_velocity
        v_S and v_0 in m/s; positive.
    """
    curve = coulomb + (static - coulomb) * np.exp(-((velocity / stribeck_velocity) ** 2))
    return viscous * velocity + curve * np.tanh(velocity / smoothing_velocity)


def end_stop_force(
    chamber_length: Array,
    stroke: Array | float,
    velocity: Array,
    stiffness: Array | float,
    damping: Array | float,
) -> Array:
    """Return the force of the end stops in N, positive where it extends the cylinder.

    A compression d gives the force k d max(0, 1 + D ḋ): zero at first contact, and never tensile.

    Parameters
    ----------
    chamber_length
        Length of the piston-side chamber in m.
    stroke
        In m.
    velocity
        Rate of the length in m/s.
    stiffness
        k in N/m.
    damping
        D in s/m.
    """
    retracted, extended = pressed_in(chamber_length, stroke)
    push = stiffness * retracted * np.maximum(1.0 - damping * velocity, 0.0)
    pull = stiffness * extended * np.maximum(1.0 + damping * velocity, 0.0)
    return push - pull


def pressed_in(chamber_length: Array, stroke: Array | float) -> tuple[Array, Array]:
    """Return the compression of the end stops in m, retracted and extended."""
    return np.maximum(-chamber_length, 0.0), np.maximum(chamber_length - stroke, 0.0)


def cushion_pressure(way: Array, length: Array, flow: Array, diameter: Array, density: Array | float) -> Array:
    """Return the pressure rise in Pa of a chamber by its cushion.

    Over the cushion length a spear closes the outlet except for an orifice with the flow coefficient C. The remaining
    opening decreases as C / s, s = 1 − way / length, so that Δp = (s Q / C)². Inflow passes a check valve without
    pressure drop; outflow has none before the spear enters.

    Parameters
    ----------
    way
        Remaining stroke to the end in m.
    length
        Length of the cushion in m; positive.
    flow
        Q out of the chamber in m³/s.
    diameter
        Diameter of the orifice in m.
    density
        Density of the oil in kg/m³.
    """
    closed = np.clip(1.0 - way / length, 0.0, 1.0)
    coefficient = throttle_coefficient(CUSHION_DISCHARGE, diameter, density)
    return (closed * np.maximum(flow, 0.0) / coefficient) ** 2
