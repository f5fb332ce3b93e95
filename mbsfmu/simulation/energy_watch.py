"""Whether the energy of a run drifts: what tells steps that do not resolve a motion or a circuit, whatever the rule."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)

LARGE_DRIFT = 0.05
"""Share of the energy turned over from which on drift is told; of a circuit, of what it stores."""
CIRCUIT_DRIFT = 1e-3
"""Share of the energy that a circuit turns over, most of which flows through, below which drift is not told."""
LEAST_SHARE = 1e-6
"""Share of the potential energy, and of what weights would do over the size of a machine, below which drift is never
told: at rest little else is turned over than round-off."""
LEAST_DRIFT = 1e-9
"""In J, below which drift is never told."""
DENSE = 16
"""Of communication steps, so many are looked at between one power of two and the next: few in all."""

_DRIFT = "energy.drift"
_OTHERS = ("energy.kinetic", "energy.potential", "energy.work", "energy.dissipated")
_CIRCUIT_DRIFT = "hydraulic_energy.drift"
_CIRCUIT_OTHERS = ("hydraulic_energy.stored", "hydraulic_energy.supplied", "hydraulic_energy.dissipated")
HIGHEST = 8
"""Numbers by balance: what was highest of T and of V, work and loss with their negatives; drift that is none."""


class Balance(NamedTuple):
    """The names of the energies that one drift belongs to.

    Attributes
    ----------
    drift
        Of the drift.
    kinetic
        Of T; None of a circuit.
    potential, work, dissipated
        Of V, work and loss; of a circuit, of what it stores, is supplied with and loses.
    """

    drift: str
    kinetic: str | None
    potential: str
    work: str
    dissipated: str


class EnergyWatch:
    """Follows the energies of the mechanisms and circuits of a run, and tells once where one of them drifts.

    Turned over is the greatest of the kinetic energy, of the ranges of potential energy and of work, and of the loss: a
    range does not depend on where potential energy is zero. Through a circuit flows far more than it ever stores, and
    what it stores is all that steps can get wrong in a moment: its drift is held against the range of that, where it is
    no round-off of what flows. Points that are looked at together are judged by what was turned over until the last of
    them.

    Parameters
    ----------
    model
        Name of the model.
    names
        Names of the variables in a row; each `energy.drift` among them belongs to a mechanism, and each
        `hydraulic_energy.drift` to a circuit.
    remedy
        What to do.
    lifts
        Work in J of the weights of each mechanism over its size, in the order of their names.

    Attributes
    ----------
    balances
        What is followed.
    lifts
        As given, by balance; zero of circuits.
    size
        How many numbers it remembers.
    numbers
        These: communication steps, and by balance the highest energies.
    """

    def __init__(self, model: str, names: Sequence[str], remedy: str, lifts: Sequence[float]) -> None:
        self._model = model
        self.balances = [
            *(Balance(*(prefix + each for each in (_DRIFT, *_OTHERS))) for prefix in _prefixes(_DRIFT, names)),
            *(
                Balance(prefix + _CIRCUIT_DRIFT, None, *(prefix + each for each in _CIRCUIT_OTHERS))
                for prefix in _prefixes(_CIRCUIT_DRIFT, names)
            ),
        ]
        circuits = len(self.balances) - len(lifts)
        self.lifts = (*lifts, *[0.0] * circuits)
        self._places = [[None if name is None else names.index(name) for name in each] for each in self.balances]
        self._remedy = remedy
        self.size = 1 + HIGHEST * len(self.balances)
        self.begin()

    def begin(self) -> None:
        """Start anew with a run; nothing has been told of it."""
        self.numbers = np.zeros(self.size)
        self._highest[:, :-1] = -np.inf
        self._warned: set[str] = set()

    @property
    def _highest(self) -> Floats:
        """A view of what was highest until now, in J, by balance; the last column is drift that counts for none."""
        return self.numbers[1:].reshape(len(self.balances), HIGHEST)

    @property
    def begun(self) -> bool:
        """Whether a point of the run was looked at."""
        return not self.balances or bool(np.isfinite(self._highest).all())

    def due(self) -> bool:
        """Count a communication step, and return whether it is one to look at."""
        self.numbers[0] += 1
        count = int(self.numbers[0])
        return bool(self.balances) and count % max(1, (1 << count.bit_length() - 1) // DENSE) == 0

    def shift(self, row: Floats, sign: float) -> None:
        """Let energy that parameters bring in or take out while they change be no drift.

        Called with the row before and -1, and with the one after and 1.
        """
        for highest, places in zip(self._highest, self._places, strict=True):
            highest[-1] += sign * row[places[0]]

    def follow(self, times: Floats, rows: Floats) -> None:
        """Look at the next points of a run, and tell in the log what drifts.

        Parameters
        ----------
        times, rows
            Times in s, shape (k,), and values, shape (k, number of variables).
        """
        for sentence in self.diagnostics(times, rows):
            logger.warning("%s", sentence)

    @property
    def columns(self) -> set[int]:
        """Where in a row the variables stand that it looks at."""
        return {place for places in self._places for place in places if place is not None}

    def diagnostics(self, times: Floats, rows: Floats) -> Iterator[str]:
        """Look at the next points of a run, and yield a sentence on each energy that drifts and was not told of.

        Parameters
        ----------
        times, rows
            Times in s, shape (k,), and values, shape (k, number of variables).
        """
        watched = zip(self._highest, self._places, self.balances, self.lifts, strict=True)
        for highest, places, (name, moving, *_), lift in watched:
            still = np.zeros(len(rows))
            drift, kinetic, potential, work, loss = (still if each is None else rows[:, each] for each in places)
            followed = np.stack([kinetic, potential, -potential, work, -work, loss, -loss])
            followed = np.maximum(np.maximum.accumulate(followed, axis=1), highest[:-1, np.newaxis])
            highest[:-1] = followed[:, -1]
            # What is turned over later counts too: a machine that begins to move has turned over little as yet.
            last = followed[:, -1]
            stored = float(last[1] + last[2])
            turned_over = float(max(last[0], stored, last[3] + last[4], last[5] + last[6]))
            much = LARGE_DRIFT * turned_over if moving else max(LARGE_DRIFT * stored, CIRCUIT_DRIFT * turned_over)
            least = LEAST_SHARE * max(last[1], last[2], lift) + LEAST_DRIFT
            magnitude = np.abs(drift - highest[-1])
            large = np.flatnonzero(magnitude > max(much, least))
            if len(large) and name not in self._warned:
                self._warned.add(name)
                what = ("motion", "the motion") if moving else ("circuit", "pressures")
                yield self._sentence(name, what, times.item(int(large[0])), float(magnitude.max()), turned_over)

    def _sentence(self, name: str, what: tuple[str, str], time: float, drift: float, turned_over: float) -> str:
        share = 100.0 * drift / turned_over if turned_over else np.inf
        return (
            f"{self._model}: from t = {time:.6g} s on the {what[0]} is not resolved: {name} comes to {drift:.3g} J, "
            f"{share:.2g} % of the {turned_over:.3g} J turned over, and {what[1]} may be off by far more than that: "
            f"{self._remedy}"
        )


def _prefixes(suffix: str, names: Sequence[str]) -> list[str]:
    """Return what stands before a name, or nothing, in each name that is it or ends with it."""
    return [name.removesuffix(suffix) for name in names if name == suffix or name.endswith(f".{suffix}")]
