"""How exact derivatives of a run are whose step sizes were chosen for the run alone."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from mbsfmu.integration.error_measure import LEFT_OUT
from mbsfmu.tracing.workspace import Floats

_LOGGER = logging.getLogger(__name__)
_TOLD = 1e-2
"""Share of the largest derivative from which on its error is told."""
_SLIGHT, _NOTHING, _ROUND_OFF = 1e-3, 1e-9, 1e-12
"""Effects of parameters below this share of the largest one, and of the value itself, are as good as none, and so are
those below the last one in SI units, which is round-off of what is zero."""


def tell_inexact(
    method: str, of: Sequence[str], by: Sequence[str], given: Floats, found: tuple[Floats, Floats], values: Floats
) -> None:
    """Warn in the log where derivatives by a method and by its embedded formula, in the same steps, differ by much.

    Steps are chosen for the error of the run: where that is at rest, or nearly so, they are far too long for what a
    parameter would do to it, and a tighter tolerance changes nothing.

    Parameters
    ----------
    method
        Name of the solver.
    of, by
        What is differentiated, and by what; what is zero but for errors is left out.
    given
        Values of the latter, shape (by,); effects are compared for a change by as much, or by one where it is zero.
    found
        Derivatives by the method and by its embedded formula, each of shape (times, of, by).
    values
        What is differentiated, shape (times, of).
    """
    scale = np.where(given == 0.0, 1.0, np.abs(given))
    effect, off = (np.max(np.abs(each), axis=0, initial=0.0) * scale for each in (found[0], found[1] - found[0]))
    least = np.maximum(_SLIGHT * effect.max(axis=1, initial=0.0), _NOTHING * np.abs(values).max(axis=0, initial=0.0))
    least = np.maximum(least, _ROUND_OFF)
    share = off / np.maximum(effect, least[:, None])
    share[[place for place, name in enumerate(of) if name.rpartition(".")[2] in LEFT_OUT]] = 0.0
    if not share.size or share.max() <= _TOLD:
        return
    row, column = divmod(int(np.argmax(share)), len(by))
    _LOGGER.warning(
        "the derivative of %s by %s is uncertain by %s, for steps of '%s' are chosen for the run alone: take a smaller "
        "tolerance or, above all where the machine is at rest, solver='trapezoidal'",
        *(of[row], by[column], f"{100.0 * share.max():.2g} %" if share.max() < 1.0 else "as much as it is", method),
    )
