"""Linearized motion about an equilibrium."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.errors import SimulationError
from mbsfmu.equations.linear import RANK_TOLERANCE, null_space
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.neighbouring_equilibria import leads_to_equilibrium
from mbsfmu.systems.capabilities import CanonicalMomenta, require_capability
from mbsfmu.tracing.workspace import Floats

GROWING = 1e-6
"""Growth rate in 1/s below which growth is round-off."""
_DIGITS = 100.0
"""Factor of accumulated round-off over that of one number."""
_TRIALS = 4
"""Number of perturbations of K within its round-off."""
_SURE = 0.5
"""Relative change of eigenvalues that count as zero."""
_MOST_NAMES = 3
"""Largest number of coordinates named in a message."""
_PARALLEL = 1e-6
"""Cosine of the angle between left and right null vectors below which they are perpendicular."""


@dataclass(frozen=True)
class MotionAboutEquilibrium:
    """Small motions about an equilibrium, by linearization.

    Attributes
    ----------
    eigenvalues
        In 1/s, those with the greatest real part first; shape (number,).
    drifts
        Whether a motion goes on at its own speed, for nothing brings it back or brakes it: a zero eigenvalue with fewer
        eigenvectors than its multiplicity. The linear part does not tell then whether it grows.
    undecided
        Whether there is a zero eigenvalue that leads along no line of other positions of rest, as where a spring gives
        way with the cube of its length: what the linear part leaves out decides then.
    """

    eigenvalues: NDArray[np.complex128]
    drifts: bool
    undecided: bool

    @property
    def lingers(self) -> bool:
        """Whether a motion neither grows nor decays, or nearly so, as near a closing valve."""
        return bool(np.min(np.abs(self.eigenvalues), initial=np.inf) <= GROWING)


def motion_about_equilibrium(equations: EquilibriumEquations) -> MotionAboutEquilibrium:
    """Return the small motions about an equilibrium.

    With directions N that the loops leave free (Φ_z N = 0), z = z₀ + N q: NᵀMN q̈ + NᵀDN q̇ + NᵀKN q + NᵀB x = 0 and
    ẋ = R N q + V N q̇ + W N q̈ + A x, where K has the curvature of the loops, λ Φ_zz. States without an equation stay.

    Parameters
    ----------
    equations
        The equations, whose functions are at rest.

    Raises
    ------
    SimulationError
        When coordinates are at the end of what they describe, as three successive angles with the second at π/2.
    """
    matrix_of, stiffness = _linear_motion(equations)
    off = _round_off(equations, stiffness)
    found = _without_round_off(matrix_of, stiffness, off)
    zeros = np.count_nonzero(np.abs(found) <= GROWING)
    # What round-off leaves would be balanced against the ones of the velocities, and either be as good as zero then.
    cleared = matrix_of(np.where(np.abs(stiffness) <= off, 0.0, stiffness), _DIGITS * np.finfo(float).eps)
    drifts = zeros > 1 and _is_defective(cleared)
    undecided = zeros > 0 and not leads_to_equilibrium(equations)
    return MotionAboutEquilibrium(found[np.lexsort((found.imag, -found.real))], bool(drifts), bool(undecided))


def _linear_motion(equations: EquilibriumEquations) -> tuple[Callable[..., Floats], Floats]:
    """Return the matrix of the motion in (q, q̇, x) as a function of K, and K itself.

    A second argument is the fraction of the largest derivative of accelerations below which others are zero.
    """
    mass = equations.functions.equilibrium()[0].copy()
    damping, driven, by_accelerations = (each.copy() for each in equations.by_velocities())
    jacobian = equations.unreduced_jacobian()
    n, states = len(mass), np.delete(np.arange(len(driven)), equations.left)
    first = n + len(equations.functions.multipliers)
    loops = jacobian[n:first, :n]
    free = null_space(loops, RANK_TOLERANCE)
    balance, rates = jacobian[:n], -jacobian[first + states]
    count, moving = free.shape[1], first + states
    inertia = _inverse(equations, free, free.T @ mass @ free)
    scales = equations.scales[equations.unknowns("states")][states]
    matrix = np.zeros((2 * count + len(states),) * 2)
    matrix[:count, count : 2 * count] = np.eye(count)
    matrix[count : 2 * count, count : 2 * count] = -inertia @ (free.T @ damping @ free)
    matrix[count : 2 * count, 2 * count :] = -inertia @ (free.T @ balance[:, moving]) * scales
    matrix[2 * count :, :count] = rates[:, :n] @ free / scales[:, None]
    matrix[2 * count :, count : 2 * count] = driven[states] @ free / scales[:, None]
    matrix[2 * count :, 2 * count :] = rates[:, moving] * scales / scales[:, None]

    def with_stiffness(stiffness: Floats, least: float = 0.0) -> Floats:
        result, accelerations = matrix.copy(), -inertia @ (free.T @ stiffness @ free)
        sizes = np.abs(accelerations)
        result[count : 2 * count, :count] = np.where(sizes > least * np.max(sizes, initial=0.0), accelerations, 0.0)
        result[2 * count :] += by_accelerations[states] @ free / scales[:, None] @ result[count : 2 * count]
        return result

    return with_stiffness, balance[:, :n]


def _round_off(equations: EquilibriumEquations, stiffness: Floats) -> Floats:
    """Return the round-off of the elements of K, shape (n, n).

    The magnitude of canceling loads is the largest element in the row and column. Residual loads of the search rotate
    with the coordinates, and contribute their size per radian.
    """
    sizes = np.maximum(np.max(np.abs(stiffness), axis=0, initial=0.0), np.max(np.abs(stiffness), axis=1, initial=0.0))
    left = np.abs(equations.residual()[: len(stiffness)])
    return _DIGITS * (np.finfo(float).eps * np.sqrt(np.outer(sizes, sizes)) + np.maximum.outer(left, left))


def _without_round_off(matrix_of: Callable[[Floats], Floats], stiffness: Floats, off: Floats) -> NDArray[np.complex128]:
    """Return the eigenvalues, with zero for those within the round-off of zeros.

    An error ε of K moves a double zero by √(ε/m), as for a bar that spins about its axis, where m is small, and a
    single eigenvalue λ by ε / (2 m λ) only. The sensitivity to errors of K separates the two.
    """
    found = np.linalg.eigvals(matrix_of(stiffness)).astype(np.complex128)
    generator, moved = np.random.default_rng(0), np.zeros(len(found))
    for _ in range(_TRIALS):
        others = np.linalg.eigvals(matrix_of(stiffness + off * generator.choice((-1.0, 1.0), off.shape)))
        moved = np.maximum(moved, np.min(np.abs(others - found[:, None]), axis=1, initial=np.inf))
    found[moved > _SURE * np.abs(found)] = 0.0
    return found


def _is_defective(matrix: NDArray[np.float64]) -> bool:
    """Return whether the eigenvalue zero is defective.

    It is not if left and right null vectors, Y and X, have a regular YᵀX.
    """
    from scipy.linalg import matrix_balance  # noqa: PLC0415 - runs that ask for no equilibrium start without SciPy

    with np.errstate(invalid="ignore"):  # SciPy makes integers of scales, as of permutations that are not asked for
        balanced = np.asarray(matrix_balance(matrix, permute=False)[0], dtype=np.float64)
    right = null_space(balanced, RANK_TOLERANCE)
    left = null_space(balanced.T, RANK_TOLERANCE)
    if not right.shape[1] or right.shape != left.shape:
        return False
    return bool(np.min(np.linalg.svd(left.T @ right, compute_uv=False)) < _PARALLEL)


def rates_about_equilibrium(equations: EquilibriumEquations) -> tuple[float, float]:
    """Return the rates in 1/s of the fastest growing and of the slowest motion.

    Both are infinite for singular coordinates, the second without motion.
    """
    try:
        found = motion_about_equilibrium(equations).eigenvalues
    except SimulationError:
        return np.inf, np.inf
    return float(np.max(found.real, initial=-np.inf)), float(np.min(np.abs(found), initial=np.inf))


def _inverse(
    equations: EquilibriumEquations, free: NDArray[np.float64], mass: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the inverse of the mass matrix in free directions, or raise an error on missing inertia.

    Relative to the inertias of single bodies, the mass matrix of a chain is equally far from singular for any length;
    its own eigenvalues decrease as the fourth power of the number of links, or faster.
    """
    if not len(mass):
        return mass
    from scipy.linalg import eigh  # noqa: PLC0415 - as there

    functions = equations.functions
    own = require_capability(functions.system, CanonicalMomenta).own_inertias(functions.numeric_instant())
    sizes, turned = eigh(mass, free.T @ (own[:, None] * free))
    if sizes[0] > RANK_TOLERANCE:
        return np.asarray(np.linalg.inv(mass), dtype=np.float64)
    moved = np.abs(free @ turned[:, 0])
    coordinates = functions.system.coordinates
    named = [each.name for each, share in zip(coordinates, moved, strict=True) if share > 0.1 * np.max(moved)]
    others = [f"{len(named) - _MOST_NAMES} others"] if len(named) > _MOST_NAMES else []
    raise SimulationError(
        f"{functions.system.name}: at rest {' and '.join([*named[:_MOST_NAMES], *others])} can change without inertia, "
        "as where the first and third of three angles turn about one axis; give the joint an orientation near where it "
        "rests"
    )
