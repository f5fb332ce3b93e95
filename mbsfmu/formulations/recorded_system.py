"""Code in loops: functions of arrays that are recorded, what `SystemExpressions` is where code is in loops.

There are no loop equations here, and no algebraic loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from mbsfmu.equations.rotation import Array
from mbsfmu.errors import InputError
from mbsfmu.formulations.capabilities import (
    ArticulatedDynamics,
    CanonicalMomenta,
    InertiaTensors,
    JointReactions,
    SampledUpdates,
    StartLimits,
    capable,
)
from mbsfmu.formulations.system import Instant, LoopsInUse, System
from mbsfmu.programs.recorded_array import RecordedArray

NO_LOOPS = LoopsInUse(())
LARGE = 64
"""Coordinates beyond which code is in loops unless something else is chosen: straight-line code is about three times as
fast, but it takes longer to trace and to compile the larger the system is."""


class Code(StrEnum):
    """Forms of generated code."""

    STRAIGHT = "straight"
    LOOPS = "loops"


def is_in_loops(system: System, code: Code | None) -> bool:
    """Tell whether the code of a system is in loops.

    Parameters
    ----------
    system
        The system.
    code
        What was chosen; None where the size decides.

    Raises
    ------
    InputError
        When loops are chosen for a system that cannot have them.
    """
    if code is Code.STRAIGHT:
        return False
    lacking = _lacking(system)
    if code is Code.LOOPS and lacking:
        raise InputError(f"code in loops is for mechanisms that are trees; {system.name} {lacking}")
    return not lacking and (code is Code.LOOPS or len(system.coordinates) > LARGE)


def _lacking(system: System) -> str:
    """Return why the code of a system cannot be in loops; nothing where it can."""
    if not system.coordinates:
        return "has no bodies that move"
    if system.start_system is not system:
        return "is described in absolute coordinates"
    if system.constraints:
        return f"has loops, as that of {system.constraints[0]}"
    if system.guesses or system.felt:
        return "has a loop of connections that is solved at every instant"
    return ""


@dataclass(frozen=True)
class RecordedSystem:
    """The functions under the names that `SystemExpressions` has them by.

    Attributes
    ----------
    system
        The system.
    instant
        Where it is.
    """

    system: System
    instant: Instant
    _dynamics: dict[float, tuple[Array, Array]] = field(default_factory=dict, init=False)

    def at(self, **parts: Array) -> RecordedSystem:
        """Return it with other parts of the instant."""
        return RecordedSystem(self.system, replace(self.instant, **parts))

    def forward_dynamics(self, stabilisation: float) -> tuple[Array, Array]:
        """Return z̈ and λ."""
        if stabilisation not in self._dynamics:
            system = capable(self.system, ArticulatedDynamics)
            self._dynamics[stabilisation] = system.forward_dynamics(self.instant, NO_LOOPS, stabilisation)
        return self._dynamics[stabilisation]

    def impulsive_velocities(self, stabilisation: float) -> tuple[Array, Array]:
        """Return ż and σ from the momenta."""
        return capable(self.system, CanonicalMomenta).impulsive_velocities(self.instant, NO_LOOPS, stabilisation)

    @property
    def momentum_rates(self) -> Array:
        """Rates of the momenta, without loops."""
        return capable(self.system, CanonicalMomenta).momentum_rates(self.instant, NO_LOOPS)

    @property
    def initial_momenta(self) -> Array:
        """Return p = M ż."""
        return capable(self.system, CanonicalMomenta).initial_momenta(self.instant)

    def changes(self, values: Sequence[Any], directions: Sequence[tuple[Any, Any]]) -> list[Any]:
        """Return how values change along directions of parts, each given with its change."""
        coordinates = self.instant.coordinates
        assert isinstance(coordinates, RecordedArray)
        return coordinates.recorder.changes(values, directions)

    @property
    def residual(self) -> Array:
        """M z̈ − Q."""
        return self.system.residual(self.instant)

    @property
    def rates(self) -> Array:
        """Rates ẋ."""
        return self.system.rates(self.instant)

    @property
    def integral_rates(self) -> Array:
        """Rates of the integrals."""
        return self.system.integral_rates(self.instant)

    @property
    def outputs(self) -> Array:
        """The outputs y."""
        return self.system.evaluate_outputs(self.instant)

    @property
    def violation(self) -> Array:
        """Nothing is violated."""
        return np.zeros(2)

    @property
    def closure(self) -> Array:
        """No Φ."""
        return np.zeros(0)

    all_closure = all_drifts = closure

    @property
    def closure_jacobian(self) -> Array:
        """No Φ_z."""
        return np.zeros((0, len(self.system.coordinates)))

    all_closure_jacobian = closure_jacobian

    @property
    def reactions(self) -> Array:
        """Forces and moments in the joints."""
        return capable(self.system, JointReactions).evaluate_reactions(self.instant, NO_LOOPS)

    @property
    def initial_integrals(self) -> Array:
        """The integrals at the start."""
        return self.system.initial_integrals(self.instant)

    @property
    def initial_discrete(self) -> Array:
        """The discrete states before their first update."""
        return capable(self.system, SampledUpdates).initial_discrete(self.instant.parameters)

    @property
    def updates(self) -> Array:
        """The discrete states after an update of all of them."""
        return capable(self.system, SampledUpdates).updates(self.instant)

    @property
    def inertia_tensors(self) -> Array:
        """Inertia tensors that must be such as bodies have."""
        return capable(self.system, InertiaTensors).inertia_tensors(self.instant.parameters)

    @property
    def start_limits(self) -> Array:
        """What is limited where the system starts."""
        return capable(self.system, StartLimits).start_limits(self.instant)

    @property
    def start(self) -> dict[str, Array]:
        """Coordinates and velocities of the start system as the user gave them, and x at the start, by part."""
        parameters = self.instant.parameters
        coordinates, velocities = self.system.start_system.initial_coordinates(parameters)
        states = self.system.initial_states(parameters)
        return {"coordinates": coordinates, "velocities": velocities, "states": states}
