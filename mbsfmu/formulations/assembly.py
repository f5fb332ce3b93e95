"""Putting a mechanism together: start values onto the constraints, redundant constraints left out."""

from __future__ import annotations

import logging

import numpy as np
from scipy.linalg import qr

from mbsfmu.errors import InputError
from mbsfmu.formulations.functions import Floats, SystemFunctions

logger = logging.getLogger(__name__)

CLOSED = 1e-9
"""Largest violation in m and rad at which the loops count as closed."""
RANK_TOLERANCE = 1e-8
"""Singular values and pivots below this share of the largest count as zero."""
_STEP_LIMIT = 0.5  # a Gauss–Newton step moves no coordinate further than this in rad or m
_ITERATIONS = 100
_SAMPLES = 4
_SAMPLE_SPREAD = 0.05


def close_loops(functions: SystemFunctions, guess: Floats) -> Floats:
    """Return the coordinates on the constraints that are near the given ones.

    Gauss–Newton steps of least length, so that no coordinate is preferred; redundant and even dependent
    constraints do no harm.

    Parameters
    ----------
    functions
        Functions of the system, with its parameters set.
    guess
        Coordinates in rad and m, shape (n,).

    Raises
    ------
    InputError
        When the loops cannot be closed from there.
    """
    coordinates, violation = _approach(functions, guess)
    if len(violation) and (worst := np.argmax(np.abs(violation))) is not None:
        gap = abs(violation[worst])
        if not gap < CLOSED:
            raise InputError(
                f"{functions.system.name} cannot be assembled: from the given start values the loops come no "
                f"closer than {gap:.3g} at joint {functions.system.constraints[worst]}; "
                "check lengths, points and start values"
            )
    return coordinates


def _approach(functions: SystemFunctions, guess: Floats) -> tuple[Floats, Floats]:
    """Return the coordinates with the least violation found, and the violation."""
    coordinates = guess.copy()
    violation, jacobian = _closure_at(functions, coordinates)
    if not violation.size:
        return coordinates, violation
    for _ in range(_ITERATIONS):
        step = -np.linalg.lstsq(jacobian, violation, rcond=RANK_TOLERANCE)[0]
        step *= min(1.0, _STEP_LIMIT / max(np.max(np.abs(step), initial=0.0), _STEP_LIMIT))
        size, share = np.linalg.norm(violation), 1.0
        while share > 1e-3:
            trial_violation, trial_jacobian = _closure_at(functions, coordinates + share * step)
            if np.linalg.norm(trial_violation) < size:
                break
            share *= 0.5
        else:
            break  # no step makes it better: at round-off, or at a violation that stays
        coordinates, violation, jacobian = coordinates + share * step, trial_violation, trial_jacobian
    return coordinates, violation


def _closure_at(functions: SystemFunctions, coordinates: Floats) -> tuple[Floats, Floats]:
    functions.coordinates[:] = coordinates
    violation, jacobian = functions.all_closure()
    return violation.copy(), jacobian.copy()


def onto_velocity_constraints(functions: SystemFunctions, coordinates: Floats, velocities: Floats) -> Floats:
    """Return the velocities with Φ_z ż = 0 that are nearest to the given ones, shape (n,)."""
    violation, jacobian = _closure_at(functions, coordinates)
    if not violation.size:
        return velocities.copy()
    return velocities - np.linalg.lstsq(jacobian, jacobian @ velocities, rcond=RANK_TOLERANCE)[0]


def independent_rows(functions: SystemFunctions, coordinates: Floats) -> tuple[int, ...]:
    """Return the constraints that are left when redundant ones are dropped, and log what is dropped.

    The rank may be lower where a mechanism happens to start than nearby (a dead centre); configurations
    around the start are therefore looked at too, and the largest rank counts.

    Parameters
    ----------
    functions
        Functions of the system, with its parameters set.
    coordinates
        Coordinates on the constraints, shape (n,).
    """
    if not functions.system.constraints:
        return ()
    random = np.random.default_rng(20210611)
    jacobians = [_closure_at(functions, coordinates)[1]]
    for _ in range(_SAMPLES):
        nearby = coordinates + _SAMPLE_SPREAD * random.standard_normal(len(coordinates))
        closed, violation = _approach(functions, nearby)
        if np.max(np.abs(violation)) < CLOSED:
            jacobians.append(_closure_at(functions, closed)[1])
    rank = max(np.linalg.matrix_rank(jacobian, rtol=RANK_TOLERANCE) for jacobian in jacobians)
    # Rows that pivoted QR takes first over all configurations at once are independent in most of them.
    order = qr(np.hstack(jacobians).T, mode="r", pivoting=True)[1]
    kept = tuple(sorted(int(row) for row in order[:rank]))
    dropped = [name for row, name in enumerate(functions.system.constraints) if row not in kept]
    if dropped:
        logger.info(
            "%s: %d of %d loop equations are redundant and left out: %s",
            functions.system.name,
            len(dropped),
            len(functions.system.constraints),
            ", ".join(dropped),
        )
    return kept
