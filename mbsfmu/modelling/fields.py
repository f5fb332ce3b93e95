"""Types of fields and of numbers in equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from numpy.typing import NDArray
from pydantic import Field

Array = NDArray[Any]
"""An array of numbers, or of symbols where equations are traced."""


@dataclass(frozen=True)
class Measured:
    """Unit of a field that is no parameter of the equations, as `Annotated[float, Measured("rad")]`.

    Attributes
    ----------
    unit
        SI unit.
    """

    unit: str


Positive = Annotated[float, Field(gt=0)]
"""A field that is a number greater than zero."""
NonNegative = Annotated[float, Field(ge=0)]
"""A field that is a number of zero or more."""
OptionalPositive = Annotated[float | None, Field(gt=0)]
"""A field that is a number greater than zero, or None."""
