"""Flow through orifices."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from mbsfmu.modelling.data import DataError
from mbsfmu.modelling.fields import Array

LAMINAR_PRESSURE = 2e5
"""Pressure drop in Pa below which flow is laminar [Jaiswal2021, sect. 3.1]."""
LARGEST_FLOW, LEAST_DROP = 10.0, 1e3
"""Bounds of catalogue points: largest flow rate in m³/s, least pressure drop in Pa."""


def orifice_flow(coefficient: Array | float, pressure_drop: Array, laminar_pressure: Array | float) -> Array:
    """Return the flow rate through an orifice in m³/s [Jaiswal2021, eqs. 24 and 26].

    Turbulent, Q = C sgn(Δp) √|Δp|, above the laminar pressure; below it linear in Δp, Q = C Δp / √p_laminar.

    Parameters
    ----------
    coefficient
        Flow coefficient C in m³/(s √Pa).
    pressure_drop
        Δp in Pa, positive in the direction of the flow.
    laminar_pressure
        Largest |Δp| in Pa at which the flow is laminar; positive.
    """
    return coefficient * pressure_drop / np.sqrt(np.maximum(np.abs(pressure_drop), laminar_pressure))


def rated_orifice_flow(
    share: Array | float,
    rated_flow: Array | float,
    rated_drop: Array,
    pressure_drop: Array,
    laminar_pressure: Array | float,
) -> Array:
    """Return the flow rate in m³/s through a fraction of an orifice that is given by one catalogue point.

    Parameters
    ----------
    share
        Open fraction of the area.
    rated_flow, rated_drop
        The point in m³/s and Pa, turbulent or laminar; positive.
    pressure_drop
        In Pa, positive in the direction of the flow.
    laminar_pressure
        Largest pressure drop in Pa at which the flow is laminar; positive.
    """
    return orifice_flow(
        share * (rated_flow / orifice_flow(1.0, rated_drop, laminar_pressure)), pressure_drop, laminar_pressure
    )


def throttle_coefficient(
    discharge_coefficient: Array | float, diameter: Array | float, density: Array | float
) -> Array:
    """Return C_vt = C_d A √(2/ρ) in m³/(s √Pa) [Jaiswal2021, eq. 25].

    Parameters
    ----------
    discharge_coefficient
        C_d.
    diameter
        Diameter of the orifice in m.
    density
        Density of the oil in kg/m³.
    """
    return area_coefficient(discharge_coefficient, 0.25 * np.pi * diameter**2, density)


def area_coefficient(discharge_coefficient: Array | float, area: Array | float, density: Array | float) -> Array:
    """Return C_d A √(2/ρ) in m³/(s √Pa) of a sharp-edged orifice with an area in m² [Jaiswal2021, eq. 25]."""
    return discharge_coefficient * area * np.sqrt(2.0 / density)


def catalogue_coefficient(flow: float, pressure_drop: float, command: float) -> float:
    """Return C_vd in m³/(s V √Pa) of a valve from a catalogue point [Jaiswal2021, eq. 26].

    Parameters
    ----------
    flow
        Flow at the point in m³/s.
    pressure_drop
        Pressure drop of one edge at the point in Pa.
    command
        Command at the point in V.

    Raises
    ------
    DataError
        When one of them is not positive and finite, or in another unit by its magnitude.
    """
    point = {"flow": flow, "pressure_drop": pressure_drop, "command": command}
    for name, value in point.items():
        if not 0.0 < value < inf:
            raise DataError(f"catalogue_coefficient: {name} is {value}; it must be positive and finite")
    if flow > LARGEST_FLOW:
        raise DataError(
            f"catalogue_coefficient: flow is {flow:g} m3/s; it must be at most {LARGEST_FLOW:g}, "
            f"and {flow:g} l/min are {flow:g} / 60e3 m3/s"
        )
    if pressure_drop < LEAST_DROP:
        raise DataError(
            f"catalogue_coefficient: pressure_drop is {pressure_drop:g} Pa; it must be at least {LEAST_DROP:g}, "
            f"and {pressure_drop:g} bar are {pressure_drop:g}e5 Pa"
        )
    return flow / (command * sqrt(pressure_drop))
