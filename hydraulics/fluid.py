"""The fluid: oil, and the stiffness of a volume of it in elastic walls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from numpy.typing import NDArray
from pydantic import Field

from hydraulics.data import Data

Array = NDArray[Any]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]


class Oil(Data):
    """Hydraulic oil.

    Attributes
    ----------
    bulk_modulus
        In Pa.
    density
        In kg/m³.
    """

    bulk_modulus: Positive
    density: Positive


def effective_bulk_modulus(
    oil: Array | float,
    volume: Array | float,
    walls: Sequence[tuple[Array | float, Array | float]],
) -> Array | float:
    """Return the bulk modulus of oil and walls together in Pa [Jaiswal2021, eq. 23].

    Parameters
    ----------
    oil
        Bulk modulus of the oil in Pa.
    volume
        The whole volume in m³.
    walls
        For each subvolume with elastic walls, its volume in m³ and the modulus of its walls in Pa.
    """
    compliance = 1.0 / oil
    for subvolume, modulus in walls:
        compliance = compliance + subvolume / (volume * modulus)
    return 1.0 / compliance
