"""Consistent states: after discontinuities of inputs, at the end of steps, after changes of references."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from mbsfmu.base.errors import LoopsOpenError, SimulationError
from mbsfmu.equations.kinematics import LOST, NEAR_GIMBAL_LOCK
from mbsfmu.initialization.accelerations import accelerations
from mbsfmu.initialization.closing_loops import turned_joint
from mbsfmu.stepping.state import State, StepHistory
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import scale_of_arm
from mbsfmu.tracing.workspace import Floats

_KEPT = (
    *("iteration_matrix", "iteration_matrix_use", "suggested_step", "unconverged", "ahead"),
    *("error", "error_history", "error_record"),
)  # of a state where accelerations jump


class FittingStates:
    """Base of formulations: consistent states, independent of the equations of their steps.

    Attributes
    ----------
    functions
        Functions of the system.
    history
        What the rule remembers.
    opening
        How far a loop may be open at the end of a step, as a share of its lever arms.
    step
        Of equal steps by an implicit rule, in s; 0 for other solvers, whose order is higher.
    """

    remedy: ClassVar[str] = "take a smaller step"
    """Advice for loops beyond the drift tolerance."""
    leaves_out: ClassVar[bool] = False
    """Whether nearly dependent equations near a change point are omitted for accelerations."""
    functions: SystemFunctions
    history: StepHistory
    opening: float
    step: float = 0.0

    def consistent(self, state: State) -> State:
        """Return the state with accelerations, multipliers and rates consistent with the present inputs.

        A discontinuity of an input changes these, and the history of the rule by the same amount.
        """
        found = self._consistent(state)
        with suppress(SimulationError):  # what depends on a loop without a solution is not finite
            found = self.with_loops(found)
        history = self.history.after_jump(state, found)
        return replace(found, history=history, **{name: getattr(state, name) for name in _KEPT}).turned

    def closed(self, state: State) -> State:
        """Return the consistent state of positions and velocities near the constraint manifold, to compare outputs."""
        return self.consistent(state)

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
        """Return the state after a step in s that is too short to solve, by the rates at its start.

        The functions hold the inputs at its end. Rates of a rule are differences of positions divided by the step, and
        by its square, which would be round-off only.
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
        """Return the state with recomputed accelerations and rates, and an empty history."""
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
        """Return z̈, λ and ẋ consistent with the coordinates, velocities, states and inputs of the functions.

        Parameters
        ----------
        share
            Of what counts as near a change point, within which equations are left out by formulations that do so.
        """
        near = share * self.functions.near
        return accelerations(self.functions, self.element_scales if self.leaves_out else None, near)

    @cached_property
    def element_scales(self) -> Floats:
        """Scales of the elements of Φ_z that make them independent of units and size, shape (m, n)."""
        return self.functions.element_scales(scale_of_arm(self.arm))

    @property
    def arm(self) -> float:
        """Longest lever arm of the loops in m."""
        units = [self.functions.system.constraint_units[row] for row in self.functions.rows]
        return max(
            (scale for scale, unit in zip(self.functions.scales, units, strict=True) if unit == "m"), default=1.0
        )

    def made_consistent(self, state: State) -> State:
        """Return the state to continue from after a step, whose end the functions hold.

        Raises
        ------
        LoopsOpenError
            When a loop has opened further than the formulation lets it, or a joint is turned by half a turn.
        """
        functions = self.functions
        if (joint := turned_joint(functions, functions.coordinates)) is not None:
            raise LoopsOpenError(f"joint {joint} is turned by half a turn against its own orientation; {self.remedy}")
        if len(functions.rows):
            gaps = np.abs(functions.gap()[0])
            worst = int(np.argmax(gaps / functions.scales))
            if not gaps[worst] <= self.opening * functions.scales[worst]:
                row = functions.rows[worst]
                gap = f"{gaps[worst]:.3g} {functions.system.constraint_units[row]}"
                raise LoopsOpenError.of(functions.system.constraints[row], gap, self.remedy)
        return self.with_present_references(state)

    def with_loops(self, state: State) -> State:
        """Return the present state with the solutions of algebraic loops.

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
        """Check whether an unsolved algebraic loop is the cause of non-finite numbers.

        Raises
        ------
        SimulationError
            When one is not solved.
        """
        self.functions.follow_loops()

    def with_present_references(self, state: State, *, starts: bool = False) -> State:
        """Return the same motion with references changed near gimbal lock, and along axes of fast rotation."""
        if not self._needs_references(state, starts=starts):
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

    def with_references(self, state: State, references: Floats) -> State:
        """Return the same motion with other references."""
        self.load(state)
        self.functions.momenta[:] = state.momenta
        described = self.functions.with_references
        self.functions.write("new_references", references)
        coordinates, velocities, z_accelerations, momenta = (part.copy() for part in described())
        moved = replace(state, coordinates=coordinates, velocities=velocities, accelerations=z_accelerations)
        return replace(moved, momenta=momenta, references=references)

    def restarted_as(self, other: State, state: State) -> State:  # noqa: ARG002 - most have no momenta
        """Return the state with momenta restarted where those of another state are."""
        return state

    def _needs_references(self, state: State, *, starts: bool) -> bool:
        """Return whether a reference has to change; at the start of a run as if the body had turned by a radian."""
        for first, second, third in self.functions.system.turning_angles:
            tilt = max(abs(state.velocities[first]), abs(state.velocities[second]))
            angle = max(abs(state.coordinates[first]), abs(state.coordinates[second]))
            lost = (self.step * tilt) ** 2 * (1.0 if starts else angle)
            if abs(state.coordinates[second]) > NEAR_GIMBAL_LOCK:
                return True
            if lost > LOST and tilt > abs(state.velocities[third]):
                return True
        return False
