"""Assembly of vectors from numbers, and their division into pieces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from mbsfmu.modelling.fields import Array


def stack(scalars: Sequence[Array | float]) -> Array:
    """Stack scalars to a vector, which may be empty."""
    return np.stack(scalars) if scalars else np.zeros(0)


def cut(vector: Array, sizes: Sequence[int]) -> list[Array]:
    """Return pieces of a vector with the given sizes, empty ones included."""
    return [vector[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]
