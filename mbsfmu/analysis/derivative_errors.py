"""Errors of derivatives of a run that come of its steps."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mbsfmu.integration.error_measure import LARGE_ERROR
from mbsfmu.modelling.parameters import LEFT_OUT, percent
from mbsfmu.tracing.workspace import Floats

_LOGGER = logging.getLogger(__name__)
_SLIGHT, _NOTHING, _ROUND_OFF = 1e-3, 1e-9, 1e-12
"""Effects of parameters below this share of the largest one, and of the value itself, are as good as none, and so are
those below the last one in SI units, which is round-off of what is zero."""
_BEGUN = 0.1
"""Share of its largest error from which on a derivative counts as inexact."""


@dataclass(frozen=True)
class DerivativeErrors:
    """Estimated errors of derivatives, and of what is differentiated, that come of the steps of the run.

    Attributes
    ----------
    of, by
        What is differentiated, and by what.
    shares
        Largest error over the run as a share of the largest derivative, shape (of, by).
    values
        Largest error over the run of what is differentiated, in its SI unit, shape (of,); not-a-number where a
        tolerance controls it, and nothing estimates it.
    time
        When the derivative with the largest error becomes inexact, in s; not-a-number of scalars.
    steps
        The steps in words.
    causes
        Where equations bend between ends of steps, in words.
    """

    of: tuple[str, ...]
    by: tuple[str, ...]
    shares: Floats = field(repr=False)
    values: Floats = field(repr=False)
    time: float = np.nan
    steps: str = ""
    causes: tuple[str, ...] = ()

    @property
    def largest(self) -> float:
        """The largest share; 0 of nothing."""
        return float(self.shares.max(initial=0.0))

    @property
    def worst(self) -> tuple[str, str]:
        """What has the largest share, and by what it is differentiated."""
        row, column = divmod(int(np.argmax(self.shares)), len(self.by))
        return self.of[row], self.by[column]

    def joined(self, other: DerivativeErrors) -> DerivativeErrors:
        """Return the larger ones of these errors and of others of the same derivatives."""
        time = self.time if self.largest >= other.largest else other.time
        values = np.fmax(self.values, other.values)
        return replace(self, shares=np.maximum(self.shares, other.shares), values=values, time=time)

    def sentence(self, remedy: str) -> str:
        """Return a sentence on derivatives that are inexact, with advice; empty where all are exact enough."""
        if self.largest <= LARGE_ERROR:
            return ""
        of, by = self.worst
        size = percent(self.largest) if self.largest < 1.0 else "as much as it is"
        causes = f", for {' and '.join(self.causes)}" if self.causes else ""
        since = f" from t = {self.time:.6g} s on" if np.isfinite(self.time) else ""
        return f"the derivative of {of} by {by} is uncertain by {size}{since} with {self.steps}{causes}: {remedy}"

    def warn(self, remedy: str) -> None:
        """Log a warning where derivatives are inexact."""
        if told := self.sentence(remedy):
            _LOGGER.warning("%s", told)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "steps": self.steps,
            "derivatives": {
                of: dict(zip(self.by, row, strict=True)) for of, row in zip(self.of, self.shares.tolist(), strict=True)
            },
            "values": {
                of: None if np.isnan(error) else error for of, error in zip(self.of, self.values.tolist(), strict=True)
            },
            "causes": list(self.causes),
        }


def derivative_errors(
    of: Sequence[str],
    by: Sequence[str],
    given: Floats,
    derivatives: tuple[Floats, Floats],
    values: tuple[Floats, Floats],
    *,
    times: Floats | None = None,
    factor: float = 1.0,
) -> DerivativeErrors:
    """Return the errors of derivatives from those of other steps, or of an embedded formula.

    Parameters
    ----------
    of, by
        What is differentiated, and by what; what is an error itself is left out.
    given
        Values of the latter, shape (by,); effects are compared for a change by as much, or by one where it is zero.
    derivatives
        The derivatives and the others, each of shape (times, of, by).
    values
        What is differentiated, and the same with the others, each of shape (times, of).
    times
        In s.
    factor
        Error over the difference.
    """
    scale = np.where(given == 0.0, 1.0, np.abs(given))
    differences = factor * np.abs(derivatives[1] - derivatives[0])
    # Of the two the smaller one: coarser steps may make derivatives of anything.
    effect = np.minimum(*(np.max(np.abs(each), axis=0, initial=0.0) for each in derivatives)) * scale
    off = np.max(differences, axis=0, initial=0.0) * scale
    least = np.maximum(_SLIGHT * effect.max(axis=1, initial=0.0), _NOTHING * np.abs(values[0]).max(axis=0, initial=0.0))
    least = np.maximum(least, _ROUND_OFF)
    shares = off / np.maximum(effect, least[:, None])
    shares[[place for place, name in enumerate(of) if name.rpartition(".")[2] in LEFT_OUT]] = 0.0
    time = np.nan
    if times is not None and shares.size:
        course = differences[(slice(None), *np.unravel_index(int(np.argmax(shares)), shares.shape))]
        time = float(times[int(np.argmax(course > _BEGUN * course.max(initial=0.0)))])
    largest = factor * np.max(np.abs(values[1] - values[0]), axis=0, initial=0.0)
    return DerivativeErrors(tuple(of), tuple(by), shares, largest, time)
