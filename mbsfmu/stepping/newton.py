"""Newton's iteration for the equations of a step, with reused iteration matrices [Jaiswal2021, eq. 37].

The inverse of an iteration matrix serves several increments and several steps. Increments then decrease by a ratio that
is measured (Hairer and Wanner, Solving Ordinary Differential Equations II, sect. IV.8). After an increment of size d
the error is at most d r / (1 - r) with the ratio r; this, not the increment itself, must be negligible relative to the
tolerance. An iteration matrix is refreshed if this is less expensive than to continue.

Written once, in the language of steps (`mbsfmu.stepping.language`): the interpreter runs it, and C of FMUs, of runs in
process and of ensembles is made of it. A group shares iteration matrices; what is accepted is decided by machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from mbsfmu.stepping.iteration import LIGHT, SMALL, STILL
from mbsfmu.stepping.language import (
    Mask,
    Passing,
    PassingReals,
    Real,
    Reals,
    Table,
    Text,
    absolute,
    anywhere,
    divided,
    is_finite,
    maximum,
    one_machine,
    where,
)

SLOW = 0.3
"""Convergence ratio above which an iteration matrix is refreshed at any cost."""

FADING = 0.3
"""Weight of a ratio in the estimate of the next one: single ratios may be far off by chance."""

FRESH = 1.0
"""Expected evaluations of an iteration after a refresh."""

STAGNATION = 0.5
"""Convergence ratio above which an iteration stagnates."""

ROUND_OFF = 1e-10
"""Increments below this fraction of the magnitudes that no longer decrease are round-off, for any tolerance."""

FLOOR = 1e-13
"""The same with an iteration matrix of an earlier step, with which increments may decrease slowly …"""

FAST = 0.1
"""… unless the ratio so far was below this."""

NEAR = 1e-6
"""Fraction of the magnitudes up to which stagnating increments are attributed to the tolerance; above it the iteration
fails for any tolerance.
"""


@dataclass
class Iteration:
    """An iteration; of a group, all its machines."""

    unknowns: Annotated[Reals, "ALL_UNKNOWNS"]
    residual: Annotated[PassingReals, "ALL_UNKNOWNS"]
    increment: Annotated[PassingReals, "ALL_UNKNOWNS"]
    made: Any = None  # where an iteration matrix is made, with as much room behind it to work on
    inverse: Any = None  # of the iteration matrix that was used last
    rate: Passing = 0.0  # by which increments shrink with it; 0 where that is not known yet
    count: int = 0  # increments …
    iteration_matrices: int = 0  # … iteration matrices, and …
    evaluations: int = 0  # … evaluations of the residual until now
    increments: Real = 0.0  # of each machine
    spent: float = 0.0  # on all of it, in evaluations
    own: bool = True  # the next increment is the first of an iteration matrix that is made where it begins
    evaluated: bool = False  # the residual was last evaluated at the unknowns
    first: Real = 0.0  # the largest residual at the guess
    weight: Passing = 1.0  # of errors of coordinates
    unconverged: Real = 0.0  # the increment that would come next by its tolerances; 0 where it converged
    size: Passing = 0.0  # of the increment, by the tolerances
    counted: Passing = 0.0  # what counts of it


class Motion(Protocol):
    """Where a step begins."""

    coordinates: Reals
    velocities: Reals


class Problem(Protocol):
    """The equations of a step."""

    guess: Reals


class Machine(Protocol):
    """A machine, or a group of them."""

    COORDINATES: int
    UNKNOWNS: int  # of which the last are states; multipliers, which have no tolerances, follow
    ALL_UNKNOWNS: int
    STATES: int
    MOST_INCREMENTS: int  # after which the iteration ends wherever it is; 0 where it has to converge
    NEWTON_ITERATIONS: int  # iteration matrices in a step before it is given up
    REFRESH_COST: float  # of an iteration matrix, in evaluations of the residual
    REMAINING: float  # fraction of the tolerances that may remain
    HEAVIEST: float  # weight of errors of coordinates
    unknown_nominals: Table
    unknown_tolerances: Table
    state: Motion

    def begin(self, problem: Problem, step: Real) -> None:
        """Set where the step begins, and predict its end."""
        ...

    def evaluate(self, problem: Problem, unknowns: Reals, residual: PassingReals) -> Mask:
        """Evaluate the residual; returns whether it can be, else there is a reason."""
        ...

    def make_matrix(self, iteration: Iteration) -> Mask:
        """Make the iteration matrix where the residual was last evaluated; returns whether it is regular."""
        ...

    def solve_matrix(self, iteration: Iteration) -> None:
        """Solve for the increment, with the other sign."""
        ...

    def reuse_iteration_matrix(self, step: Real, iteration: Iteration) -> None:
        """Begin with the iteration matrix of an earlier step where it serves for this one, else with one's own."""
        ...

    @one_machine
    def loops_hold(self) -> Mask:
        """Return whether loops are closed, else there is a reason."""
        ...

    @one_machine
    def fail(self, sentence: Text, *values: object) -> None:
        """Say why a step fails."""
        ...

    @one_machine
    def unknown_name(self, i: int) -> Text:
        """Return the name of an unknown."""
        ...


def magnitude_of(machine: Machine, iteration: Iteration, i: int) -> Real:
    """Return the magnitude of an unknown, at least its nominal value."""
    return maximum(machine.unknown_nominals[i], absolute(iteration.unknowns[i]))


def share_of(machine: Machine, iteration: Iteration, i: int) -> Real:
    """Return an increment relative to its tolerance."""
    return absolute(iteration.increment[i]) / (machine.unknown_tolerances[i] * magnitude_of(machine, iteration, i))


def weigh_errors(machine: Machine, step: Real, iteration: Iteration) -> None:
    """Weigh errors of coordinates by their first increment, except at rest."""
    moves: Mask = False
    for j in range(machine.COORDINATES):
        magnitude: Real = maximum(1.0, absolute(machine.state.coordinates[j]))
        moves = moves or step * absolute(machine.state.velocities[j]) > STILL * magnitude
    own: Real = 0.0
    for i in range(machine.UNKNOWNS - machine.STATES):
        own = maximum(share_of(machine, iteration, i), own)
    heavy: Real = where(own * machine.HEAVIEST < SMALL, machine.HEAVIEST, maximum(1.0, divided(SMALL, own)))
    iteration.weight = where(moves, heavy, 1.0)


def find_size(machine: Machine, iteration: Iteration) -> None:
    """Find the largest part of the increment by its tolerance, not finite where one is not, and what counts of it."""
    iteration.size = 0.0
    iteration.counted = 0.0
    total: Real = 0.0  # what is not finite, no comparison would keep
    for i in range(machine.UNKNOWNS):
        share: Real = share_of(machine, iteration, i)
        total += share
        iteration.size = maximum(share, iteration.size)
        counts: Real = iteration.weight * share if i < machine.UNKNOWNS - machine.STATES else LIGHT * share
        iteration.counted = maximum(counts, iteration.counted)
    iteration.size = where(is_finite(total), iteration.size, total)


def is_round_off(machine: Machine, iteration: Iteration, rate: Real) -> Mask:
    """Return whether increments no longer decrease and are at round-off; the iteration's rate is that so far."""
    if not rate > (STAGNATION if iteration.iteration_matrices > 0 else SLOW):
        return False
    fast: Mask = iteration.count > 1 and iteration.rate < FAST
    share: Real = where(iteration.iteration_matrices > 0 or fast, ROUND_OFF, FLOOR)
    for i in range(machine.UNKNOWNS):
        if not absolute(iteration.increment[i]) <= share * magnitude_of(machine, iteration, i):
            return False
    return True


def evaluate_here(machine: Machine, problem: Problem, iteration: Iteration) -> Mask:
    """Evaluate the residual where the iteration is."""
    iteration.evaluations += 1
    iteration.evaluated = True
    return machine.evaluate(problem, iteration.unknowns, iteration.residual)


def refresh_matrix(machine: Machine, iteration: Iteration) -> Mask:
    """Make the iteration matrix where the iteration is."""
    if not machine.make_matrix(iteration):
        machine.fail("the equations of the step are singular in iteration %d", iteration.count + 1)
        return False
    iteration.rate = 0.0
    iteration.iteration_matrices += 1
    iteration.own = True
    return True


def left_behind(iteration: Iteration, counted: Real) -> Real:
    """Return the error after an increment, relative to the tolerances."""
    return where(iteration.rate < 1.0, divided(iteration.rate, 1.0 - iteration.rate) * counted, math.inf)


def needs_refresh(machine: Machine, iteration: Iteration, rate: Real) -> Mask:
    """Return whether a refresh is less expensive than to continue (refresh criterion).

    The first ratio is unreliable for small increments, because multipliers adjust between the two.
    """
    if iteration.count == 1 and iteration.size <= 1.0 and rate < 1.0:
        return False
    if iteration.rate >= SLOW:
        return True
    left: Real = left_behind(iteration, iteration.counted)
    evaluations: int = 1
    while anywhere(left > machine.REMAINING) and evaluations <= machine.REFRESH_COST + FRESH:
        left *= iteration.rate
        evaluations += 1
    return left > machine.REMAINING


@one_machine
def residual_size(machine: Machine, iteration: Iteration) -> Real:
    """Return the largest residual."""
    size: Real = 0.0
    for i in range(machine.ALL_UNKNOWNS):
        size = maximum(absolute(iteration.residual[i]), size)
    return size


@one_machine
def note_first(machine: Machine, iteration: Iteration) -> None:
    """Note the residual at the guess."""
    iteration.first = residual_size(machine, iteration)


@one_machine
def say_not_finite(machine: Machine, iteration: Iteration) -> None:
    """Say that an increment is not finite; loops that are open say so themselves."""
    if machine.loops_hold():
        machine.fail("the equations of the step are not finite in iteration %d", iteration.count + 1)


@one_machine
def say_how_it_ends(machine: Machine, iteration: Iteration, rate: Real) -> None:
    """Say which unknown moves most, and what may help."""
    worst: int = 0
    for i in range(machine.UNKNOWNS):
        if share_of(machine, iteration, i) > share_of(machine, iteration, worst):
            worst = i
    count: int = iteration.iteration_matrices
    name: Text = machine.unknown_name(worst)
    magnitude: Real = magnitude_of(machine, iteration, worst)
    moves: Real = absolute(iteration.increment[worst])
    allowed: Real = machine.unknown_tolerances[worst] * magnitude
    if not rate > STAGNATION:
        machine.fail("after %d iterations %s still moves by %.3g, tolerance %.3g", count, name, moves, allowed)
    elif moves / magnitude <= NEAR:
        machine.fail(
            "after %d iterations %s still moves by %.3g, tolerance %.3g; increments hardly decrease, its tolerance "
            "may be too small",
            count,
            name,
            moves,
            allowed,
        )
    else:
        left: Real = divided(residual_size(machine, iteration), iteration.first)
        how: Text = "diverges: increments grow" if rate >= 1.0 else "stalls: increments hardly decrease"
        machine.fail(
            "after %d iterations %s still moves by %.3g, tolerance %.3g; the iteration %s, and the residual is %.2g "
            "times what it was at first",
            count,
            name,
            moves,
            allowed,
            how,
            left,
        )


def begin_at_guess(machine: Machine, problem: Problem, iteration: Iteration) -> Mask:
    """Evaluate the residual at the guess, and make the iteration matrix if none is reused; else there is a reason."""
    for i in range(machine.ALL_UNKNOWNS):
        iteration.unknowns[i] = problem.guess[i]
    if not evaluate_here(machine, problem, iteration):
        return False
    note_first(machine, iteration)
    if iteration.own:
        return refresh_matrix(machine, iteration)
    return True


def find_increment(machine: Machine, step: Real, iteration: Iteration) -> None:
    """Find the next increment, and how large it is."""
    machine.solve_matrix(iteration)
    for i in range(machine.ALL_UNKNOWNS):
        iteration.increment[i] = -iteration.increment[i]
    if iteration.count == 0:
        weigh_errors(machine, step, iteration)
    find_size(machine, iteration)


def add_increment(machine: Machine, iteration: Iteration) -> None:
    """Add the increment to the unknowns."""
    for i in range(machine.ALL_UNKNOWNS):
        iteration.unknowns[i] += iteration.increment[i]
    iteration.evaluated = False
    iteration.increments += 1.0
    iteration.count += 1


def refresh_where_slow(machine: Machine, iteration: Iteration, rate: Real, slow: Mask) -> Mask:
    """Make an iteration matrix where increments decrease slowly, if it may help; else there is a reason."""
    if iteration.iteration_matrices == 0 and anywhere(slow and rate >= 1.0):
        machine.fail("the iteration matrix of an earlier step does not converge")
        return False
    if slow and iteration.iteration_matrices >= machine.NEWTON_ITERATIONS and machine.MOST_INCREMENTS == 0:
        say_how_it_ends(machine, iteration, rate)
        return False
    return refresh_matrix(machine, iteration)


def iterate_step(machine: Machine, problem: Problem, step: Real, iteration: Iteration) -> Mask:
    """Iterate from the guess to convergence; returns whether it comes there, else there is a reason."""
    before: Real = math.inf
    if not begin_at_guess(machine, problem, iteration):
        return False
    while True:
        find_increment(machine, step, iteration)
        size: Real = iteration.size
        rate: Real = size / before
        if not is_finite(size):
            say_not_finite(machine, iteration)
            return False
        # An increment that is negligible is left out, which saves an evaluation.
        if iteration.counted <= machine.REMAINING:
            return True
        if machine.MOST_INCREMENTS > 0 and iteration.count == machine.MOST_INCREMENTS:
            iteration.unconverged = size
            return True
        ends: Mask = is_round_off(machine, iteration, rate)
        chord: Mask = not iteration.own and before < math.inf and not ends
        slow: Mask = False
        if chord:
            iteration.rate = maximum(rate, FADING * iteration.rate)
            slow = machine.MOST_INCREMENTS > 0 or needs_refresh(machine, iteration, rate)
        if anywhere(slow):
            if not refresh_where_slow(machine, iteration, rate, slow):
                return False
            continue
        add_increment(machine, iteration)
        # Full Newton increments leave almost no error; after the first with a reused matrix it is unknown.
        if ends or (iteration.own and size <= 1.0):
            return True
        if chord and left_behind(iteration, iteration.counted) <= machine.REMAINING:
            return True
        before = size
        iteration.own = False
        if not evaluate_here(machine, problem, iteration):
            return False


def newton(machine: Machine, problem: Problem, step: Real, iteration: Iteration) -> Mask:
    """Solve the equations of a step; returns whether they are solved, else there is a reason.

    If the iteration matrix of an earlier step does not converge, the iteration begins again with one of its own.
    """
    iteration.count = 0
    iteration.iteration_matrices = 0
    iteration.evaluations = 0
    iteration.increments = 0.0
    iteration.unconverged = 0.0
    machine.begin(problem, step)
    machine.reuse_iteration_matrix(step, iteration)
    reused: bool = not iteration.own
    wasted: int = 0
    solved: Mask = iterate_step(machine, problem, step, iteration)
    if anywhere(not solved) and reused and iteration.iteration_matrices == 0:
        wasted = iteration.evaluations
        iteration.count = 0
        iteration.evaluations = 0
        iteration.own = True
        if not solved:
            machine.begin(problem, step)
            solved = iterate_step(machine, problem, step, iteration)
    iteration.spent = wasted + iteration.evaluations + machine.REFRESH_COST * iteration.iteration_matrices
    return solved
