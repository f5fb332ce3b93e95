"""Identifiability of parameters: covariance, intervals, correlation, undetermined directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mbsfmu.tracing.workspace import Floats

_SHARE = 1e-3
"""Squared component of a direction above which a parameter takes part in it."""
_EQUAL = 0.02
"""By which the exponent of a product may differ from a whole number, and the ratio of two changes from one."""
_MOST = 4.5
"""Exponents beyond are no product that anybody has written."""
_CORRELATED = 0.99
"""Correlation above which two parameters are reported as hardly distinguishable."""


@dataclass(frozen=True)
class Information:
    """Information on parameters from the Jacobian of residuals.

    Attributes
    ----------
    covariance
        Of the parameters, shape (p, p); infinite variances where the data say nothing.
    correlation
        Shape (p, p); not-a-number where the data say nothing.
    sentences
        What cannot be told apart, in words.
    """

    covariance: Floats
    correlation: Floats
    sentences: tuple[str, ...]


def information(
    jacobian: Floats, names: Sequence[str], units: Sequence[str], values: Floats, ranges: Floats
) -> Information:
    """Return the information on parameters from residuals of variance 1.

    The covariance is (JᵀJ)⁻¹ [Seber, Wild 1989, sect. 2.1.2]. A direction in which the standard deviation exceeds the
    range between the bounds, singular vectors of J in units of the ranges, is one of which the data say nothing.

    Parameters
    ----------
    jacobian
        Derivatives of residuals over their standard deviation, shape (k, p).
    names, units, values
        Of the parameters.
    ranges
        Differences of their bounds, shape (p,).
    """
    _, singular, directions = np.linalg.svd(jacobian * ranges, full_matrices=len(jacobian) < len(names))
    sizes = np.zeros(len(names))
    sizes[: len(singular)] = singular
    told = sizes > 1.0
    inverse = np.where(told, 1.0 / np.where(told, sizes, 1.0), 0.0)
    root = directions.T * inverse * ranges[:, None]
    covariance = root @ root.T
    lost = [directions[index] for index in np.flatnonzero(~told)]
    unknown = np.zeros(len(names), dtype=bool)
    sentences = []
    for direction in lost:
        taking: list[int] = np.flatnonzero(direction**2 > _SHARE).tolist()
        unknown |= direction**2 > _SHARE
        sentences.append(_sentence(direction * ranges, taking, names, units, values))
    covariance[unknown, unknown] = np.inf
    deviations = np.sqrt(np.diag(covariance))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = covariance / np.outer(deviations, deviations)
    correlation[unknown], correlation[:, unknown] = np.nan, np.nan
    pairs = [(first, second) for first in range(len(names)) for second in range(first)]
    sentences += [
        f"{names[second]} and {names[first]} are hardly distinguishable: correlation {correlation[first, second]:.4f}"
        for first, second in pairs
        if abs(correlation[first, second]) > _CORRELATED
    ]
    return Information(covariance, correlation, tuple(sentences))


def _sentence(
    direction: Floats, taking: Sequence[int], names: Sequence[str], units: Sequence[str], values: Floats
) -> str:
    """Return the meaning of an undetermined direction."""
    if len(taking) == 1:
        return f"the data say nothing of {names[taking[0]]}"
    if len(taking) == 2:
        first, second = taking
        ratio = float(direction[first] / direction[second])
        if units[first] == units[second] and abs(abs(ratio) - 1.0) < _EQUAL:
            combined = "sum" if ratio < 0.0 else "difference"
            return f"the data say only what the {combined} of {names[first]} and {names[second]} is"
        if values[first] and values[second]:
            exponent = -ratio * float(values[second] / values[first])
            for a, b, power in ((first, second, exponent), (second, first, 1.0 / exponent)):
                whole = round(power)
                if whole and abs(power - whole) < _EQUAL * abs(whole) and abs(whole) < _MOST:
                    raised = "" if abs(whole) == 1 else f"^{abs(whole)}"
                    sign = "·" if whole > 0 else " / "
                    return f"the data say only what {names[a]}{sign}{names[b]}{raised} is"
    listed = ", ".join(names[each] for each in taking)
    return f"the data say only what combinations of {listed} are, and not each"
