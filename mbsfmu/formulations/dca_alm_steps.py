"""Steps in absolute coordinates: the equations of an implicit one, and ẏ = f(t, y) for the other solvers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from mbsfmu.formulations.coordinate_form import CoordinateForm
from mbsfmu.formulations.explicit_form import DifferentiableForm
from mbsfmu.formulations.penalty import AugmentedEquations, AugmentedProblem
from mbsfmu.formulations.recorded_tangent import FactoredStages
from mbsfmu.formulations.stages import DenseStages, Stages
from mbsfmu.formulations.state import State
from mbsfmu.formulations.workspace import Floats

if TYPE_CHECKING:
    from mbsfmu.formulations.dca_alm import DcaAlm


class ConstrainedEquations(AugmentedEquations):
    """The equations of a step with the joints' forces on bodies as the assembly has them, which is less than Φ_qᵀ λ."""

    @property
    def _balance(self) -> ca.SX:
        return self._given.constrained_residual


class ProjectedProblem(AugmentedProblem):
    """An implicit step in absolute coordinates, with projections instead of the penalty formulation's.

    Parameters
    ----------
    formulation, state, step
        The formulation, where the step begins, and its size in s.
    """

    def __init__(self, formulation: DcaAlm, state: State, step: float) -> None:
        super().__init__(formulation, state, step, formulation.step_equations)
        self._formulation = formulation
        formulation.functions.integrals[:] = state.integrals

    def jacobian(self) -> Floats:
        """Return the derivative, with the penalty factor that suits the masses at the unknowns."""
        self._formulation.step_penalty()
        return self._formulation.equations.tangent()[0]

    @property
    def softness(self) -> Floats:
        """1/α for the constraints, as the derivative has it."""
        self._formulation.step_penalty()
        return self._softness(self._formulation.equations)

    def finish(self) -> State:
        """Return the state at the end, on the constraints; ẋ is the rule's, as the states belong to it."""
        self._formulation.settle()
        return self._end(None)


class ProjectedForm(CoordinateForm):
    """The equations for explicit solvers.

    Parameters
    ----------
    formulation, state
        The formulation and where it begins.
    """

    def __init__(self, formulation: DcaAlm, state: State) -> None:
        super().__init__(formulation, state, "velocities")
        self._formulation = formulation
        self.corrects = formulation.projects

    def rates(self, values: Floats, inputs: Floats) -> Floats:
        """Return ẏ."""
        self.load(values, inputs)
        formulation, functions = self._formulation, self._formulation.functions
        self._place()
        formulation.projection.accelerate()
        return np.concatenate([functions.velocities, functions.accelerations, formulation.flow_rates()[0]])

    def _place(self) -> None:
        """Bring a stage onto the constraints, where there are projections."""
        formulation = self._formulation
        formulation.projection.place(inside=True) if formulation.projects else formulation.projection.factorize()

    def moved(self, integrals: Floats) -> State:
        """Return the state where the functions are, on the constraints where there are projections."""
        self._formulation.settle()
        return self._formulation.state(integrals)


class StagesForm(ProjectedForm, DifferentiableForm):
    """The equations for linearly implicit solvers, whose stages stay where they are."""

    def _place(self) -> None:
        self._formulation.projection.factorize()

    def stages(self) -> Stages:
        """Return what solves with the derivative of ẏ."""
        formulation = self._formulation
        if formulation.tangents is None:
            return DenseStages(formulation.slope()[0].copy(), 0)
        return FactoredStages(formulation.functions, formulation.stages, formulation.tangents)

    def drift(self, slopes: Floats) -> Floats:
        """Return the change of ẏ with inputs that have these rates."""
        formulation = self._formulation
        formulation.functions.write("input_rates", slopes)
        drift = formulation.drift if formulation.tangents is None else formulation.stages.drift
        return drift()[0].copy()
