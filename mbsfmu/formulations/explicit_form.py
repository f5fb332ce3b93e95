"""What solvers of ordinary differential equations take: a formulation as ẏ = f(t, y)."""

from __future__ import annotations

from abc import ABC, abstractmethod

from mbsfmu.stepping.stages import DenseStages, Stages
from mbsfmu.stepping.state import State
from mbsfmu.tracing.workspace import Floats


class ExplicitForm(ABC):
    """A formulation's equations from a state on, as long as its description of the motion lasts.

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
        """ẏ of `state`."""

    @abstractmethod
    def rates(self, values: Floats, inputs: Floats) -> Floats:
        """Return ẏ."""

    @abstractmethod
    def state_at(self, values: Floats, inputs: Floats) -> State:
        """Return the whole state for a y."""

    @abstractmethod
    def accept(self, state: State) -> State:
        """Take a step's end, as `state_at` has just given it, as `state`; return the state to go on from."""

    def leaps(self, state: State, step: float) -> bool:  # noqa: ARG002 - most forms integrate all coordinates
        """Tell whether a state cannot follow from the last accepted one within `step` seconds."""
        return False

    def with_loops(self, state: State) -> State:
        """Return a state, as `state_at` has just given it, with the solutions of algebraic loops, to go on from.

        Raises
        ------
        SimulationError
            When one of them is not solved.
        """
        return state

    def check_loops(self) -> None:  # noqa: B027 - some have none
        """Look whether it is for an algebraic loop that numbers are not finite, where the rates were last evaluated.

        Raises
        ------
        SimulationError
            When one is not solved.
        """

    def lasts(self, state: State) -> bool:
        """Tell whether y goes on from a state as before; where not, a new form must begin there."""
        kept = ("partition", "references", "active")
        return all(getattr(state, part) is getattr(self.state, part) for part in kept)

    def with_changed_chart(self) -> State | None:
        """Return the last accepted state in another description after a step has failed; None if there is none."""
        return None


class DifferentiableForm(ExplicitForm):
    """Equations with their exact derivatives, for linearly implicit solvers."""

    @abstractmethod
    def stages(self) -> Stages:
        """Return what solves with the derivative of ẏ by y where the rates were last evaluated."""

    @abstractmethod
    def drift(self, slopes: Floats) -> Floats:
        """Return ∂f/∂t where the rates were last evaluated: their change with inputs that have these rates."""


class IterationMatrixForm(DifferentiableForm):
    """Equations whose derivatives are a matrix."""

    @property
    @abstractmethod
    def chained(self) -> int:
        """Number of first elements of y whose rates are the elements that follow these, as those of positions are."""

    @abstractmethod
    def jacobian(self) -> Floats:
        """Return the derivative of ẏ by y where the rates were last evaluated.

        Rows are all elements of y but the chained ones, columns all but the integrals, on which nothing depends.
        """

    def stages(self) -> Stages:
        """Return what solves with this matrix."""
        return DenseStages(self.jacobian(), self.chained)
