"""Explicit form of a formulation, ẏ = f(t, y), for solvers of ordinary differential equations."""

from __future__ import annotations

from abc import ABC, abstractmethod

from mbsfmu.stepping.stages import DenseStages, Stages
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats


class ExplicitForm(ABC):
    """A formulation's equations from a state on, valid in one coordinate chart.

    Parameters
    ----------
    state
        Where it begins.
    """

    corrects = False
    """Whether an accepted y is changed before the next step."""

    def __init__(self, state: State) -> None:
        self.state = state
        """The last accepted state."""

    @property
    @abstractmethod
    def start(self) -> Floats:
        """Y where it begins; integrals are the last elements."""

    @property
    @abstractmethod
    def end_rates(self) -> Floats:
        """Derivative ẏ at `state`."""

    @abstractmethod
    def rates(self, values: Floats, inputs: Floats) -> Floats:
        """Return ẏ."""

    @abstractmethod
    def state_at(self, values: Floats, inputs: Floats) -> State:
        """Return the complete state for a y."""

    @abstractmethod
    def accept(self, state: State) -> State:
        """Accept the end of a step, from `state_at`, as `state`; return the state to continue from."""

    def leaps(self, state: State, step: float) -> bool:  # noqa: ARG002 - most forms integrate all coordinates
        """Return whether a state cannot follow continuously from the last accepted one within `step` seconds."""
        return False

    def with_loops(self, state: State) -> State:
        """Return a state from `state_at` with the solutions of algebraic loops, to continue from.

        Raises
        ------
        SimulationError
            When one of them is not solved.
        """
        return state

    def check_loops(self) -> None:  # noqa: B027 - some have none
        """Check whether an unsolved algebraic loop is the cause of non-finite numbers in the last rates.

        Raises
        ------
        SimulationError
            When one is not solved.
        """

    def lasts(self, state: State) -> bool:
        """Return whether y is valid after a state; otherwise a new form must start there."""
        kept = ("partition", "references", "active")
        return all(getattr(state, part) is getattr(self.state, part) for part in kept)

    def with_changed_chart(self) -> State | None:
        """Return the last accepted state in another chart after a failed step; None if there is none."""
        return None


class DifferentiableForm(ExplicitForm):
    """Equations with exact derivatives, for linearly implicit solvers."""

    @abstractmethod
    def stages(self) -> Stages:
        """Return the linear solver of the stages with ∂ẏ/∂y at the last evaluation."""

    @abstractmethod
    def drift(self, slopes: Floats) -> Floats:
        """Return ∂f/∂t at the last evaluation for given rates of the inputs."""


class IterationMatrixForm(DifferentiableForm):
    """Equations with a Jacobian matrix."""

    @property
    @abstractmethod
    def chained(self) -> int:
        """Number of leading elements of y whose rates are the following elements, as those of positions are."""

    @abstractmethod
    def jacobian(self) -> Floats:
        """Return the Jacobian of ẏ with respect to y at the last evaluation.

        Rows are all elements of y except the chained ones, columns all except the integrals, on which nothing depends.
        """

    def stages(self) -> Stages:
        """Return the linear solver of the stages with this matrix."""
        return DenseStages(self.jacobian(), self.chained)
