"""Steps of formulations of first order: the equations of an implicit one, and ẏ = f(t, y) for the other solvers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mbsfmu.formulations.coordinate_form import CoordinateForm
from mbsfmu.formulations.explicit_form import TangentForm
from mbsfmu.formulations.recorded_tangent import FactoredStages
from mbsfmu.formulations.stages import Stages
from mbsfmu.formulations.state import State
from mbsfmu.formulations.step_problem import StepProblem
from mbsfmu.formulations.step_rates import StepRates
from mbsfmu.formulations.workspace import Floats

if TYPE_CHECKING:
    from mbsfmu.formulations.first_order import FirstOrder


class FirstOrderProblem(StepProblem):
    """One implicit step for y.

    Parameters
    ----------
    formulation, state, step
        The formulation, where the step begins, and its size in s.
    """

    def __init__(self, formulation: FirstOrder, state: State, step: float) -> None:
        super().__init__(formulation, state, step)
        self._formulation = formulation
        moving, moving_rates = formulation.flow_of(state)
        formulation.end.begin(
            [state.coordinates, moving, state.states],
            [state.velocities, moving_rates, state.rates],
            np.zeros(0),
            self.history.of(state.history, ()),
            step,
        )
        predicted = self._predicted_coordinates, moving + step * moving_rates, self._predicted_states
        self.guess = np.concatenate(predicted)

    @property
    def rates(self) -> StepRates:
        """Rates of z, w and x."""
        return self._formulation.end

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates, of their velocities in place of w, and of the states."""
        system = self.functions.system
        return tuple(variable.name for variable in (*system.coordinates, *system.velocities, *system.states))

    def residual(self, unknowns: Floats) -> Floats:
        """Return ẏ by the rule − f(y); sets z, w and x."""
        self._formulation.end.unknowns[:] = unknowns
        if self._formulation.has_dense_tangents:
            return self._formulation.residual()[0]
        self.land(unknowns)
        return self._formulation.recorded.residual()[0]

    def land(self, unknowns: Floats) -> None:
        """Set z, w and x."""
        functions, n = self.functions, len(self.functions.coordinates)
        parts = functions.coordinates, getattr(functions, self._formulation.moving), functions.states
        for part, values in zip(parts, np.split(unknowns, [n, 2 * n]), strict=True):
            part[:] = values

    def jacobian(self) -> Floats:
        """Return the derivative by z, w and x."""
        return self._formulation.tangent()[0]

    def finish(self) -> State:
        """Return the state at the end."""
        before = self.state
        end = self._formulation.moved(before.integrals)
        integrals, history = self.history.end(before, end.integral_rates)
        return replace(end, integrals=integrals, history=history)


class FirstOrderForm(CoordinateForm, TangentForm):
    """The equations for explicit and linearly implicit solvers.

    Parameters
    ----------
    formulation, state
        The formulation and where it begins.
    """

    def __init__(self, formulation: FirstOrder, state: State) -> None:
        super().__init__(formulation, state, formulation.moving)
        self._formulation = formulation

    def rates(self, values: Floats, inputs: Floats) -> Floats:
        """Return ẏ."""
        self.load(values, inputs)
        return self._formulation.explicit()[0].copy()

    @property
    def chained(self) -> int:
        """Number of coordinates whose rates are elements of y."""
        return self._formulation.chained

    def stages(self) -> Stages:
        """Return what solves with the derivative of ẏ."""
        formulation = self._formulation
        if formulation.tangents is None:
            return super().stages()
        return FactoredStages(formulation.functions, formulation.recorded, formulation.tangents)

    def tangent(self) -> Floats:
        """Return the derivative of ẏ."""
        return self._formulation.slope()[0].copy()

    def drift(self, slopes: Floats) -> Floats:
        """Return the change of ẏ with inputs that have these rates."""
        formulation = self._formulation
        formulation.functions.write("input_rates", slopes)
        drift = formulation.drift if formulation.has_dense_tangents else formulation.recorded.drift
        return drift()[0].copy()

    def moved(self, integrals: Floats) -> State:
        """Return the state where the functions are."""
        return self._formulation.moved(integrals)

    def lasts(self, state: State) -> bool:
        """Tell whether y goes on from a state as before: momenta may have been started anew."""
        return super().lasts(state) and state.momenta is self.state.momenta
