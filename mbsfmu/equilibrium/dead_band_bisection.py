"""Dead-band bisection: commands behind overlaps that supply leakage, with the machine clamped."""

from __future__ import annotations

import numpy as np

from mbsfmu.equations.linear import RANK_TOLERANCE, null_space
from mbsfmu.equilibrium.damped_newton import StaticEquilibrium, allowed_at, newton
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.infeasible_point import carrying
from mbsfmu.equilibrium.initial_guess import posed
from mbsfmu.equilibrium.overdamped_motion import motion_to_its_end
from mbsfmu.tracing.workspace import Floats

_MOST_ASKED = 4
_MOST_HALVINGS = 30
_MOST_STEPS = 25
_RANK = 1e-6
"""Fraction of the largest effect of a command below which others have none."""


def bisect_dead_bands(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium | None:
    """Return the equilibrium in which commands open just enough to supply the leakage, for any guess.

    States carry balanced loads. With the machine clamped there, each free variable is set to the ends of its range in
    turn, and states settle to their equilibrium: a pressure to that of the source, or of the tank. Each variable
    changes its own part of the imbalance, and is bisected by the sign of this part, until Newton's iteration converges.

    Parameters
    ----------
    equations, guess
        The equations, and the guess from which Newton's iteration has failed.
    """
    if not 0 < len(equations.sought) <= _MOST_ASKED:
        return None
    near = carrying(equations.without_rates(), posed(equations, guess))
    if not near.found:
        return None
    clamped = _Clamped(equations, near.unknowns)
    low, high = _range(equations)
    middle = np.clip(0.0, low, high)
    ends = [[clamped.off(_with(middle, index, end[index]))[1] for index in range(len(low))] for end in (low, high)]
    changes = np.column_stack(ends[1]) - np.column_stack(ends[0])
    own = np.linalg.pinv(changes, rcond=_RANK)
    if not all(own[index] @ ends[0][index] < 0.0 < own[index] @ ends[1][index] for index in range(len(low))):
        return None
    for _ in range(_MOST_HALVINGS):
        middle = 0.5 * (low + high)
        at, off = clamped.off(middle)
        if (rest := newton(equations, at, _MOST_STEPS)).found:
            return rest
        above = own @ off > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return None


def _with(values: Floats, index: int, value: float) -> Floats:
    changed = values.copy()
    changed[index] = value
    return changed


def _range(equations: EquilibriumEquations) -> tuple[Floats, Floats]:
    """Return the range of the free variables: their limits, or plus and minus their magnitude."""
    asked = [each for part in ("inputs", "parameters") for each in equations.sought if each.part == part]
    scales = equations.scales[equations.unknowns("inputs").start :]
    limits = [(each.variable.minimum, each.variable.maximum) for each in asked]
    low = [-scale if least is None else least for (least, _), scale in zip(limits, scales, strict=True)]
    high = [scale if most is None else most for (_, most), scale in zip(limits, scales, strict=True)]
    return np.array(low), np.array(high)


class _Clamped:
    """Equilibrium states of a clamped machine, for any values of the free variables.

    Parameters
    ----------
    equations, at
        The equations, and the position at which it is clamped.
    """

    def __init__(self, equations: EquilibriumEquations, at: Floats) -> None:
        self._equations, self._at = equations, at
        equations.load(at)
        self._free = null_space(equations.functions.closure()[1], RANK_TOLERANCE)
        self._allowed = allowed_at(equations, at, equations.jacobian())

    def off(self, asked: Floats) -> tuple[Floats, Floats]:
        """Return the equilibrium states, and the residuals of loads and fixed variables relative to tolerances."""
        equations, begin = self._equations, self._at.copy()
        begin[equations.unknowns("inputs").start :] = asked
        equations.load(begin)
        at = motion_to_its_end(equations, begin, clamped=True)
        begin[equations.unknowns("states")] = at[equations.unknowns("states")]
        begin[equations.unknowns("discrete")] = at[equations.unknowns("discrete")]
        equations.load(begin)
        residual = equations.residual()
        balance, held = equations.rows("balance"), equations.rows("held")
        loads = self._free.T @ residual[balance] / np.max(self._allowed[balance], initial=1.0)
        return begin, np.concatenate([loads, residual[held] / self._allowed[held]])
