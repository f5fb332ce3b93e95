"""Magnitudes of unknowns without a nominal value, from their equations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mbsfmu.tracing.workspace import Floats

_FOLLOWS = 1e-2
"""Rate in 1/s above which a state follows others; a slower one integrates them."""


def magnitudes(matrix: Floats, known: Floats, own: NDArray[np.intp], sizes: Floats) -> Floats:
    """Return magnitudes of all unknowns, unknown ones from the equations.

    The magnitude of a state that follows others, as in a filter, is |a_ij| s_j / |a_ii| at most. Otherwise, as for an
    integral or a set point, it gives the effect that other variables have in the same equations. A value in Pa is
    therefore larger by 10⁵ than the same in bar, and a search does not depend on the unit. Unknowns unrelated to known
    magnitudes have magnitude one.

    Parameters
    ----------
    matrix
        Derivatives of the equations by the unknowns, finite, shape (m, n).
    known
        Magnitudes that are known, and NaN; shape (n,).
    own
        Of each unknown the row of the equation in which it is at rest by itself, or −1; shape (n,).
    sizes
        Of each equation its magnitude where that is known beside its unknowns, as that of loads, and 0; shape (m,).
    """
    slopes, found = np.abs(matrix), known.copy()
    while np.isnan(found).any():
        effects = slopes * np.nan_to_num(found, nan=0.0)
        candidates = np.full(len(found), np.nan)
        for index in np.flatnonzero(np.isnan(found)).tolist():
            candidates[index] = _magnitude(slopes[:, index], effects, int(own[index]), sizes)
        if np.isnan(candidates).all():
            break
        found = np.where(np.isnan(found), candidates, found)
    return np.nan_to_num(found, nan=1.0)


def _magnitude(column: Floats, effects: Floats, own: int, sizes: Floats) -> float:
    """Return the magnitude of an unknown from those known so far, or NaN.

    Parameters
    ----------
    column
        Slopes of all equations by it, shape (m,).
    effects
        Those of all equations by all unknowns in their magnitudes, 0 of what is not known; shape (m, n).
    own, sizes
        As of `magnitudes`.
    """
    largest = np.maximum(np.max(effects, axis=1, initial=0.0), sizes)
    follows = own >= 0 and column[own] >= _FOLLOWS
    if follows and largest[own] > 0.0:
        return float(largest[own] / column[own])
    counts = (column > 0.0) & (largest > 0.0)
    if own >= 0 and follows:
        counts[own] = False
    return float(np.min(largest[counts] / column[counts])) if counts.any() else np.nan
