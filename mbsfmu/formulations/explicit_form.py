"""What solvers of ordinary differential equations take: a formulation as ẏ = f(t, y)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from mbsfmu.formulations.state import State
from mbsfmu.formulations.workspace import Floats

if TYPE_CHECKING:
    from mbsfmu.formulations.formulation import Formulation


class ExplicitForm(ABC):
    """A formulation's equations from a state on, as long as its description of the motion lasts.

    Parameters
    ----------
    formulation, state
        The formulation, and where it begins.
    """

    corrects = False
    """Whether an accepted y is changed before the next step."""

    def __init__(self, formulation: Formulation, state: State) -> None:
        self.with_loops, self.check_loops = formulation.with_loops, formulation.check_loops
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

    def lasts(self, state: State) -> bool:
        """Tell whether y goes on from a state as before; where not, a new form must begin there."""
        kept = ("partition", "references", "active")
        return all(getattr(state, part) is getattr(self.state, part) for part in kept)

    def described_anew(self) -> State | None:
        """Return the last accepted state in another description after a step has failed; None if there is none."""
        return None


class DifferentiableForm(ExplicitForm):
    """Equations with their exact derivatives, for linearly implicit solvers."""

    @property
    @abstractmethod
    def chained(self) -> int:
        """Number of first elements of y whose rates are the elements that follow these, as those of positions are."""

    @abstractmethod
    def tangent(self) -> Floats:
        """Return the derivative of ẏ by y where the rates were last evaluated.

        Rows are all elements of y but the chained ones, columns all but the integrals, on which nothing depends.
        """

    @abstractmethod
    def drift(self, slopes: Floats) -> Floats:
        """Return ∂f/∂t where the rates were last evaluated: their change with inputs that have these rates."""
