"""Step control: lengths of communication steps, and rejection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from mbsfmu.cosim.control.discontinuities import BEGIN
from mbsfmu.cosim.control.tolerances import CouplingTolerances
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.stepping import CommunicationPoint, Stepping

CONTROLS = ("fixed", "error", "energy")
_SAFETY = 0.9
_SMALLEST_FACTOR, _LARGEST_FACTOR = 0.2, 2.0
_INTEGRAL, _PROPORTIONAL = 0.3, 0.4
_NO_ERROR = 1e-12


@dataclass
class StepAttempt:
    """A trial step.

    Attributes
    ----------
    points
        The communication points that it leads to.
    history
        The history that ends with them.
    ratio
        Estimated error as a share of what is allowed.
    defect
        How far what is exchanged went off its extrapolation, in shares of the tolerance; where it was looked at.
    jumps
        Whether something jumped in it, so that the past says nothing of what comes.
    """

    points: list[CommunicationPoint]
    history: OutputHistory
    ratio: float
    defect: float = 0.0
    jumps: bool = False


class Controller(ABC):
    """Base of step controllers: error estimate and next step length.

    A PI controller with Gustafsson's gains, h ← 0.9 h r^(−0.7/q) r₋₁^(0.4/q): r is the estimate as a share of what is
    allowed, r₋₁ the one before, r ~ h^q.

    Parameters
    ----------
    stepping
        The members that make the steps.
    tolerances
        What is allowed.
    returns
        Whether a step can be made again.
    """

    CHANGES: ClassVar[tuple[str, ...]] = ("_last",)

    def __init__(self, stepping: Stepping, tolerances: CouplingTolerances, returns: bool) -> None:
        self.stepping = stepping
        self.tolerances = tolerances
        self.returns = returns
        self._last = 1.0

    @property
    @abstractmethod
    def power(self) -> float:
        """Exponent q of the error estimate as a function of the step."""

    def attempt(self, history: OutputHistory, time: float, step: float) -> StepAttempt:
        """Make a step in s and estimate its error; the history is unchanged.

        Raises
        ------
        SimulationError
            When an FMU refuses.
        """
        if self.returns:
            self.stepping.save(BEGIN, time)
        return self._attempt(history, time, step)

    @abstractmethod
    def _attempt(self, history: OutputHistory, time: float, step: float) -> StepAttempt: ...

    @abstractmethod
    def _take(self, attempt: StepAttempt, time: float, step: float) -> None:
        """Store the data of a trial step from a time for later estimates, both in s."""

    def undo(self) -> None:
        """Undo the last trial step."""
        self.stepping.restore(BEGIN)

    def accept(self, attempt: StepAttempt, time: float, step: float) -> float:
        """Accept a trial step from a time in s; return the factor for the next step."""
        self._take(attempt, time, step)
        ratio = max(attempt.ratio, _NO_ERROR)
        factor = _SAFETY * ratio ** (-(_INTEGRAL + _PROPORTIONAL) / self.power)
        factor *= self._last ** (_PROPORTIONAL / self.power)
        self._last = max(ratio, 1e-4)
        return min(max(factor, _SMALLEST_FACTOR), _LARGEST_FACTOR)

    def reject(self, attempt: StepAttempt) -> float:
        """Return the factor for a rejected step."""
        return min(max(_SAFETY * attempt.ratio ** (-1.0 / self.power), _SMALLEST_FACTOR), _SAFETY)

    def restart(self) -> None:
        """Discard the history after a discontinuity of an input."""
        self._last = 1.0

    def restart_run(self) -> None:
        """Apply values set by the user to the members in the run."""
        self.restart()

    def first_step(self, step: float) -> float:
        """Return the length in s of the first step, if prescribed."""
        return step

    def notes(self) -> list[str]:
        """Return messages on the findings at the end of the run."""
        return []
