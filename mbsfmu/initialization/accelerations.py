"""Accelerations and multipliers, and balancing inputs of static equilibrium."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mbsfmu.equations.linear import RANK_TOLERANCE, null_space, pivot_columns, pivot_lengths
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import Floats

UNBALANCED = 1e-9
"""Unbalanced load relative to the largest load, or to one N or N m, above which a warning is given."""
UNDETERMINED = 1e-2
"""Share of what counts as near a change point, within which errors of velocities decide what multipliers are; further
off they are what a loop with a weak direction transmits."""
AT_REST = 1e-6
"""Share of the motion that a part would begin without them up to which what connections carry holds it."""


@dataclass(frozen=True)
class Unheld:
    """A part that its actuators and given inputs cannot hold at the start.

    Attributes
    ----------
    message
        That in a sentence.
    acceleration
        The largest that would begin, in m/s² or rad/s².
    """

    message: str
    acceleration: float

    def holds(self, velocities: Floats, accelerations: Floats) -> bool:
        """Return whether it is also unbalanced in the whole system, where connections may carry the load.

        Parameters
        ----------
        velocities, accelerations
            Of the whole, where it starts.
        """
        largest = float(np.max(np.abs(accelerations), initial=0.0))
        return bool(velocities.any()) or largest > AT_REST * abs(self.acceleration)


def accelerations(
    functions: SystemFunctions, scales: Floats | None = None, near: float = 0.0
) -> tuple[Floats, Floats, Floats]:
    """Return z̈, λ and ẋ at the coordinates, velocities, states and inputs that the functions hold.

    Solves M z̈ + Φ_zᵀ λ = Q, Φ_z z̈ = −Φ̇_z ż; least squares where that is singular. Where loop equations are
    redundant, λ is the shortest of all that have the same effect.

    Parameters
    ----------
    functions
        Functions of the system.
    scales
        By which the elements of Φ_z are divided so that they are the same in all units and sizes, shape (m, n). Where
        they are given, equations that nearly follow from others at a change point are left out: multipliers that grow
        without bound as it is neared are of no use to steps that pass it.
    near
        Share by which an equation that is left out stands out of the span of the others at most.
    """
    mass, rest, rates, _ = functions.equilibrium()
    jacobian, quadratic = functions.closure()[1], functions.quadratic()[0]
    if scales is not None and functions.rank:
        columns = (jacobian / scales).T
        lengths = pivot_lengths(columns)
        count = np.count_nonzero(lengths > near * lengths[0])
        if count < functions.rank:
            kept = pivot_columns(columns)[1][:count]
            found, multipliers = _with_rows(kept, mass, jacobian, rest, quadratic)
            if functions.redundant:
                multipliers = shortest(jacobian, jacobian.T @ multipliers)
            return found, multipliers, _rates_at(functions, found, rates)
    solve = _along_free_directions if functions.redundant else _saddle
    found, multipliers = solve(mass, jacobian, rest, quadratic)
    return found, multipliers, _rates_at(functions, found, rates)


def _rates_at(functions: SystemFunctions, found: Floats, rates: Floats) -> Floats:
    """Return ẋ, anew where it depends on the accelerations that have been found; the functions hold these then."""
    if not functions.rates_by_accelerations:
        return rates.copy()
    functions.accelerations[:] = found
    return functions.state_rates()[0].copy()


def shortest(jacobian: Floats, effect: Floats) -> Floats:
    """Return the multipliers of least norm with Φ_zᵀ λ as given, shape (m,)."""
    return np.asarray(np.linalg.lstsq(jacobian.T, effect, rcond=RANK_TOLERANCE)[0], dtype=np.float64)


def _with_rows(
    rows: np.typing.NDArray[np.intp], mass: Floats, jacobian: Floats, rest: Floats, quadratic: Floats
) -> tuple[Floats, Floats]:
    """Solve the same with some independent equations alone; the others get no multipliers."""
    found, held = _saddle(mass, jacobian[rows], rest, quadratic[rows])
    multipliers = np.zeros(len(quadratic))
    multipliers[rows] = held
    return found, multipliers


def _saddle(mass: Floats, jacobian: Floats, rest: Floats, quadratic: Floats) -> tuple[Floats, Floats]:
    n, m = len(rest), len(quadratic)
    matrix = np.zeros((n + m, n + m))
    matrix[:n, :n], matrix[:n, n:], matrix[n:, :n] = mass, jacobian.T, jacobian
    right = -np.concatenate([rest, quadratic])
    solution: Floats
    try:
        solution = np.linalg.solve(matrix, right).astype(np.float64)
    except np.linalg.LinAlgError:
        solution = np.linalg.lstsq(matrix, right, rcond=None)[0].astype(np.float64)
    return solution[:n], solution[n:]


def _along_free_directions(mass: Floats, jacobian: Floats, rest: Floats, quadratic: Floats) -> tuple[Floats, Floats]:
    """Solve the same with one singular value decomposition, which no choice of equations precedes."""
    left, sizes, turned = np.linalg.svd(jacobian)
    rank = int(np.sum(sizes > RANK_TOLERANCE * sizes[0]))
    left, sizes, held, free = left[:, :rank], sizes[:rank], turned[:rank].T, turned[rank:].T
    driven = held @ ((quadratic @ left) / -sizes)
    load = rest + mass @ driven
    found = driven - free @ np.linalg.solve(free.T @ mass @ free, load @ free)
    return found, left @ (((rest + mass @ found) @ held) / -sizes)


def _first_accelerations(functions: SystemFunctions, jacobian: Floats, load: Floats) -> Floats:
    """Return the accelerations N (Nᵀ M N)⁻¹ Nᵀ F that a load begins without motion, shape (n,)."""
    if not functions.in_loops:
        free, mass = null_space(jacobian, RANK_TOLERANCE), functions.equilibrium()[0]
        first_motion: Floats = free @ np.linalg.lstsq(free.T @ mass @ free, free.T @ load, rcond=RANK_TOLERANCE)[0]
        return first_motion

    def freed(load: Floats) -> Floats:
        functions.momenta[:] = load
        first_motion = np.array(functions.freed()[0])
        functions.momenta[:] = 0.0
        return first_motion

    first_motion = freed(load)
    if len(jacobian):
        pushed = np.stack([freed(row) for row in jacobian])
        first_motion = (
            first_motion
            - np.linalg.lstsq(jacobian @ pushed.T, jacobian @ first_motion, rcond=RANK_TOLERANCE)[0] @ pushed
        )
    return first_motion


def balance(functions: SystemFunctions, given: Floats) -> tuple[list[float], Unheld | None]:
    """Return the values of the balancing inputs that keep the system at rest, and what they cannot hold.

    At rest, −Q(z, 0, u) + Φ_zᵀ λ = 0, linear in the forces u. In the directions N that the constraints leave
    free (Φ_z N = 0) the multipliers vanish. Of several solutions the one of least forces is taken; where there
    is none (fewer actuators than degrees of freedom), the nearest. Which load then stays depends on the choice of N,
    the motion that it begins does not: N (Nᵀ M N)⁻¹ Nᵀ Q.

    Parameters
    ----------
    functions
        Functions of the system, which hold where it starts.
    given
        What its inputs are there, shape (number of inputs,), zero where that is not known. Those that balance do not
        count.

    Returns
    -------
    tuple
        The values, in the order of `balances`, and what they cannot hold, where the system does not stay at rest.
    """
    system = functions.system
    columns = [[each.name for each in system.inputs].index(name) for _, name in system.balances]
    functions.velocities[:] = 0.0
    others = np.where(np.isin(np.arange(len(given)), columns), 0.0, given)
    functions.inputs[:] = others
    rest, by_inputs = functions.standing()
    jacobian = functions.closure()[1]
    loads = np.column_stack([rest, by_inputs.reshape(len(columns), -1).T])
    # What constraints carry is taken off: what is left lies in the directions N.
    loads = loads - jacobian.T @ np.linalg.lstsq(jacobian.T, loads, rcond=RANK_TOLERANCE)[0]
    matrix, right = loads[:, 1:], -loads[:, 0]
    forces = np.linalg.lstsq(matrix, right, rcond=RANK_TOLERANCE)[0]
    left, unheld = right - matrix @ forces, None
    if np.linalg.norm(left) > UNBALANCED * max(np.max(np.abs(rest)), 1.0):
        alone = "and inputs as they are given" if others.any() else "alone"
        first_motion = _first_accelerations(functions, jacobian, left)
        first = int(np.argmax(np.abs(first_motion)))
        variable = system.accelerations[first]
        unheld = Unheld(
            f"{system.name}: actuators {alone} cannot keep it in static equilibrium at the start; "
            f"{variable.name} would be {first_motion[first]:.3g} {variable.unit}",
            float(first_motion[first]),
        )
    return [float(force) for force in forces], unheld
