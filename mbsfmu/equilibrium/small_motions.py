"""Linearized motion about an equilibrium: stability, and volumes with undetermined pressures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from hydraulics import Circuit
from hydraulics.component import PortKind, Stage
from mbsfmu.base.errors import SimulationError
from mbsfmu.equations.linear import RANK_TOLERANCE, null_space
from mbsfmu.equilibrium.damped_newton import CONVERGED, RANK, allowed_at, residual_at, weights_of
from mbsfmu.equilibrium.equilibrium_equations import EquilibriumEquations
from mbsfmu.equilibrium.initial_guess import least_squares
from mbsfmu.model.model_data import circuits_of
from mbsfmu.systems.system import CanonicalMomenta, require_capability
from mbsfmu.tracing.workspace import Floats

_ASIDE = 0.03
"""Distance of a neighbouring equilibrium, in magnitudes."""
_BENT = 0.1
"""Largest curvature of a line of equilibria, relative to this distance."""


def leads_to_equilibrium(equations: EquilibriumEquations) -> bool:
    """Return whether null directions lead to other equilibria; the functions are at one.

    Along a line or plane of equilibria a motion neither grows nor decays. If there is none, as with a spring force
    cubic in its length, the correction reverses the whole offset.

    Parameters
    ----------
    equations
        The equations; what is held, and what is asked for, does not count.
    """
    here, states = equations.present(), equations.unknowns("states")
    columns = np.delete(np.arange(states.stop), [states.start + index for index in equations.left])
    rows = np.arange(equations.rows("rates").stop)
    scaled = equations.finite_jacobian() * equations.scales
    weights = weights_of(equations, scaled, {})[rows]
    free = null_space(scaled[np.ix_(rows, columns)] * weights[:, None], RANK)
    moves = np.zeros((free.shape[1] + 1, len(here)))
    moves[:, columns] = np.vstack([free.T, free.sum(axis=1)])
    try:
        return all(_is_beside(equations, here, move, rows, columns) for move in moves)
    finally:
        equations.load(here)


def _is_beside(
    equations: EquilibriumEquations, here: Floats, move: Floats, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> bool:
    """Return whether there is an equilibrium along a direction, within the allowed curvature."""
    counts = np.ones(len(here), dtype=bool)
    counts[equations.unknowns("multipliers")] = False
    size = float(np.max(np.abs(move[counts]), initial=0.0))
    if size < CONVERGED:
        return True
    step = _ASIDE / size * move
    there = least_squares(equations, here + step * equations.scales, rows, columns)
    residual = residual_at(equations, there)
    if residual is None:
        return False
    allowed = allowed_at(equations, there, equations.jacobian())
    if np.any(np.abs(residual[rows]) > allowed[rows]):
        return False
    back = (there - here) / equations.scales - step
    return bool(np.max(np.abs(back[counts])) < _BENT * _ASIDE)


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


MARGIN = 1.05
"""Factor above source pressures, which excludes the overflow of relief valves."""


def above_sources(
    systems: Mapping[str, object],
    numbers: Mapping[str, float],
    values: Mapping[str, float],
    margin: float = MARGIN,
) -> dict[str, float]:
    """Return node pressures above those that the sources of their circuit can supply, with the latter in Pa.

    Circuits with an unlimited source, such as a pump without a relief valve, are skipped.

    Parameters
    ----------
    systems
        Those of the model.
    numbers
        Parameters and inputs by `system.variable`.
    values
        What is read at rest, by `system.variable`.
    margin
        By which factor they are above.
    """
    found: dict[str, float] = {}
    for name, data in circuits_of(systems).items():
        pressures = {f"{name}.{node}.pressure": node for node in data.volume_nodes}
        known = {reading: values[reading] for reading in pressures if reading in values}
        bound = _highest(name, data, numbers, {pressures[reading]: value for reading, value in known.items()})
        if bound > 0.0:  # tanks alone pump nothing
            found |= {reading: bound for reading, value in known.items() if value > margin * bound}
    return found


def _highest(name: str, circuit: Circuit, numbers: Mapping[str, float], pressures: Mapping[str, float]) -> float:
    """Return the highest pressure of a circuit's sources, including those of their nodes."""
    owns = {each: _numbers_of(f"{name}.{each.name}.", numbers) for each in circuit.components}
    relieved = max((low for each, own in owns.items() if isfinite(low := each.relieving_pressure(own))), default=inf)
    sources = [each for each in circuit.components if each.stage is Stage.SOURCE]
    at_nodes = [pressures[node] for each in sources for node in each.nodes(PortKind.THROUGH) if node in pressures]
    return max([*(_given(each.highest_pressure(own), relieved) for each, own in owns.items()), *at_nodes], default=inf)


def relief_of(systems: Mapping[str, object], numbers: Mapping[str, float], circuit: str) -> str:
    """Return the valve that limits the pumps of a circuit, in words; empty without one.

    Parameters
    ----------
    systems, numbers
        As for `above_sources`.
    circuit
        Its name.
    """
    found: dict[str, float] = {}
    for each in circuits_of(systems)[circuit].components:
        own = _numbers_of(f"{circuit}.{each.name}.", numbers)
        if isfinite(low := each.relieving_pressure(own)):
            found[each.name] = low
        elif isfinite(each.highest_pressure(own)) and each.highest_pressure(own) > 0.0:
            return ""  # a source that is limited by itself
    if not found:
        return ""
    name, limit = max(found.items(), key=lambda each: each[1])
    return f": {circuit}.{name} lets go what they give at {_describe_limit(f'{circuit}.{name}', limit, numbers)}"


def open_reliefs(
    systems: Mapping[str, object], numbers: Mapping[str, float], values: Mapping[str, float]
) -> dict[str, str]:
    """Return the open relief valves by node pressure, with their opening pressures, in words.

    Parameters
    ----------
    systems, numbers, values
        As for `above_sources`.
    """
    found: dict[str, str] = {}
    for circuit, data in circuits_of(systems).items():
        for each in data.components:
            name, inlet = f"{circuit}.{each.name}", f"{circuit}.{each.ports().get('inlet')}.pressure"
            limit = each.relieving_pressure(_numbers_of(f"{name}.", numbers))
            if isfinite(limit) and inlet in values and values.get(f"{name}.flow", 0.0) > 0.0:
                found[inlet] = f"{name} lets oil go there at {_describe_limit(name, limit, numbers)}"
    return found


def _describe_limit(valve: str, limit: float, numbers: Mapping[str, float]) -> str:
    """Return the opening pressure of a valve in words: its setting, if it has one."""
    setting = numbers.get(f"{valve}.setting")
    return f"{limit:.4g} Pa" if setting is None else f"its setting of {setting:.4g} Pa and its override"


def _given(highest: float, relieved: float) -> float:
    return highest if isfinite(highest) else relieved


def _numbers_of(prefix: str, numbers: Mapping[str, float]) -> dict[str, float]:
    return {name.removeprefix(prefix): value for name, value in numbers.items() if name.startswith(prefix)}


def describe_pressures_above(above: Mapping[str, float], values: Mapping[str, float]) -> str:
    """Return a sentence on pressures above those of all sources; empty without any.

    Parameters
    ----------
    above
        What `above_sources` returns.
    values
        What is read at rest, in Pa, by `system.variable`.
    """
    if not above:
        return ""
    named = [
        f"{name} is {values[name]:.4g} Pa, and sources of its circuit bring about {bound:.4g} Pa"
        for name, bound in above.items()
    ]
    return (
        f"{'; '.join(named)}: loads, or oil that is shut in, hold more, and other guesses may lead to other pressures"
    )
