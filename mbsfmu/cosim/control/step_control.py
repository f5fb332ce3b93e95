"""Step control: how long communication steps are, and which are made again."""

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
    """A step that was tried.

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
    """Estimates errors of steps, and proposes the length of the next one.

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
        """The power q with which the estimate falls with the step."""

    def attempt(self, history: OutputHistory, time: float, step: float) -> StepAttempt:
        """Make a step in s and estimate its error; the history stays as it is.

        Raises
        ------
        SimulationError
            When a unit refuses.
        """
        if self.returns:
            self.stepping.save(BEGIN, time)
        return self._attempt(history, time, step)

    @abstractmethod
    def _attempt(self, history: OutputHistory, time: float, step: float) -> StepAttempt: ...

    @abstractmethod
    def _take(self, attempt: StepAttempt, time: float, step: float) -> None:
        """Remember what the next estimates need of an attempt of a step from a time, both in s."""

    def undo(self) -> None:
        """Go back to before the last attempt."""
        self.stepping.restore(BEGIN)

    def accept(self, attempt: StepAttempt, time: float, step: float) -> float:
        """Take an attempt of a step from a time in s for good; return the factor for the next step."""
        self._take(attempt, time, step)
        ratio = max(attempt.ratio, _NO_ERROR)
        factor = _SAFETY * ratio ** (-(_INTEGRAL + _PROPORTIONAL) / self.power)
        factor *= self._last ** (_PROPORTIONAL / self.power)
        self._last = max(ratio, 1e-4)
        return min(max(factor, _SMALLEST_FACTOR), _LARGEST_FACTOR)

    def reject(self, attempt: StepAttempt) -> float:
        """Return the factor for the step that is to be made again."""
        return min(max(_SAFETY * attempt.ratio ** (-1.0 / self.power), _SMALLEST_FACTOR), _SAFETY)

    def restart(self) -> None:
        """Forget the past after a jump of an input."""
        self._last = 1.0

    def restart_run(self) -> None:
        """Take what the user has set in the members where the run is."""
        self.restart()

    def first_step(self, step: float) -> float:
        """Return the length in s of the first step, where one is wanted."""
        return step

    def notes(self) -> list[str]:
        """Return sentences for the user on what was found, at the end of the run."""
        return []
