"""Whether the energy of a run drifts: what tells steps that do not resolve the motion, whatever the rule."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from mbsfmu.formulations.workspace import Floats

logger = logging.getLogger(__name__)

LARGE_DRIFT = 0.05
"""Share of the energy turned over from which on drift is told."""
LEAST_SHARE = 1e-6
"""Share of the potential energy below which drift is never told: at rest little else is turned over than round-off."""
LEAST_DRIFT = 1e-9
"""In J, below which drift is never told."""
DENSE = 16
"""Of communication steps, so many are looked at between one power of two and the next: few in all."""

_DRIFT = "energy.drift"
_OTHERS = ("energy.kinetic", "energy.potential", "energy.work", "energy.dissipated")
HIGHEST = 8
"""Numbers by mechanism: what was highest of T and of V, work and loss with their negatives; drift that is none."""


class EnergyWatch:
    """Follows the energies of the mechanisms of a run, and tells once where one of them drifts.

    Turned over is the greatest of the kinetic energy, of the ranges of potential energy and of work, and of the loss: a
    range does not depend on where potential energy is zero. Points that are looked at together are judged by what
    was turned over until the last of them.

    Parameters
    ----------
    model
        Name of the model.
    names
        Names of the variables in a row; each `energy.drift` among them belongs to a mechanism.
    remedy
        What to do.

    Attributes
    ----------
    mechanisms
        Names of drift, T, V, work and loss of each mechanism.
    size
        How many numbers it remembers.
    numbers
        These: communication steps, and by mechanism the highest energies.
    """

    def __init__(self, model: str, names: Sequence[str], remedy: str) -> None:
        self._model = model
        prefixes = [name.removesuffix(_DRIFT) for name in names if name == _DRIFT or name.endswith(f".{_DRIFT}")]
        self.mechanisms = [tuple(prefix + each for each in (_DRIFT, *_OTHERS)) for prefix in prefixes]
        self._places = [[names.index(name) for name in each] for each in self.mechanisms]
        self._remedy = remedy
        self.size = 1 + HIGHEST * len(self.mechanisms)
        self.begin()

    def begin(self) -> None:
        """Start anew with a run; nothing has been told of it."""
        self.numbers = np.zeros(self.size)
        self._highest[:, :-1] = -np.inf
        self._told: set[str] = set()

    @property
    def _highest(self) -> Floats:
        """A view of what was highest until now, in J, by mechanism; the last column is drift that counts for none."""
        return self.numbers[1:].reshape(len(self.mechanisms), HIGHEST)

    @property
    def begun(self) -> bool:
        """Whether a point of the run was looked at."""
        return not self.mechanisms or bool(np.isfinite(self._highest).all())

    def due(self) -> bool:
        """Count a communication step, and return whether it is one to look at."""
        self.numbers[0] += 1
        count = int(self.numbers[0])
        return bool(self.mechanisms) and count % max(1, (1 << count.bit_length() - 1) // DENSE) == 0

    def shift(self, before: Floats, after: Floats) -> None:
        """Let energy that a changed parameter brought in or took out be no drift: rows before and after it."""
        for highest, places in zip(self._highest, self._places, strict=True):
            highest[-1] += after[places[0]] - before[places[0]]

    def follow(self, times: Floats, rows: Floats) -> None:
        """Look at the next points of a run.

        Parameters
        ----------
        times, rows
            Times in s, shape (k,), and values, shape (k, number of variables).
        """
        for highest, places, (name, *_) in zip(self._highest, self._places, self.mechanisms, strict=True):
            drift, kinetic, potential, work, loss = rows[:, places].T
            followed = np.stack([kinetic, potential, -potential, work, -work, loss, -loss])
            followed = np.maximum(np.maximum.accumulate(followed, axis=1), highest[:-1, np.newaxis])
            highest[:-1] = followed[:, -1]
            # What is turned over later counts too: a machine that begins to move has turned over little as yet.
            last = followed[:, -1]
            turned_over = float(max(last[0], last[1] + last[2], last[3] + last[4], last[5] + last[6]))
            least = LEAST_SHARE * max(last[1], last[2]) + LEAST_DRIFT
            magnitude = np.abs(drift - highest[-1])
            large = np.flatnonzero(magnitude > max(LARGE_DRIFT * turned_over, least))
            if len(large) and name not in self._told:
                self._told.add(name)
                self._tell(name, times.item(int(large[0])), float(magnitude.max()), turned_over)

    def _tell(self, name: str, time: float, drift: float, turned_over: float) -> None:
        logger.warning(
            "%s: from t = %.6g s on the motion is not resolved: %s comes to %.3g J, %.2g %% of the %.3g J turned over, "
            "and the motion may be off by far more than that: %s",
            self._model,
            time,
            name,
            drift,
            100.0 * drift / turned_over if turned_over else np.inf,
            turned_over,
            self._remedy,
        )
