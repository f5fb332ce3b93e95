"""Variables and tolerances of error control, and the effect of discontinuities on the error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.coupling.coupled_steps import Stepping
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuError, Port


@dataclass(frozen=True)
class CouplingTolerances:
    """Tolerances of step control.

    Attributes
    ----------
    relative
        Share of a variable's magnitude (of a bond's power) so far.
    absolute
        Share of a variable's nominal value (W, of a bond's power).
    smallest, largest
        Bounds of the steps in s.
    is_absolute_given
        Whether the user has given the absolute one: it then counts for variables without a nominal value as well.
    """

    relative: float
    absolute: float
    smallest: float
    largest: float
    is_absolute_given: bool = False


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


BEGIN, END = "begin of a controlled step", "end of a controlled step"
"""Slots of saved states around a repeatable step."""
_SAME_DEFECT = 0.7  # of the defect in a step twice as long or more


@dataclass(frozen=True)
class Sample:
    """Signals of followed inputs at the start, a quarter, the half, three quarters and the end of a step.

    Attributes
    ----------
    values
        Shape (5, number of signals).
    """

    values: Floats

    def mean(self) -> Floats:
        """Return the means over the step, by Simpson's rule on each half; shape (number of signals,)."""
        return np.array([1.0, 4.0, 2.0, 4.0, 1.0]) @ self.values / 12.0

    def defect(self, held: bool) -> Floats:
        """Return the deviation of signals from an FMU's inputs over half a step, the larger half counting.

        An FMU that holds its inputs gets the value at the beginning, another one the straight line through both ends.
        """
        begin, quarter, middle, last, end = self.values
        if held:
            return np.maximum(np.abs(middle - begin), np.abs(end - middle))
        first, second = quarter - 0.5 * (begin + middle), last - 0.5 * (middle + end)
        return 2.0 * np.maximum(np.abs(first), np.abs(second))


class Suspect(NamedTuple):
    """A rejected step with a possible discontinuity.

    Attributes
    ----------
    end, length
        Of the step in s.
    defect
        How far what is exchanged went off its extrapolation in it.
    """

    end: float
    length: float
    defect: float

    def is_discontinuity(self, length: float, defect: float) -> bool:
        """Return whether a much shorter step in s at the same place has nearly the same error."""
        return length <= 0.5 * self.length and defect >= _SAME_DEFECT * self.defect


class DiscontinuityFinder:
    """Detection of discontinuities in halved steps.

    A step as a whole and its halves miss a jump alike where an FMU gets to know of it in the next step only, or where
    all of them are told its end. What shows it is the exchanged variable itself, which goes off its extrapolation by
    more than the tolerance; how much it matters shows where the step is made once more with inputs that run straight
    from beginning to end: over each half the inputs may have been off by as much.

    Parameters
    ----------
    stepping
        The members that make the steps.
    watched
        What is looked at.
    """

    def __init__(self, stepping: Stepping, watched: Watched) -> None:
        self._stepping, self._watched = stepping, watched
        exchange = stepping.exchange
        driving = sorted({exchange.columns[each.source] for each in exchange.connections})
        self._driving: NDArray[np.intp] = np.array(driving, dtype=np.intp)
        self._held = np.zeros(len(exchange.columns), dtype=bool)
        self._held[exchange.held] = True

    def sample(self, time: float, step: float) -> Sample:
        """Return the followed signals over a step in s."""
        driven = self._stepping.exchange.driven
        inside = [driven.after(time + share * step) for share in (0.0, 0.25, 0.5, 0.75)]
        return Sample(np.array([*inside, driven.before(time + step)]))

    def weights(self, sample: Sample, tolerances: CouplingTolerances) -> Floats:
        """Return the allowed errors of followed signals, shape (number of signals,)."""
        nominals = self._stepping.exchange.driven.nominals()
        return tolerances.absolute * nominals + tolerances.relative * np.abs(sample.values).max(axis=0)

    def defect(self, history: OutputHistory, step: float, end: Floats, weights: Floats) -> float:
        """Return the largest deviation of exchanged variables from their extrapolation, relative to weights."""
        off = np.abs(end - self._stepping.steps.predicted(history, step))[self._driving]
        return float(np.max(off / weights[self._driving], initial=0.0))

    def effect(self, begin: Floats, end: Floats, sample: Sample, time: float, step: float) -> Floats:
        """Return the watched variables at the end of the step with linear inputs.

        Parameters
        ----------
        begin, end
            Outputs at the beginning and at the end of the step that was made, at which the members are and stay.
        sample
            The followed signals in it.
        time, step
            Beginning and length of the step in s.
        """
        self._stepping.save(END, time + step)
        self._stepping.restore(BEGIN)
        exchange = self._stepping.exchange
        begin = np.concatenate([begin, sample.values[0]])
        end = np.concatenate([end, sample.values[-1]])
        rows = exchange.rows
        polynomials = np.zeros((rows, len(begin)))
        polynomials[0] = begin if rows > 1 else 0.5 * (begin + end)
        polynomials[1:2] = end - begin
        given = [member.applied for member in exchange.members]
        for member, applied in zip(exchange.members, given, strict=True):
            otherwise = self._otherwise(member, applied, polynomials, begin, end)
            self._stepping.steps.advance(member, otherwise, time, step)
        self._stepping.algorithm.sweeps += 1
        result = self._watched.read(exchange.read())
        self._stepping.restore(END)
        exchange.release(END)
        return result

    def _otherwise(
        self, member: CoupledInstance, applied: Floats, polynomials: Floats, begin: Floats, end: Floats
    ) -> Floats:
        """Give inputs without intermediate values the value that the member did not receive."""
        chosen = self._held[member.sources]
        if not chosen.any():
            return polynomials
        sources = member.sources[chosen]
        result = polynomials.copy()
        had_end = np.isclose(applied[chosen], end[sources] * member.factors[chosen] + member.offsets[chosen])
        result[0, sources], result[1:, sources] = np.where(had_end, begin[sources], end[sources]), 0.0
        return result
