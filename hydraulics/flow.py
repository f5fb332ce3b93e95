"""Flow through orifices: the law, and how valves open: ramps, tables, edges of spools."""

from __future__ import annotations

from itertools import pairwise
from math import inf, sqrt
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator

from mbsfmu.modelling.data import Array, Data, DataError, NonNegative

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


ROUNDED = 0.05
"""Fraction of a ramp, at each end, over which its slope is rounded."""


def _rising(points: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    if len(points) < 2:
        raise ValueError(f"points are {len(points)}; a table has at least two")
    for (one, _), (other, _) in pairwise(points):
        if other <= one:
            raise ValueError(f"points go from {one} to {other}; each must lie beyond the one before")
    return points


Points = Annotated[tuple[tuple[float, NonNegative], ...], AfterValidator(_rising)]
"""Field type: a table with ascending arguments and non-negative area fractions."""


def opening(acting: Array, cracking: Array | float, full: Array | float) -> Array:
    """Return the opening, from 0 to 1, of a spring-loaded valve.

    It is the pressure beyond cracking divided by that at full opening: spring and stroke are linear [Merritt: Hydraulic
    Control Systems, 1967, on relief valves]. The first and the last twentieth are rounded by a cubic, so that the slope
    is continuous. Below cracking the valve is exactly closed, beyond full opening exactly open.

    Parameters
    ----------
    acting
        Pressure in Pa that opens the valve.
    cracking, full
        Pressures in Pa of cracking and of full opening; the second is greater.
    """
    share = (acting - cracking) / (full - cracking)
    return np.clip(share, 0.0, 1.0) + _rounding(share) - _rounding(1.0 - share)


def _rounding(share: Array) -> Array:
    """Return w (2 t² − t³ − t) with t = u / w, the rounding from slope 0 to slope 1 over the width w."""
    way = np.clip(share / ROUNDED, 0.0, 1.0)
    return ROUNDED * way * (way * (2.0 - way) - 1.0)


def kept_below(value: Array, most: Array | float) -> Array:
    """Return the lesser of a value and a limit, rounded by a parabola within a twentieth of the limit."""
    width = ROUNDED * most
    rest = most - value
    return most - np.clip(rest + width, 0.0, 2.0 * width) ** 2 / (4.0 * width) - np.maximum(rest - width, 0.0)


PortName = Literal["supply", "tank", "a", "b"]


class Edge(Data):
    """An edge of a spool.

    Attributes
    ----------
    origin, target
        Ports that it connects.
    points
        Table of spool position, from −1 to 1, and open fraction of the rated area; linear interpolation, constant
        beyond.
    """

    origin: PortName
    target: PortName
    points: Points


Edges = tuple[Edge, ...]


def closed_centre(overlap: float = 0.0, *, outlet_share: float = 1.0, b_share: float = 1.0) -> Edges:
    """Return the edges of a 4/3 spool with closed centre.

    A positive spool position connects supply to a and b to tank, a negative one supply to b and a to tank.

    Parameters
    ----------
    overlap
        Spool position up to which edges stay closed; negative values are an underlap.
    outlet_share
        Area of the tank edges divided by that of the supply edges.
    b_share
        Area of the edges at b divided by that at a, for differential cylinders.

    Raises
    ------
    DataError
        When an overlap is not between −1 and 1.
    """
    return _four_way(overlap, overlap, outlet_share, b_share)


def open_centre(underlap: float, *, outlet_share: float = 1.0, b_share: float = 1.0) -> Edges:
    """Return the edges of a 4/3 spool with open centre, each edge closing at `underlap`."""
    return _four_way(-underlap, -underlap, outlet_share, b_share)


def float_centre(overlap: float, underlap: float, *, outlet_share: float = 1.0, b_share: float = 1.0) -> Edges:
    """Return the edges of a 4/3 spool with float centre: a and b connected to the tank, supply closed."""
    return _four_way(overlap, -underlap, outlet_share, b_share)


def tandem_centre(
    overlap: float = 0.0,
    *,
    bypass_end: float,
    bypass_share: float = 1.0,
    outlet_share: float = 1.0,
    b_share: float = 1.0,
) -> Edges:
    """Return the edges of a 4/3 spool with tandem centre: supply connected to the tank, a and b closed.

    Parameters
    ----------
    overlap, outlet_share, b_share
        As for `closed_centre`.
    bypass_end
        Spool position at which the connection from supply to tank is closed.
    bypass_share
        Area of this connection at centre, divided by that of the supply edges.
    """
    _check_place("bypass_end", bypass_end, least=0.0)
    bypass = Edge(origin="supply", target="tank", points=((-bypass_end, 0.0), (0.0, bypass_share), (bypass_end, 0.0)))
    return (*_four_way(overlap, overlap, outlet_share, b_share), bypass)


def three_way(overlap: float = 0.0, *, outlet_share: float = 1.0) -> Edges:
    """Return the edges of a 3/2 spool: positive connects supply to a, negative a to tank."""
    return _feeding("a", overlap, 1.0), _returning("a", overlap, outlet_share)


def two_way(overlap: float = 0.0) -> Edges:
    """Return the edge of a 2/2 spool that a positive position opens."""
    return (_feeding("a", overlap, 1.0),)


def _four_way(inlet: float, outlet: float, outlet_share: float, b_share: float) -> Edges:
    return (
        _feeding("a", inlet, 1.0),
        _returning("a", outlet, outlet_share),
        _feeding("b", inlet, b_share),
        _returning("b", outlet, outlet_share * b_share),
    )


def _feeding(port: Literal["a", "b"], overlap: float, share: float) -> Edge:
    """Return the edge from the supply to a port; positive spool positions open that of a."""
    return Edge(origin="supply", target=port, points=_ramp(overlap, share, rises=port == "a"))


def _returning(port: Literal["a", "b"], overlap: float, share: float) -> Edge:
    """Return the edge from a port to the tank; negative spool positions open that of a."""
    return Edge(origin=port, target="tank", points=_ramp(overlap, share, rises=port == "b"))


def _ramp(overlap: float, share: float, *, rises: bool) -> Points:
    _check_place("overlap", overlap, least=-1.0)
    return ((overlap, 0.0), (1.0, share)) if rises else ((-1.0, share), (-overlap, 0.0))


def _check_place(name: str, place: float, least: float) -> None:
    if not least < place < 1.0:
        raise DataError(f"{name} is {place}; as a spool position it must be greater than {least:g} and less than 1")
