"""Energy drift of a run, which shows unresolved motion or circuits for any rule."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mbsfmu.modelling.ranges import percent
from mbsfmu.tracing.workspace import Floats

logger = logging.getLogger(__name__)

LARGE_DRIFT = 0.05
"""Drift relative to the exchanged energy at which a warning is given; for a circuit, relative to its stored energy."""
LEAST_DRIFT = 1e-3
"""Drift relative to the kinetic energy, or to the energy through a circuit, below which no warning is given: a rotor
that spins freely exchanges nothing."""
LEAST_SHARE = 1e-6
"""Drift relative to the potential energy, and to the energy scale, below which no warning is given: in static
equilibrium the exchanged energy is mostly round-off.
"""
CIRCUIT_SCALE = 1e-3
"""Energy scale of a circuit in J: 1 mm³ of oil at 1 bar stores a millionth of it."""
WHOLE = 0.9
"""Drift relative to the exchanged energy from which on it may be all that is exchanged, as by a spin that decays."""
DRIFTS = 4
"""Numbers per balance of FMUs, whose steps may be taken back: the first large drift, energy exchanged, time, kinetic
energy."""
DENSE = 16
"""Number of checked communication steps between consecutive powers of two."""

_DRIFT = "energy.drift"
_OTHERS = ("energy.kinetic", "energy.potential", "energy.work", "energy.dissipated")
_CIRCUIT_DRIFT = "hydraulic_energy.drift"
_CIRCUIT_OTHERS = ("hydraulic_energy.stored", "hydraulic_energy.supplied", "hydraulic_energy.dissipated")
HIGHEST = 9
"""Numbers per balance: maxima of T, V, work and loss with negatives; drift that is not counted."""


class Balance(NamedTuple):
    """Names of the energies of one drift.

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
    """Watches the energies of mechanisms and circuits, and warns once of drift.

    Exchanged is the greatest range of kinetic and potential energy, of work and of the loss: the energy of a constant
    spin is not used, and no range depends on where potential energy is zero. Through a circuit flows far more than it
    ever stores, and what it stores is all that steps can get wrong in a moment: its drift is held against the range of
    that, where it is no round-off of what flows. Points that are looked at together are judged by what was exchanged
    until the last of them.

    Parameters
    ----------
    model
        Name of the model.
    names
        Names of the variables in a row; each `energy.drift` among them belongs to a mechanism, and each
        `hydraulic_energy.drift` to a circuit.
    remedy
        What to do.
    scales
        Energy scale in J of each mechanism, in the order of their names.

    Attributes
    ----------
    balances
        What is followed.
    scales
        As given, by balance; `CIRCUIT_SCALE` of circuits.
    size
        How many numbers it remembers.
    numbers
        These: communication steps, and by balance the highest energies.
    """

    def __init__(self, model: str, names: Sequence[str], remedy: str, scales: Sequence[float]) -> None:
        self._model = model
        self.balances = [
            *(Balance(*(prefix + each for each in (_DRIFT, *_OTHERS))) for prefix in _prefixes(_DRIFT, names)),
            *(
                Balance(prefix + _CIRCUIT_DRIFT, None, *(prefix + each for each in _CIRCUIT_OTHERS))
                for prefix in _prefixes(_CIRCUIT_DRIFT, names)
            ),
        ]
        circuits = len(self.balances) - len(scales)
        self.scales = (*scales, *[CIRCUIT_SCALE] * circuits)
        self._places = [[None if name is None else names.index(name) for name in each] for each in self.balances]
        self._remedy = remedy
        self.size = 1 + HIGHEST * len(self.balances)
        self.begin()

    def begin(self) -> None:
        """Start a new run without warnings."""
        self.numbers = np.zeros(self.size)
        self._highest[:, :-1] = -np.inf
        self._warned: set[str] = set()

    @property
    def _highest(self) -> Floats:
        """View of the maxima so far in J, by balance; the last column is drift that is not counted."""
        return self.numbers[1:].reshape(len(self.balances), HIGHEST)

    @property
    def begun(self) -> bool:
        """Whether a point of the run was checked."""
        return not self.balances or bool(np.isfinite(self._highest).all())

    def due(self) -> bool:
        """Count a communication step, and return whether it is to be checked."""
        self.numbers[0] += 1
        count = int(self.numbers[0])
        return bool(self.balances) and count % max(1, (1 << count.bit_length() - 1) // DENSE) == 0

    def shift(self, row: Floats, sign: float) -> None:
        """Exclude energy from parameter changes from the drift.

        Called with the row before and -1, and with the row after and 1.
        """
        for highest, places in zip(self._highest, self._places, strict=True):
            highest[-1] += sign * row[places[0]]

    def follow(self, times: Floats, rows: Floats) -> None:
        """Check the next points of a run, and log drifts.

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
        """Check the next points of a run, and yield a warning for each new drift.

        Parameters
        ----------
        times, rows
            Times in s, shape (k,), and values, shape (k, number of variables).
        """
        watched = zip(self._highest, self._places, self.balances, self.scales, strict=True)
        for highest, places, (name, moving, *_), scale in watched:
            still = np.zeros(len(rows))
            drift, kinetic, potential, work, loss = (still if each is None else rows[:, each] for each in places)
            followed = np.stack([kinetic, -kinetic, potential, -potential, work, -work, loss, -loss])
            followed = np.maximum(np.maximum.accumulate(followed, axis=1), highest[:-1, np.newaxis])
            highest[:-1] = followed[:, -1]
            # What is exchanged later counts too: a machine that begins to move has exchanged little as yet.
            last = followed[:, -1]
            ranges = last[::2] + last[1::2]
            exchanged = float(ranges.max())
            much = LARGE_DRIFT * exchanged if moving else LARGE_DRIFT * float(ranges[1])
            much = max(much, LEAST_DRIFT * float(last[0] if moving else exchanged))
            least = LEAST_SHARE * max(last[2], last[3], scale)
            magnitude = np.abs(drift - highest[-1])
            large = np.flatnonzero(magnitude > max(much, least))
            if len(large) and name not in self._warned:
                self._warned.add(name)
                what, doubted = ("motion or the power of loads", "either") if moving else ("circuit", "pressures")
                most, energy = float(magnitude.max()), float(last[0])
                share = f"{percent(most / exchanged)} of" if most < WHOLE * exchanged else "no less than"
                spins = WHOLE * energy > max(exchanged, most)
                spin = f" and {percent(most / energy)} of the kinetic energy" if spins else ""
                yield (
                    f"{self._model}: from t = {times.item(int(large[0])):.6g} s on the {what} is not resolved: {name} "
                    f"comes to {most:.3g} J, {share} the {exchanged:.3g} J exchanged{spin}, and {doubted} may be off "
                    f"by far more than that: {self._remedy}"
                )


def _prefixes(suffix: str, names: Sequence[str]) -> list[str]:
    """Return the prefixes of a name in all names that equal it or end with it."""
    return [name.removesuffix(suffix) for name in names if name == suffix or name.endswith(f".{suffix}")]
