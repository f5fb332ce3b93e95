"""Laws of the double-acting cylinder: areas, friction, end stops."""

from __future__ import annotations

import numpy as np

from hydraulics.fluid import Array


def areas(piston_diameter: Array | float, rod_diameter: Array | float) -> tuple[Array | float, Array | float]:
    """Return the areas in m² that the pressures act on, piston side and rod side."""
    quarter = 0.25 * np.pi
    return quarter * piston_diameter**2, quarter * (piston_diameter**2 - rod_diameter**2)


def friction(
    velocity: Array,
    *,
    viscous: Array | float,
    coulomb: Array | float,
    static: Array | float,
    stribeck_velocity: Array | float,
    smoothing_velocity: Array | float,
) -> Array:
    """Return the friction of the seals in N, against the velocity.

    Viscous friction and the Stribeck curve F_C + (F_S − F_C) exp(−(v/v_S)²), whose sign is smoothed by
    tanh(v/v_0).

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
    """Return the force of the end stops in N, positive where it pushes the cylinder's ends apart.

    A stop that is pressed in by d gives k d max(0, 1 + D ḋ): nothing at first touch, and never a pull.

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
    retracted = np.maximum(-chamber_length, 0.0)
    extended = np.maximum(chamber_length - stroke, 0.0)
    push = stiffness * retracted * np.maximum(1.0 - damping * velocity, 0.0)
    pull = stiffness * extended * np.maximum(1.0 + damping * velocity, 0.0)
    return push - pull
