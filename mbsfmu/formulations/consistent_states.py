"""States whose parts fit each other: after jumps of inputs, at the end of steps, with references moved along."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from mbsfmu.base.errors import LoopsOpenError, SimulationError
from mbsfmu.equations.coordinate_charts import NEAR_GIMBAL_LOCK
from mbsfmu.initialization.accelerations import accelerations
from mbsfmu.stepping.state import State
from mbsfmu.stepping.step_history import StepHistory
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

_KEPT = (
    *("iteration_matrix", "iteration_matrix_use", "suggested_step", "unconverged", "ahead"),
    *("error", "error_history", "error_record"),
)  # of a state where accelerations jump


class FittingStates:
    """What a formulation makes of a state, whichever equations its steps solve.

    Attributes
    ----------
    functions
        Functions of the system.
    history
        What the rule remembers.
    opening
        How far a loop may be open at the end of a step, as a share of its lever arms.
    """

    remedy: ClassVar[str] = "take a smaller step"
    """What to do where loops open."""
    leaves_out: ClassVar[bool] = False
    """Whether equations that nearly follow from others at a change point are left out where accelerations are found."""
    functions: SystemFunctions
    history: StepHistory
    opening: float

    def consistent(self, state: State) -> State:
        """Return the state with accelerations, multipliers and rates that fit the inputs of now.

        Where an input jumps, these jump too, and with them what the rule remembers.
        """
        found = self._consistent(state)
        with suppress(SimulationError):  # what depends on a loop without a solution is not finite
            found = self.with_loops(found)
        history = self.history.after_jump(state, found)
        return replace(found, history=history, **{name: getattr(state, name) for name in _KEPT}).turned

    def _consistent(self, state: State) -> State:
        self.load(state)
        z_accelerations, multipliers, rates = self.fitting_motion()
        self.functions.accelerations[:] = z_accelerations
        self.functions.multipliers[:] = multipliers
        return replace(
            state,
            accelerations=z_accelerations,
            multipliers=multipliers,
            rates=rates,
            integral_rates=self.functions.integral_rates()[0].copy(),
        )

    def followed(self, state: State, step: float) -> State:
        """Return the state after a step in s that is too short to be solved for, by the rates at its beginning.

        The functions hold the inputs at its end. Rates that a rule finds are differences of positions by the step, and
        by its square: round-off of these would be all that is left of them.
        """
        moved = replace(
            state,
            coordinates=state.coordinates + step * (state.velocities + 0.5 * step * state.accelerations),
            velocities=state.velocities + step * state.accelerations,
            states=state.states + step * state.rates,
            integrals=state.integrals + step * state.integral_rates,
            momenta=state.momenta + step * state.momentum_rates,
        )
        return self.anew(moved)

    def anew(self, state: State) -> State:
        """Return the state with accelerations and rates found anew, and nothing remembered of the steps before."""
        return self.consistent(state.forgetful)

    def load(self, state: State) -> None:
        """Write a state into the functions' arrays."""
        functions = self.functions
        functions.coordinates[:] = state.coordinates
        functions.velocities[:] = state.velocities
        functions.accelerations[:] = state.accelerations
        functions.multipliers[:] = state.multipliers
        functions.states[:] = state.states
        functions.integrals[:] = state.integrals
        functions.references[:] = state.references
        functions.active[:] = state.active
        functions.loop_iterates[:] = state.loop_iterates

    def fitting_motion(self, share: float = 1.0) -> tuple[Floats, Floats, Floats]:
        """Return z̈, λ and ẋ that fit the coordinates, velocities, states and inputs that the functions hold.

        Parameters
        ----------
        share
            Of what counts as near a change point, within which equations are left out by formulations that do so.
        """
        near = share * self.functions.near
        return accelerations(self.functions, self.element_scales if self.leaves_out else None, near)

    @cached_property
    def element_scales(self) -> Floats:
        """What elements of Φ_z are divided by to be the same in all units and sizes, shape (m, n)."""
        return self.functions.element_scales(self.arm)

    @property
    def arm(self) -> float:
        """The longest lever arm of the loops in m."""
        units = [self.functions.system.constraint_units[row] for row in self.functions.rows]
        return max(
            (scale for scale, unit in zip(self.functions.scales, units, strict=True) if unit == "m"), default=1.0
        )

    def made_consistent(self, state: State) -> State:
        """Return the state to go on from after a step, whose end the functions hold.

        Raises
        ------
        LoopsOpenError
            When a loop has opened further than the formulation lets it.
        """
        functions = self.functions
        if len(functions.rows):
            gaps = np.abs(functions.gap()[0])
            worst = int(np.argmax(gaps / functions.scales))
            if not gaps[worst] <= self.opening * functions.scales[worst]:
                row = functions.rows[worst]
                gap = f"{gaps[worst]:.3g} {functions.system.constraint_units[row]}"
                raise LoopsOpenError.of(functions.system.constraints[row], gap, self.remedy)
        return self.with_present_references(state)

    def with_loops(self, state: State) -> State:
        """Return the state where the functions are with the solutions of algebraic loops, to go on from.

        Raises
        ------
        SimulationError
            When one of them is not solved.
        """
        if not len(self.functions.loop_iterates):
            return state
        self.functions.follow_loops()
        return replace(state, loop_iterates=self.functions.loop_iterates.copy())

    def check_loops(self) -> None:
        """Look whether it is for an algebraic loop that numbers are not finite where the functions are.

        Raises
        ------
        SimulationError
            When one is not solved.
        """
        self.functions.follow_loops()

    def with_present_references(self, state: State) -> State:
        """Return the same motion with the references of orientations moved along, where an angle has become large."""
        gimbal_angles = list(self.functions.system.gimbal_angles)
        if not gimbal_angles or np.abs(state.coordinates[gimbal_angles]).max() <= NEAR_GIMBAL_LOCK:
            return state
        self.load(state)
        coordinates, velocities, z_accelerations, momenta, references = (
            part.copy() for part in self.functions.with_present_references()
        )
        return replace(
            state.forgetful,
            coordinates=coordinates,
            velocities=velocities,
            accelerations=z_accelerations,
            momenta=momenta,
            references=references,
        )
