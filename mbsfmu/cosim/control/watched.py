"""Variables and tolerances of error control."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.control.tolerances import CouplingTolerances
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuError, Port

_LEAST_NOMINAL = 1e-7
"""Taken for the nominal value of a variable of which its FMU gives none, unless there is an absolute tolerance of the
user's own: the magnitude of the run decides, down to a tenth of a micrometre."""
_YOUNG = 5.0
"""Horizons after a start or a jump within which slopes tell magnitudes; then those of the run do."""
_NOTHING = 1e-7
"""Share of a declared nominal value, 1 where there is none, below which a magnitude is that of round-off."""


class Watched:
    """Outputs of all members, and the continuous states in their model structures.

    Outputs alone may hide an error for a while: a position shows what a step has done wrong to the velocity one step
    later, by a power of the step less.

    Parameters
    ----------
    exchange
        The members.

    Attributes
    ----------
    names
        `unit.variable` of each value: all outputs as the exchange has them, then the states.
    seen
        Names of the FMUs whose states are among them.
    unread
        States that an FMU names and does not let be read, as `unit.variable`.
    """

    def __init__(self, exchange: CouplingData) -> None:
        self._exchange = exchange
        self.names = [".".join(name) for name in exchange.names]
        self.seen: set[str] = set()
        self.unread: list[str] = []
        self._ports: list[Port] = []
        self._owners: list[CoupledInstance] = []
        self._held = set(exchange.held)
        declared = [exchange.member(name).instance.variables[variable].nominal for name, variable in exchange.names]
        for member in exchange.members:
            instance = member.instance
            states = [name for name in instance.states if instance.kinds[name] == "Real"]
            hidden = [name for name in states if (instance.name, name) not in exchange.columns]
            port = instance.port(hidden)
            try:
                port.read()
            except FmuError:
                self.unread += [f"{instance.name}.{name}" for name in hidden]
                continue
            if states:
                self.seen.add(instance.name)
            if hidden:
                self._ports.append(port)
                self._owners += [member] * len(hidden)
                self.names += [f"{instance.name}.{name}" for name in hidden]
                declared += [instance.variables[name].nominal for name in hidden]
        self._declared = np.array([abs(each or 0.0) for each in declared])

    def columns(self, member: CoupledInstance) -> NDArray[np.intp]:
        """Return which variables are continuous ones of a member."""
        outputs = [column for column in range(member.place.start, member.place.stop) if column not in self._held]
        states = [index for index, owner in enumerate(self._owners, len(self._exchange.names)) if owner is member]
        return np.array([*outputs, *states], dtype=np.intp)

    def __len__(self) -> int:
        return len(self.names)

    def read(self, outputs: Floats) -> Floats:
        """Return read outputs, followed by the present states, in a new array."""
        return np.concatenate([outputs, *(port.read() for port in self._ports)])

    def nominals(self, otherwise: float) -> Floats:
        """Return the nominal value of each variable, with a default for undeclared ones."""
        return np.where(self._declared > 0.0, self._declared, otherwise)


class ErrorWeights:
    """Allowed error of each watched variable: relative to its magnitude so far, plus relative to its nominal value.

    A force that begins at zero has no magnitude yet. In the first time after the start and after jumps, the magnitude
    of a variable is what its slope and its curvature make of it within a horizon, as far as that is more.

    Parameters
    ----------
    watched
        The variables.
    start
        Their values at the start.
    tolerances
        What is allowed.
    horizon
        In s.
    bends
        Of each variable, whether its curvature counts: differences of what is off by as much in every step have one
        that is not its own.
    """

    CHANGES: ClassVar = ("_magnitudes", "_errors", "_ahead", "_since")

    def __init__(
        self,
        watched: Watched,
        start: Floats,
        tolerances: CouplingTolerances,
        horizon: float,
        bends: NDArray[np.bool_] | None = None,
    ) -> None:
        self._horizon, self._bends = horizon, 1.0 if bends is None else bends.astype(float)
        self._ahead: Floats | None = None
        self._since: float | None = None
        self._watched = watched
        self._nominals = watched.nominals(1.0 if tolerances.is_absolute_given else _LEAST_NOMINAL)
        self._relative, self._absolute = tolerances.relative, tolerances.absolute
        self._magnitudes, self._errors = np.abs(start), np.zeros(len(start))

    def of(self, *points: Floats, step: float = 0.0) -> Floats:
        """Return the allowed error of each variable, shape (watched,).

        Parameters
        ----------
        points
            Values that the run may come to next: at the beginning, the middle and the end of a step, or at its end.
        step
            Length of the step in s.
        """
        magnitudes = np.maximum(self._magnitudes, np.abs(points[-1]))
        ahead = self._ahead
        if ahead is None and len(points) == 3:
            ahead = self._expected(points, step)
        if ahead is not None:
            magnitudes = np.maximum(magnitudes, ahead)
        return self._absolute * self._nominals + self._relative * magnitudes

    def _expected(self, points: Sequence[Floats], step: float) -> Floats:
        """Return the expected magnitudes within the horizon after a step in s."""
        begin, middle, end = points
        share = self._horizon / step
        return (
            np.abs(end)
            + np.abs(end - begin) * share
            + 2.0 * self._bends * np.abs(begin - 2.0 * middle + end) * share**2
        )

    def take(self, *points: Floats, time: float = 0.0, step: float = 0.0) -> None:
        """Accept values after a step from a time in s; points and step are those of `of`."""
        np.maximum(self._magnitudes, np.abs(points[-1]), out=self._magnitudes)
        if len(points) < 3:
            return
        self._since = time if self._since is None else self._since
        is_young = time + step - self._since < _YOUNG * self._horizon
        self._ahead = self._expected(points, step) if is_young else np.zeros_like(self._magnitudes)

    def take_errors(self, errors: Floats) -> None:
        """Accept estimated errors of the variables."""
        np.maximum(self._errors, errors, out=self._errors)

    def restart(self) -> None:
        """Discard the history at a discontinuity."""
        self._ahead = self._since = None

    def note(self) -> str | None:
        """Return a message if the absolute tolerance allowed more than the relative one."""
        allowed = self._relative * self._magnitudes
        is_small = (self._errors > allowed) & (self._errors <= self.of(self._magnitudes))
        is_small &= self._magnitudes > _NOTHING * self._watched.nominals(1.0)
        if not is_small.any():
            return None
        shares = np.where(is_small, self._errors / np.where(is_small, self._magnitudes, 1.0), 0.0)
        worst = int(np.argmax(shares))
        least = self._absolute * self._nominals[worst]
        return (
            f"the absolute tolerance decided for {self._watched.names[worst]}: it stays below "
            f"{self._magnitudes[worst]:.2g}, {least:.2g} of it may be wrong by its nominal value "
            f"{self._nominals[worst]:.2g}, and {shares[worst]:.2g} of its magnitude is estimated to be; "
            "a smaller absolute tolerance holds it nearer"
        )
