"""Volumes of oil: hoses with elastic walls, and rigid volumes."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Annotated, Literal

from hydraulics.component import Component, FilledPort, Space
from hydraulics.component_context import ComponentContext
from mbsfmu.modelling.fields import Positive
from mbsfmu.modelling.parameters import Parameter

LARGEST_HOSE = 0.5
"""Volume in m³ of a hose of 76 mm, the widest for pressure, that is 110 m long."""
_Volume = Annotated[Positive, Parameter("m3", "volume", usual=(1e-12, 1e3))]


class Hose(Component):
    """A hose with elastic walls.

    Attributes
    ----------
    node
        The node whose volume it adds to.
    volume
        In m³, at atmospheric pressure.
    bulk_modulus
        Modulus of its walls in Pa.
    """

    type: Literal["hose"] = "hose"
    node: FilledPort
    volume: Annotated[Positive, Parameter("m3", "volume", usual=(1e-12, LARGEST_HOSE))]
    bulk_modulus: Annotated[Positive, Parameter("Pa", "bulk modulus", usual=(1e6, inf))]

    def volumes(self, now: ComponentContext) -> Iterable[Space]:
        """Return the volume."""
        return (Space("node", now["volume"], now["bulk_modulus"]),)


class Volume(Component):
    """Volume with rigid walls, such as a manifold.

    Attributes
    ----------
    node
        The node whose volume it adds to.
    volume
        In m³.
    """

    type: Literal["volume"] = "volume"
    node: FilledPort
    volume: _Volume

    def volumes(self, now: ComponentContext) -> Iterable[Space]:
        """Return the volume."""
        return (Space("node", now["volume"]),)
