"""Spool edges: the ports they connect, and their opening over the spool position."""

from __future__ import annotations

from typing import Literal

from hydraulics.opening import Points
from mbsfmu.modelling.data import Data, DataError

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
