"""Divide and conquer in absolute coordinates, by augmented Lagrangian and mass-orthogonal projections.

[Malczyk2012]
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import casadi as ca
import numpy as np

from mbsfmu.formulations.coordinate_form import CoordinateForm
from mbsfmu.formulations.formulation import TRAPEZOIDAL, Formulation, Tolerances
from mbsfmu.formulations.functions import Floats, SystemFunctions, TracedFunction
from mbsfmu.formulations.native_needs import NativeNeeds
from mbsfmu.formulations.penalty import PENALTY as STEP_PENALTY
from mbsfmu.formulations.penalty import AugmentedEquations, AugmentedProblem
from mbsfmu.formulations.projection import PENALTY, Projection
from mbsfmu.formulations.state import State
from mbsfmu.rules.rule import Rule

STIFFENING = 100.0
"""Penalty factor in the equations of a step as a multiple of the largest inertia, times ∂z̈/∂z of the rule."""

STABILISATION = 1.0
"""Ω in 1/s where there are no projections, the paper's."""


class DcaAlm(Formulation):
    """Absolute coordinates; all joints are constraints, redundant and singular ones do no harm.

    Explicit solvers integrate y = (q, q̇, x), with accelerations from the augmented-Lagrangian iteration, and project
    after each accepted step. Implicit rules take positions as unknowns, with penalty forces in the equations
    of the step, and projects what it finds.

    Parameters
    ----------
    functions, tolerances, rule
        As for every formulation; all constraints have to be in use.
    projections
        Whether positions and velocities are projected after each step.
    stabilisation
        Rate Ω in 1/s that brings drifted constraints back where there are no projections.
    penalty
        α as a multiple of the bodies' mean mass in kg.
    """

    name: ClassVar[str] = "dca-alm"
    has_explicit_form: ClassVar[bool] = True
    absolute: ClassVar[bool] = True

    def __init__(
        self,
        functions: SystemFunctions,
        tolerances: Tolerances,
        rule: Rule = TRAPEZOIDAL,
        *,
        projections: bool = True,
        stabilisation: float | None = None,
        penalty: float = PENALTY,
    ) -> None:
        super().__init__(functions, tolerances, rule, drifts=not projections)
        self.projects = projections
        chosen = (0.0 if projections else STABILISATION) if stabilisation is None else stabilisation
        self.projection = Projection(functions, penalty, chosen)
        self.iterations = self.projection.iterations
        self.equations = AugmentedEquations(functions, rule)

    @cached_property
    def flow_rates(self) -> TracedFunction:
        """ẋ and the rates of the integrals, one vector."""
        given = self.functions.expressions
        return self.functions.traced("flow_rates", [ca.vertcat(given.rates, given.integral_rates)])

    @cached_property
    def step_penalty(self) -> TracedFunction:
        """Nothing but what it writes: the penalty factor in the equations of a step.

        The multipliers converge by the ratio of M ∂z̈/∂z to it in each iteration, so it must exceed that by far.
        """
        largest = ca.mmax(ca.diag(self.functions.expressions.mass))
        factor = ca.fmax(STEP_PENALTY, STIFFENING * self.equations.end.acceleration_by_position * largest)
        return self.functions.traced("step_penalty", [factor], into=["penalty"])

    def settle(self) -> None:
        """Bring what the functions hold onto the constraints, and find accelerations and multipliers there."""
        if self.projects:
            self.projection.project()
        else:
            self.projection.factorize()
        self.projection.accelerate()

    def _consistent(self, state: State) -> State:
        self.load(state)
        self.projection.factorize()
        self.projection.accelerate()
        return self.state(state.integrals)

    def state(self, integrals: Floats) -> State:
        """Return the state where the functions are; ẋ and the integrals' rates follow."""
        functions = self.functions
        functions.integrals[:] = integrals
        functions.rates[:], integral_rates = np.split(self.flow_rates()[0], [len(functions.states)])
        return State.of(functions, integrals, integral_rates.copy())

    def problem(self, state: State, step: float) -> ProjectedProblem:
        """Return the equations of an implicit step."""
        return ProjectedProblem(self, state, step)

    def native_needs(self, *, implicit: bool) -> NativeNeeds:
        """Return what its C needs."""
        projection, equations = self.projection, self.equations
        own = (projection.factorize, projection.correction, projection.free_motion, self.flow_rates)
        steps = (equations.residual, equations.tangent, self.step_penalty) if implicit else ()
        return NativeNeeds(
            file="projection.c",
            unknowns=len(self.functions.coordinates),
            own_motion=True,
            choices={"PROJECTIONS": int(self.projects)},
            correction_numbers=projection.size,
            in_steps=(*own, *projection.violations.values(), *steps),
        )

    def explicit_form(self, state: State) -> ProjectedForm:
        """Return the equations for explicit solvers."""
        return ProjectedForm(self, state)


class ProjectedProblem(AugmentedProblem):
    """An implicit step in absolute coordinates, with projections instead of the penalty formulation's.

    Parameters
    ----------
    formulation, state, step
        The formulation, where the step begins, and its size in s.
    """

    def __init__(self, formulation: DcaAlm, state: State, step: float) -> None:
        super().__init__(formulation, state, step, formulation.equations)
        self._formulation = formulation
        formulation.functions.integrals[:] = state.integrals
        formulation.functions.coordinates[:] = state.coordinates
        formulation.step_penalty()

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
        formulation.projection.place(inside=True) if formulation.projects else formulation.projection.factorize()
        formulation.projection.accelerate()
        return np.concatenate([functions.velocities, functions.accelerations, formulation.flow_rates()[0]])

    def moved(self, integrals: Floats) -> State:
        """Return the state where the functions are, on the constraints where there are projections."""
        self._formulation.settle()
        return self._formulation.state(integrals)
