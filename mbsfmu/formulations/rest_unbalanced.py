"""What does not balance where a search for rest has ended, in words."""

from __future__ import annotations

import numpy as np

from mbsfmu.equations.linear import null_space, pivot_columns
from mbsfmu.formulations.partition import RANK_TOLERANCE
from mbsfmu.formulations.rest_equations import RestEquations
from mbsfmu.formulations.rest_search import Rest
from mbsfmu.variables import with_unit

_MOST = 3


def unbalanced(equations: RestEquations, rest: Rest) -> str:
    """Return what does not hold at the end of a search: loads, rates, loops, what is held, what does not matter.

    Parameters
    ----------
    equations, rest
        The equations, whose functions are where the search has ended.
    """
    told = [*_loads(equations, rest), *_rates(equations, rest)][:_MOST] or _gaps(equations, rest)[:_MOST]
    idle = _idle(equations)
    if idle:
        told.append(
            f"{' and '.join(idle)} has no effect there" if len(idle) == 1 else f"{', '.join(idle)} have no effect there"
        )
    return "; ".join(told)


def _loads(equations: RestEquations, rest: Rest) -> list[str]:
    """Say which coordinates would be moved, and what loads at as many as can move would balance it."""
    rows = equations.rows("balance")
    off, allowed = rest.residual[rows], rest.allowed[rows]
    if np.all(np.abs(off) <= allowed):
        return []
    functions, system = equations.functions, equations.functions.system
    loops, mass = functions.closure()[1], functions.equilibrium()[0]
    free = null_space(loops, RANK_TOLERANCE) if len(loops) else np.eye(len(mass))
    begun = -free @ np.linalg.lstsq(free.T @ mass @ free, free.T @ off, rcond=RANK_TOLERANCE)[0]
    # of coordinates that loops make depend on each other, those that are moved most have the loads
    shares = np.maximum(np.abs(begun), 1e-3 * np.max(np.abs(begun)))
    chosen = pivot_columns(free.T * shares)[1]
    missing = np.linalg.lstsq(free[chosen].T, free.T @ off, rcond=RANK_TOLERANCE)[0]
    counts = np.abs(missing) > 1e-6 * np.max(np.abs(missing), initial=0.0)
    chosen, missing = chosen[counts], missing[counts]
    order = np.argsort(-np.abs(begun[chosen]), kind="stable")
    sentences = []
    for index, load in zip(chosen[order[:_MOST]].tolist(), missing[order[:_MOST]].tolist(), strict=True):
        coordinate, acceleration = system.coordinates[index], system.accelerations[index]
        unit = "N" if coordinate.unit == "m" else "N.m"
        sentences.append(
            f"{abs(load):.4g} {unit} are missing at {coordinate.name}, whose acceleration would be "
            f"{begun[index]:.3g} {acceleration.unit}"
        )
    return sentences


def _rates(equations: RestEquations, rest: Rest) -> list[str]:
    """Say which states would change."""
    rows = equations.rows("rates")
    if np.all(np.abs(rest.residual[rows]) <= rest.allowed[rows]):
        return []
    states = equations.functions.system.states
    rates = equations.functions.state_rates()[0].copy()
    shares = np.abs(rates) / [each.nominal or 1.0 for each in states]
    shares[list(equations.left)] = 0.0
    return [
        f"{states[index].name} would change by {rates[index]:.3g} {states[index].unit}/s"
        for index in np.argsort(-shares)[:_MOST].tolist()
        if shares[index] > 1e-6 * np.max(shares)
    ]


def _gaps(equations: RestEquations, rest: Rest) -> list[str]:
    """Say which loops are open, and what is not where it is held."""
    sentences = []
    rows = equations.rows("closure")
    for name, off, allowed in zip(
        equations.functions.system.constraints, rest.residual[rows], rest.allowed[rows], strict=True
    ):
        if abs(off) > allowed:
            sentences.append(f"{name} is open by {off:.3g}")
    rows = equations.rows("held")
    for each, off, allowed in zip(equations.held, rest.residual[rows], rest.allowed[rows], strict=True):
        if abs(off) > allowed:
            sentences.append(
                f"{each.variable.name} is {with_unit(each.value + off, each.variable)} where "
                f"{with_unit(each.value, each.variable)} was to be held"
            )
    return sentences


def _idle(equations: RestEquations) -> list[str]:
    """Return what was asked for and has no effect."""
    matrix = equations.jacobian()
    return [
        each.variable.name
        for part in ("inputs", "parameters")
        for each, column in zip(
            [one for one in equations.sought if one.part == part], matrix[:, equations.unknowns(part)].T, strict=True
        )
        if not column.any()
    ]
