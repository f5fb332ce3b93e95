"""Commands behind overlaps that feed what leaks: bisection with the machine clamped where states carry its loads."""

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
"""Share of the largest effect of a command up to which others have none."""


def bisect_dead_bands(equations: EquilibriumEquations, guess: Floats) -> StaticEquilibrium | None:
    """Return rest where commands open by just what makes up for leakage, whatever the guess of them is.

    Where loads balance, states carry them. With the machine clamped there, what is asked for is put to the ends of its
    range, one after the other, and states come to rest: a pressure to that of the source, or of the tank. What each
    changes of what is out of balance is its own; it is halved by the sign of that, until Newton's iteration goes on.

    Parameters
    ----------
    equations, guess
        The equations, and the guess from which the straight way has failed.
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
    """Return the least and the greatest of what is asked for: its limits, or its magnitude either way of zero."""
    asked = [each for part in ("inputs", "parameters") for each in equations.sought if each.part == part]
    scales = equations.scales[equations.unknowns("inputs").start :]
    limits = [(each.variable.minimum, each.variable.maximum) for each in asked]
    low = [-scale if least is None else least for (least, _), scale in zip(limits, scales, strict=True)]
    high = [scale if most is None else most for (_, most), scale in zip(limits, scales, strict=True)]
    return np.array(low), np.array(high)


class _Clamped:
    """States that come to rest with a machine clamped where it is, for any values of what is asked for.

    Parameters
    ----------
    equations, at
        The equations, and where it is clamped.
    """

    def __init__(self, equations: EquilibriumEquations, at: Floats) -> None:
        self._equations, self._at = equations, at
        equations.load(at)
        self._free = null_space(equations.functions.closure()[1], RANK_TOLERANCE)
        self._allowed = allowed_at(equations, at, equations.jacobian())

    def off(self, asked: Floats) -> tuple[Floats, Floats]:
        """Return where states come to rest, and what loads and what is held are off there, by what is allowed."""
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
