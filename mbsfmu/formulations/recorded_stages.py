"""Linearly implicit steps in absolute coordinates in kernel loops.

Rates are ẏ = (q̇, q̈, ẋ) with M q̈ + Φ_qᵀ λ = Q and Φ̈ + 2 a Φ̇ + a² Φ = 0 of the active constraints, on and off the
manifold: stages are not projected, because their rates would have other derivatives. These equations, sums over bodies
and joints, are linearized at known accelerations and multipliers, and solved with these as unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mbsfmu.formulations.recorded_steps import Moved, RecordedSteps
from mbsfmu.modelling.fields import Array
from mbsfmu.rules.rule import Rule
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem
from mbsfmu.tracing.tape.elimination import EliminationPath


class RecordedStages(RecordedSteps):
    """Functions of linearly implicit steps in absolute coordinates, with accelerations and multipliers as parts.

    Parameters
    ----------
    functions
        Functions of a system in absolute coordinates.
    rule
        Of the formulation; no stage asks for it.
    stabilisation
        Rate a in 1/s at which constraints that have drifted come back.
    """

    def __init__(self, functions: SystemFunctions, rule: Rule, stabilisation: float) -> None:
        functions.add_part("step", 1)
        functions.add_part("begin_history", 0)
        super().__init__(functions, rule, "velocities", _as_given, stabilisation)

    def _changes(self, given: RecordedSystem, values: list[Any], along: list[tuple[Any, Any]]) -> list[Any]:
        """Return directional derivatives, with the resulting changes of accelerations and multipliers."""
        instant, multipliers = given.instant, given.loops.multipliers
        still = [(each, np.zeros(len(each))) for each in (instant.accelerations, multipliers)]
        unbalanced, opening = given.changes(list(self._unmet(given)), [*along, *still])
        turned, pushing = given.answers(-unbalanced, opening)
        return given.changes(values, [*along, (instant.accelerations, turned), (multipliers, pushing)])

    def change(self, given: RecordedSystem, directions: Sequence[Any], *, projects: bool) -> list[Any]:
        """Return directional derivatives of ẏ, the outputs, q, q̇ and q̈ near the manifold.

        Parameters
        ----------
        given
            The system, its accelerations and multipliers as they follow.
        directions
            Of q, q̇, x, the integrals and the inputs.
        projects
            Whether ẏ is that of the projected q, and all else that of the projected q and q̇.
        """
        placing, moving, *others = directions
        instant = given.instant
        beside = list(zip((instant.states, instant.integrals, instant.inputs), others, strict=True))
        placed, moved = placing, moving
        if projects:
            driven = instant.inputs, others[-1]  # prescribed motion
            placed = given.tangential(placing, given.changes([given.closure], [driven])[0])
            rate = given.along(given.closure, instant.velocities) + given.drifts
            (opening,) = given.changes([rate], [(instant.coordinates, placed), driven])
            moved = given.tangential(moving, opening)
        along = [(instant.coordinates, placed), *beside]
        flow = [instant.accelerations, given.rates, given.integral_rates]
        rates = self._changes(given, flow, [*along, (instant.velocities, moving)])
        values = [given.outputs, instant.accelerations]
        outputs, turned = self._changes(given, values, [*along, (instant.velocities, moved)])
        return [np.concatenate([moving, *rates]), outputs, placed, moved, turned]

    def _unmet(self, moved: RecordedSystem) -> tuple[Array, Array]:
        opening = moved.turning(self._stabilisation) + moved.along(moved.closure, moved.instant.accelerations)
        return moved.regular_residual, opening

    def _ways(self, moved: RecordedSystem, first: int) -> list[EliminationPath]:
        """Return one elimination order: multipliers after the coordinates of their bodies."""
        behind = {first + row: acted_on for row, acted_on in enumerate(moved.moved_by_constraints)}
        return [EliminationPath(range(len(self._functions.coordinates)), behind)]


def _as_given(given: RecordedSystem) -> Moved:
    return Moved(given, given.instant.accelerations, given.loops.multipliers)
