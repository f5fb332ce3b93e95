"""Base class of solvers, which advance a state over an interval, and steps past a requested stop.

Steps past a requested stop, stored in the state and interpolated until they end.

Importers request short communication steps of FMUs whose internal steps would be longer. While no variable is set
between two of these, a solver with an interpolant may step past the requested time, up to the next discontinuity of an
input or update of a block; the following communication points are interpolated. If a variable is set, the run continues
from the present state, and the rest of the step is discarded; FMUs do the same.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.registry import Registry
from mbsfmu.base.times import count_steps
from mbsfmu.formulations.formulation import Formulation, StepKind
from mbsfmu.integration.error_measure import LARGE_ERROR, NOT_ESTIMATED, ErrorEstimate, ErrorRecord
from mbsfmu.modelling.parameters import percent
from mbsfmu.stepping.adaptive import Attempt
from mbsfmu.stepping.iteration import IterationCount
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats

HALVINGS = 8
"""Largest number of halvings of a failed fixed step."""
LOOSE = 10.0
"""Tolerance relative to the default of the solver up to which errors of runs stay below `LARGE_ERROR` of ranges: on the
built-in models ten times the default gives up to 6e-3, a hundred times 6e-2 and more."""


class Inputs(Protocol):
    """Values of all inputs within the interval."""

    def __call__(self, time: float, /) -> Floats:
        """Return the values at a time in s."""
        ...

    def slopes(self, time: float) -> Floats:
        """Return the time derivatives of the inputs."""
        ...


def substeps(begin: float, end: float, most: float) -> Iterator[tuple[float, float]]:
    """Yield start and size in s of equal steps of an interval, at most `most` long."""
    count = int(count_steps(begin, end, most))
    step = (end - begin) / count
    for index in range(count):
        yield begin + index * step, step


@dataclass
class Statistics:
    """Run statistics.

    Attributes
    ----------
    steps
        Internal steps that were accepted.
    newton_total, newton_max
        Newton iterations over all accepted steps, and in the worst one.
    iteration_matrices
        Derivatives of the equations of a step that these have taken.
    failures
        Steps whose iteration did not converge.
    retries
        Steps that were halved and done again.
    rhs_evaluations
        Evaluations of the right-hand side by explicit solvers and Rosenbrock methods: in stages, and to find the first
        step. The rates where a step of a Rosenbrock method begins belong to the state there, and are not counted.
    repartitions
        How often the choice of independent coordinates changed.
    embedded_distance
        Of `rk4`: sum over the steps of their largest errors, as a share of the magnitude of what is integrated, its
        nominal value at least; zero of other solvers.
    iterations
        What a formulation's own iterations took, by their names.
    """

    steps: int = 0
    newton_total: int = 0
    newton_max: int = 0
    iteration_matrices: int = 0
    failures: int = 0
    retries: int = 0
    rhs_evaluations: int = 0
    repartitions: int = 0
    embedded_distance: float = 0.0
    iterations: dict[str, IterationCount] = field(default_factory=dict)

    @property
    def newton_mean(self) -> float:
        """Newton iterations per step."""
        return self.newton_total / self.steps if self.steps else 0.0


@dataclass(frozen=True)
class StepWork:
    """Bound on the work of an internal step.

    Attributes
    ----------
    residuals
        Evaluations of the equations of the step.
    jacobians
        Jacobians, each factorized once.
    solutions
        Linear systems solved with these.
    """

    residuals: int
    jacobians: int
    solutions: int


class StepError(SimulationError):
    """Failed step.

    Attributes
    ----------
    state
        Where it began.
    """

    def __init__(self, message: str, state: State) -> None:
        super().__init__(message)
        self.state = state


@dataclass
class Solver(ABC):
    """Base class of solvers.

    A derived class with names is registered by them.

    Attributes
    ----------
    formulation
        The formulation whose states it advances.
    step
        Largest internal step in s of fixed-step solvers.
    statistics
        Counts, added to by every call.
    step_ends
        Gets the ends of the steps of runs in s, from Rosenbrock methods; None where nobody asks.
    """

    names: ClassVar[tuple[str, ...]]
    """Names of the solver."""
    options: ClassVar[tuple[str, ...]] = ()
    """Names of its own options."""
    tolerance: ClassVar[float] = math.inf
    """Default of the relative and absolute tolerance."""
    remembering: ClassVar[tuple[str, ...]] = ()
    """Names of multistep methods, which cannot continue after a change of the history."""

    kind: ClassVar[StepKind] = StepKind.EXPLICIT
    """Kind of its steps."""
    order: ClassVar[int] = 2
    """Order with equal steps: half the step reduces the error by two to this power."""

    formulation: Formulation
    step: float
    statistics: Statistics = field(default_factory=Statistics)
    step_ends: list[float] | None = field(default=None, kw_only=True)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in cls.__dict__.get("names", ()):
            SOLVERS.add(name, cls)

    @classmethod
    def of(cls, name: str, formulation: Formulation, step: float, **options: Any) -> Self:  # noqa: ARG003 - of most
        """Return the solver of a name with its own options."""
        return cls(formulation, step, **options)

    @classmethod
    def closest_match(cls, name: str) -> str:
        """Return the method that a generic name means."""
        return name

    @property
    def most_work(self) -> StepWork | None:
        """Bound on the work of an internal step; None where there is none."""
        return None

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the solver."""

    @property
    def tolerances(self) -> Floats:
        """Relative and absolute tolerance, shape (2,); zero without error control."""
        return np.zeros(2)

    @tolerances.setter  # noqa: B027 - equal steps take no notice
    def tolerances(self, tolerances: Floats) -> None:
        pass

    @property
    def error_record(self) -> ErrorRecord | None:
        """Error record of the run; None without an error estimate."""
        return None

    @property
    def not_estimated(self) -> ErrorEstimate:
        """Estimate of a run without an error record: none, which is a warning where tolerances are loose."""
        loose = self.tolerances.max() > LOOSE * self.tolerance
        return ErrorEstimate(None, None, self.loose) if loose else NOT_ESTIMATED

    @property
    def loose(self) -> str:
        """What is to be said of a run with loose tolerances, whose error nobody estimates."""
        return (
            f"the error is not estimated, and may be more than {percent(LARGE_ERROR)} with tolerances of {self.name} "
            f"above {LOOSE * self.tolerance:g}, which are those of a single step"
        )

    @property
    def smaller_error(self) -> str:
        """Advice that makes the error of steps smaller."""
        return f"take smaller steps, or {self.chosen_steps}"

    @property
    def chosen_steps(self) -> str:
        """What chooses steps, in words."""
        chosen = self.formulation.has_explicit_form
        return "a solver that chooses them" if chosen else "the formulation double-step, whose solver chooses them"

    @property
    def more_accurate(self) -> str:
        """Advice for a smaller error."""
        advice = self.smaller_error
        return f"{advice}, such as rodas5p" if advice.endswith("a solver that chooses them") else advice

    @property
    def passes_change_points(self) -> str:
        """Advice that leads past a change point."""
        name = self.formulation.name
        other = "dca-alm" if name == "double-step" else "double-step"
        equal = "take smaller steps" if self.kind is StepKind.IMPLICIT else "take equal steps (--solver trapezoidal)"
        return f"{equal}, or the formulation {other}"

    @property
    def remedy(self) -> str:
        """Advice for unresolved motion."""
        formulation = self.formulation
        opens = formulation.drifts and formulation.functions.rows
        return formulation.remedy if opens else self.smaller_error

    def output_step(self, stop: float) -> float:  # noqa: ARG002
        """Return the default output interval in s of a run to a stop time in s."""
        return self.step

    def advance_past(self, state: State, begin: float, end: float, horizon: float, inputs: Inputs) -> State:  # noqa: ARG002
        """Return the state at an end from that at a start in s; up to a horizon inputs are continuous.

        Solvers with an interpolant may step up to the horizon; errors as for `advance`.
        """
        # To its end: what a solver counts it may count behind its last state.
        (state,) = self.advance(state, np.array([begin, end]), inputs)
        return state

    @abstractmethod
    def advance(self, state: State, times: Floats, inputs: Inputs) -> Iterator[State]:
        """Yield the states at `times[1:]`, starting from `state` at `times[0]`.

        Raises
        ------
        SimulationError
            When a step fails; the message names the time and the reason.
        """


@dataclass
class AdaptiveSolver(Solver):
    """Base class of solvers with step control by the local error.

    Attributes
    ----------
    relative_tolerance, absolute_tolerance
        Tolerances of the local error; the absolute one is scaled by nominal values of the states.
    """

    options: ClassVar[tuple[str, ...]] = ("relative_tolerance", "absolute_tolerance")
    tolerance: ClassVar[float] = 1e-6
    relative_tolerance: float = 1e-6
    absolute_tolerance: float = 1e-6

    @property
    def tolerances(self) -> Floats:
        """Relative and absolute tolerance, shape (2,)."""
        return np.array([self.relative_tolerance, self.absolute_tolerance])

    @tolerances.setter
    def tolerances(self, tolerances: Floats) -> None:
        self.relative_tolerance, self.absolute_tolerance = tolerances.tolist()

    @property
    def smaller_error(self) -> str:
        """Advice that makes the error of steps smaller."""
        return "take a smaller tolerance"

    def output_step(self, stop: float) -> float:
        """Return the model's step in s, at most the run: internal steps do not depend on it."""
        return min(self.step, stop)


SOLVERS: Registry[type[Solver]] = Registry("solver")

MOST_AHEAD = 100.0
"""Largest step past the stop, in requested steps."""
_HEAD = 6


@dataclass(frozen=True)
class Ahead:
    """A step that ends past the present time.

    Attributes
    ----------
    origin
        Time in s from which the others count.
    begin, end
        Where it begins and ends.
    following
        What is tried next in s.
    attempt
        The step: its size, y at both ends, and the increments of all stages.
    """

    origin: float
    begin: float
    end: float
    following: float
    attempt: Attempt

    @classmethod
    def of(cls, state: State, stages: int) -> Ahead | None:
        """Return the stored step of a state; None if there is none."""
        if not looks_ahead(state) or state.ahead[4] == 0.0:
            return None
        start, values, increments = np.split(
            state.ahead[_HEAD:], len(state.ahead[_HEAD:]) // (2 + stages) * np.array([1, 2])
        )
        origin, begin, end, step, following = state.ahead[1:_HEAD].tolist()
        attempt = Attempt(start.tolist(), [], [], values.tolist(), [], increments.tolist(), [], [], step=step)
        return cls(origin, begin, end, following, attempt)

    def kept_by(self, state: State) -> State:
        """Return the state with this step."""
        head = [float(state.ahead[0]), self.origin, self.begin, self.end, self.attempt.step, self.following]
        return replace(state, ahead=np.array([*head, *self.attempt.start, *self.attempt.end, *self.attempt.increments]))


def room(size: int, stages: int) -> int:
    """Return the number of values of a stored step for a size of y."""
    return _HEAD + (2 + stages) * size


def looks_ahead(state: State) -> bool:
    """Return whether no variable was set since the last step, for solvers to which this matters."""
    return len(state.ahead) > 0 and bool(state.ahead[0])


def untouched(state: State) -> State:
    """Return the state as one after which nothing was set."""
    if not len(state.ahead) or state.ahead[0]:
        return state
    return replace(state, ahead=np.concatenate([[1.0], state.ahead[1:]]))


def without(state: State) -> State:
    """Return the state without the stored step."""
    return replace(state, ahead=np.concatenate([state.ahead[:4], [0.0], state.ahead[5:]]))
