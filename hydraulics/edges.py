"""The edges of spools: which ports they join, and how far they are open by the spool's position."""

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
        Ports that it joins.
    points
        Pairs of a spool position, from −1 to 1, and the share of the rated area that is open there; straight lines
        between, constant beyond.
    """

    origin: PortName
    target: PortName
    points: Points


Edges = tuple[Edge, ...]


def closed_centre(overlap: float = 0.0, *, outlet_share: float = 1.0, b_share: float = 1.0) -> Edges:
    """Return the edges of a 4/3 spool that closes all ports in the middle.

    A positive spool joins supply to a and b to tank, a negative one supply to b and a to tank.

    Parameters
    ----------
    overlap
        Spool position up to which edges stay closed; where it is negative, they are open by that in the middle.
    outlet_share
        Area of the edges to the tank by that of the edges from the supply.
    b_share
        Area of the edges at b by that of the edges at a, as for a differential cylinder.

    Raises
    ------
    DataError
        When an overlap is not between −1 and 1.
    """
    return _four_way(overlap, overlap, outlet_share, b_share)


def open_centre(underlap: float, *, outlet_share: float = 1.0, b_share: float = 1.0) -> Edges:
    """Return the edges of a 4/3 spool that joins all ports in the middle, each edge closing at its `underlap`."""
    return _four_way(-underlap, -underlap, outlet_share, b_share)


def float_centre(overlap: float, underlap: float, *, outlet_share: float = 1.0, b_share: float = 1.0) -> Edges:
    """Return the edges of a 4/3 spool that joins a and b to the tank in the middle and closes the supply there."""
    return _four_way(overlap, -underlap, outlet_share, b_share)


def tandem_centre(
    overlap: float = 0.0,
    *,
    bypass_end: float,
    bypass_share: float = 1.0,
    outlet_share: float = 1.0,
    b_share: float = 1.0,
) -> Edges:
    """Return the edges of a 4/3 spool that closes a and b in the middle and joins the supply to the tank there.

    Parameters
    ----------
    overlap, outlet_share, b_share
        As for `closed_centre`.
    bypass_end
        Spool position at which the way from supply to tank is closed.
    bypass_share
        Its area in the middle, by that of the edges from the supply.
    """
    _check_place("bypass_end", bypass_end, least=0.0)
    bypass = Edge(origin="supply", target="tank", points=((-bypass_end, 0.0), (0.0, bypass_share), (bypass_end, 0.0)))
    return (*_four_way(overlap, overlap, outlet_share, b_share), bypass)


def three_way(overlap: float = 0.0, *, outlet_share: float = 1.0) -> Edges:
    """Return the edges of a 3/2 spool: a positive one joins supply to a, a negative one a to tank."""
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
    """Return the edge from the supply to a port, which a positive spool opens for a."""
    return Edge(origin="supply", target=port, points=_ramp(overlap, share, rises=port == "a"))


def _returning(port: Literal["a", "b"], overlap: float, share: float) -> Edge:
    """Return the edge from a port to the tank, which a negative spool opens for a."""
    return Edge(origin=port, target="tank", points=_ramp(overlap, share, rises=port == "b"))


def _ramp(overlap: float, share: float, *, rises: bool) -> Points:
    _check_place("overlap", overlap, least=-1.0)
    return ((overlap, 0.0), (1.0, share)) if rises else ((-1.0, share), (-overlap, 0.0))


def _check_place(name: str, place: float, least: float) -> None:
    if not least < place < 1.0:
        raise DataError(f"{name} is {place}; as a spool position it must be greater than {least:g} and less than 1")
