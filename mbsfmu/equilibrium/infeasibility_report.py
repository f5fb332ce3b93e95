"""Infeasibility report: unbalanced equations at the end of a search, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mbsfmu.equations.linear import RANK_TOLERANCE, null_space, pivot_columns
from mbsfmu.equilibrium.damped_newton import StaticEquilibrium
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.initial_guess import beyond_limits, within_reach
from mbsfmu.modelling.variables import with_unit
from mbsfmu.tracing.workspace import Floats

_MOST = 3
_LEAK = 0.1
"""Slope of regularised saturations for the test whether they affect other equations."""
_NO_EFFECT = 1e-9
"""Fraction of the largest effect on an equation below which others have none."""


def unbalanced(
    equations: EquilibriumEquations,
    rest: StaticEquilibrium,
    references: Mapping[str, str],
    fall: Mapping[str, tuple[float, str]],
) -> str:
    """Return the report: loads, rates, loops, fixed variables, and free variables without effect.

    If a search has merely failed, other guesses of free variables with an effect may help. They are not mentioned if
    fixed variables are the cause: if loops are open, or a length is outside its limits.

    Parameters
    ----------
    equations, rest
        The equations, whose functions are where the search has ended.
    references
        Variables as `system.variable`, by their names.
    fall
        Pressures in Pa that cannot last, by `system.variable`, with the reason in words.
    """
    reached = within_reach(equations, rest.unknowns)
    lengths = _lengths(equations, references) if reached else []
    ways = (_loads, _rates, _gaps) if reached else (_gaps,)
    reasons = lengths or next((sentences for way in ways if (sentences := way(equations, rest, references))), [])
    weak = [] if lengths or not reached else _too_weak(equations, rest, references, fall)
    reasons = [*reasons[:_MOST], *weak]
    without_effect = _idle(equations)
    idle = [references[name] for name in without_effect]
    if idle:
        reasons.append(
            f"{' and '.join(idle)} has no effect there" if len(idle) == 1 else f"{', '.join(idle)} have no effect there"
        )
    names = [references[each.variable.name] for each in equations.sought if each.variable.name not in without_effect]
    fails = (
        reached and not lengths and not weak and (bool(names) or not (equations.sought or _follows(equations, rest)))
    )
    return "; ".join(reasons) + (_advise_other_start_points(names) if fails else "")


def _advise_other_start_points(names: Sequence[str]) -> str:
    """Return the advice to give other guesses: of the free variables, or of the start."""
    by = f"guesses may lead to one, as by find={{'{names[0]}': …}} or --find {names[0]}=…" if names else ""
    by = by or "the start of the model is the guess, and another may lead to one"
    return f". This does not show that there is none, nor that what is missing there is the cause: {by}"


def _follows(equations: EquilibriumEquations, rest: StaticEquilibrium) -> bool:
    """Return whether the imbalance follows from loads, loops and fixed variables alone, so that no guess helps.

    This is the case if loads balance and no remaining freedom affects the changing state, such as an integral part
    driven by a fixed angle, or a leaking pressure that carries a load. Saturations are regularised for this test,
    because flow through a valve that is closed here may have an effect elsewhere. It is also the case if loads are
    unbalanced on which no remaining freedom has an effect.
    """
    if not _balanced(equations, rest):
        return _loads_follow(equations, rest)
    if (leaky := equations.leaky()) is not None:
        leaky[1][:] = _LEAK
    matrix, free = _left_free(leaky[0] if leaky else equations)
    wrong = [
        equations.rows(kind).start + np.flatnonzero(off)
        for kind in ("rates", "updates")
        for off in (_at_fault(equations, rest, kind),)
    ]
    return bool(np.max(np.abs(matrix[np.concatenate(wrong)] @ free), initial=0.0) < _NO_EFFECT)


def _loads_follow(equations: EquilibriumEquations, rest: StaticEquilibrium) -> bool:
    """Return whether the remaining freedom does not affect unbalanced loads."""
    balance, coordinates = equations.rows("balance"), equations.unknowns("coordinates")
    scaled = equations.finite_jacobian() * equations.scales
    loops = scaled[equations.rows("closure"), coordinates]
    moves = null_space(loops, RANK_TOLERANCE) if len(loops) else np.eye(coordinates.stop - coordinates.start)
    off = np.abs(moves.T @ rest.residual[balance]) > np.max(rest.allowed[balance], initial=0.0)
    given = np.concatenate([np.r_[equations.rows(kind)] for kind in ("closure", "held")]).astype(np.intp)
    effect = moves.T @ scaled[balance] @ null_space(_of_size_one(scaled)[given], RANK_TOLERANCE)
    return bool(np.max(np.abs(effect[off]), initial=0.0) < _NO_EFFECT * equations.largest_load())


def _too_weak(
    equations: EquilibriumEquations,
    rest: StaticEquilibrium,
    references: Mapping[str, str],
    fall: Mapping[str, tuple[float, str]],
) -> list[str]:
    """Return the pressures that loads determine and sources cannot supply, with the reason."""
    if not fall or not _balanced(equations, rest):
        return []
    free, states = _left_free(equations)[1], equations.functions.system.states
    rates = -np.linalg.pinv(equations.rates) @ _at_fault(equations, rest, "rates")
    sentences = []
    for index in _largest(rates, equations.scales[equations.unknowns("states")]):
        name = references[states[index].name].rpartition(".")[0] + ".pressure"
        moves = np.max(np.abs(free[equations.unknowns("states")][index]), initial=0.0)
        if name in fall and rates[index] < 0.0 and moves < _NO_EFFECT:
            needed, reason = fall[name]
            sentences.append(f"{name} has to be {needed:.4g} Pa to carry the loads, and {reason}")
    return sentences


def _balanced(equations: EquilibriumEquations, rest: StaticEquilibrium) -> bool:
    balance = equations.rows("balance")
    return bool(np.all(np.abs(rest.residual[balance]) <= rest.allowed[balance]))


def _left_free(equations: EquilibriumEquations) -> tuple[Floats, Floats]:
    """Return the row-scaled Jacobian, and the directions that loads, loops and fixed variables leave free."""
    matrix = _of_size_one(equations.finite_jacobian() * equations.scales)
    given = np.concatenate([np.r_[equations.rows(kind)] for kind in ("balance", "closure", "held")]).astype(np.intp)
    return matrix, null_space(matrix[given], RANK_TOLERANCE)


def _of_size_one(matrix: Floats) -> Floats:
    sizes = np.max(np.abs(matrix), axis=1, initial=0.0)
    return matrix / np.where(sizes > 0.0, sizes, 1.0)[:, None]


def _lengths(equations: EquilibriumEquations, references: Mapping[str, str]) -> list[str]:
    """Return the lengths, such as those of cylinders, that are outside their limits because of fixed variables."""
    return [
        f"{references.get(variable.name, variable.name)} is {value:.6g} m, which must be between {low:g} and {high:g} m"
        for variable, value, low, high in (beyond_limits(equations) if equations.held else ())
    ]


def _loads(equations: EquilibriumEquations, rest: StaticEquilibrium, references: Mapping[str, str]) -> list[str]:
    """Return the unbalanced coordinates, and the missing loads."""
    rows = equations.rows("balance")
    off, allowed = rest.residual[rows], rest.allowed[rows]
    if np.all(np.abs(off) <= allowed):
        return []
    functions, system = equations.functions, equations.functions.system
    loops, mass = functions.closure()[1], functions.equilibrium()[0]
    free = null_space(loops, RANK_TOLERANCE)
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
            f"{abs(load):.4g} {unit} are missing at {references[coordinate.name]}, whose acceleration would be "
            f"{begun[index]:.3g} {acceleration.unit}"
        )
    return sentences


def _rates(equations: EquilibriumEquations, rest: StaticEquilibrium, references: Mapping[str, str]) -> list[str]:
    """Return the states that would change, and discrete states with each update."""
    off = _at_fault(equations, rest, "rates")
    states, scales = equations.functions.system.states, equations.scales
    rates = _without_followers(equations, -np.linalg.pinv(equations.rates) @ off)
    reasons = [
        f"{references[states[index].name]} would change by {rates[index]:.3g} {states[index].unit}/s"
        for index in _largest(rates, scales[equations.unknowns("states")])
    ]
    off, discrete = _at_fault(equations, rest, "updates"), equations.functions.system.discrete
    for index in _largest(off, scales[equations.unknowns("discrete")]):
        change = with_unit(float(off[index]), discrete[index])
        reasons.append(f"{references[discrete[index].name]} would change by {change} with each update")
    return reasons


def _at_fault(equations: EquilibriumEquations, rest: StaticEquilibrium, kind: str) -> Floats:
    """Return the infeasible part of the residuals of a kind; the residuals themselves if that is zero."""
    rows = equations.rows(kind)
    for off in (rest.conflict[rows], rest.residual[rows]):
        counts = np.abs(off) > rest.allowed[rows]
        if counts.any():
            return np.where(counts, off, 0.0)
    return np.zeros(rows.stop - rows.start)


def _without_followers(equations: EquilibriumEquations, rates: Floats) -> Floats:
    """Return rates without those of states on which nothing depends at the present point.

    Unchanged if all are of this kind.
    """
    first = equations.rows("closure").stop
    states = equations.unknowns("states")
    matrix = equations.unreduced_jacobian()
    own = first + np.arange(len(rates))
    effects = matrix[:, states] != 0.0
    following = np.zeros(len(rates), dtype=bool)
    while True:
        others = effects.copy()
        others[own, np.arange(len(rates))] = False
        others[own[following]] = False
        more = ~others.any(axis=0) & effects[own, np.arange(len(rates))]
        if np.array_equal(more, following):
            break
        following = more
    kept = np.where(following, 0.0, rates)
    return kept if kept.any() else rates


def _largest(changes: Floats, scales: Floats) -> list[int]:
    """Return the indices of the largest changes in magnitudes, without negligible ones."""
    shares = np.abs(changes) / scales
    least = 1e-6 * np.max(shares, initial=0.0)
    return [index for index in np.argsort(-shares, kind="stable")[:_MOST].tolist() if shares[index] > least]


def _gaps(equations: EquilibriumEquations, rest: StaticEquilibrium, references: Mapping[str, str]) -> list[str]:
    """Return the open loops, and the fixed variables that are not at their values."""
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
                f"{references[each.variable.name]} is {with_unit(each.value + off, each.variable)} where "
                f"{with_unit(each.value, each.variable)} was to be held"
            )
    return sentences


def _idle(equations: EquilibriumEquations) -> list[str]:
    """Return the free variables without effect."""
    matrix = equations.jacobian()
    return [
        each.variable.name
        for part in ("inputs", "parameters")
        for each, column in zip(
            [one for one in equations.sought if one.part == part], matrix[:, equations.unknowns(part)].T, strict=True
        )
        if not column.any()
    ]
