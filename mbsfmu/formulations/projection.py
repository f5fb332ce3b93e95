"""Mass-orthogonal projections and the augmented-Lagrangian iteration [Malczyk2012, sects. 2 and 3].

Mass-orthogonal projections and the augmented-Lagrangian iteration for accelerations [Malczyk2012, sects. 2 and 3].

Bodies are connected by constraints Φ(q) = 0 only. Positions and velocities are projected, and accelerations are
computed, by the same iteration with the same matrices: evaluate the violation, compute the mass-orthogonal correction
by divide and conquer, add it, until the correction is negligible. Redundant constraints leave the part of the violation
that no motion can remove; the multipliers, which start at zero, have the least norm on the constraints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.divide_and_conquer.assembly import Corrections, suitable_penalty
from mbsfmu.equations.linear import LuFactors
from mbsfmu.stepping.iteration import IterationCount
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem
from mbsfmu.systems.system import MOTION
from mbsfmu.tracing.symbols import expression, symbolic_array
from mbsfmu.tracing.tape.recording import RecordedArray
from mbsfmu.tracing.workspace import AnyFunction, Floats, TracedFunction

_FIRST = ("turning", "accelerations", "multipliers")


class ProjectionFunctions(ABC):
    """Functions of the correction matrices, which are kept between calls.

    Parameters
    ----------
    functions
        Functions of a system in absolute coordinates, all its constraints in use; they get the parts that follow.
    penalty
        α as a multiple of the mean mass.
    stabilisation
        Rate a in 1/s of Φ̈ + 2 a Φ̇ + a² Φ = 0.

    Attributes
    ----------
    size
        How many numbers the matrices come to, constants apart.
    """

    size: int

    def __init__(self, functions: SystemFunctions, penalty: float, stabilisation: float) -> None:
        self._functions = functions
        self._penalty = penalty
        self._stabilisation = stabilisation
        for part in ("violation", "turning"):
            functions.add_part(part, len(functions.rows))

    @staticmethod
    def of(functions: SystemFunctions, penalty: float, stabilisation: float) -> ProjectionFunctions:
        """Return the functions in the form of code of the other functions."""
        form = RecordedProjection if functions.in_loops else TracedProjection
        return form(functions, penalty, stabilisation)

    @cached_property
    @abstractmethod
    def factorize(self) -> AnyFunction:
        """Write the matrices at the positions."""

    @cached_property
    @abstractmethod
    def correction(self) -> AnyFunction:
        """Return Δq, shape (n,), and Δλ, shape (m,), for the part `violation`."""

    @cached_property
    @abstractmethod
    def free_motion(self) -> AnyFunction:
        """Write Φ̈ without q̈, and q̈ and λ of the first iteration, which has the loads."""

    @cached_property
    @abstractmethod
    def violations(self) -> Mapping[str, AnyFunction]:
        """For each level, write the violation Φ, Φ̇ or Φ̈ at the positions of the matrices."""


class TracedProjection(ProjectionFunctions):
    """The functions in unrolled code; Φ_q is stored with the matrices."""

    def __init__(self, functions: SystemFunctions, penalty: float, stabilisation: float) -> None:
        super().__init__(functions, penalty, stabilisation)
        given = functions.expressions
        self._corrections: Corrections = given.corrections(penalty)
        matrices, jacobian = expression(self._corrections.numbers()), given.closure_jacobian
        numbers = ca.vertcat(matrices, ca.vec(jacobian.nz[:]))  # of a single equation they are a row
        varying = [index for index in range(numbers.numel()) if not numbers[index].is_constant()]
        self._varying = numbers[varying]
        symbols, _ = functions.add_part("correction_numbers", len(varying))
        self.size = len(varying)
        known = ca.SX(numbers)
        known[varying] = symbols
        self._numbers = known[: matrices.numel()]
        self._jacobian = ca.SX(jacobian.sparsity(), known[matrices.numel() :])

    @cached_property
    def factorize(self) -> AnyFunction:
        """The matrices."""
        return self._functions.traced("factorize_constraints", [self._varying], into=["correction_numbers"])

    @cached_property
    def correction(self) -> AnyFunction:
        """Δq and Δλ."""
        known = self._corrections.with_numbers(symbolic_array(self._numbers))
        found = known.solve(symbolic_array(self._functions.symbol("violation")))
        return self._functions.traced("correction", [expression(each) for each in found])

    @cached_property
    def free_motion(self) -> AnyFunction:
        """Φ̈ without q̈, and q̈ and λ of the first iteration."""
        given, a = self._functions.expressions, self._stabilisation
        place, motion = (given.symbol_by_part[part] for part in MOTION[:2])
        # Along the motion, twice: half as long as by derivatives of all elements of Φ_q, none of which is needed here.
        rate = ca.jtimes(given.closure, place, motion)
        turning = ca.jtimes(rate, place, motion) + given.drift_rates
        stabilised = turning + 2.0 * a * (rate + given.drifts) + a**2 * given.closure
        known = self._corrections.with_numbers(symbolic_array(self._numbers))
        found = known.solve(symbolic_array(stabilised), symbolic_array(given.free_accelerations))
        results = [stabilised, *map(expression, found)]
        return self._functions.traced("free_motion", results, into=_FIRST)

    @cached_property
    def violations(self) -> Mapping[str, AnyFunction]:
        """Φ, Φ̇ and Φ̈; these are linear with the matrices."""
        given, jacobian = self._functions.expressions, self._jacobian
        moving, turned = (given.symbol_by_part[part] for part in MOTION[1:])
        values = {
            "position": given.closure,
            "velocity": ca.mtimes(jacobian, moving) + given.drifts,
            "acceleration": ca.mtimes(jacobian, turned) + self._functions.symbol("turning"),
        }
        return {
            level: self._functions.traced(f"{level}_violation", [value], into=["violation"])
            for level, value in values.items()
        }


class RecordedProjection(ProjectionFunctions):
    """The functions in loops; Φ_q q̇ and Φ_q q̈ are directional derivatives of Φ, because Φ_q is dense."""

    def __init__(self, functions: SystemFunctions, penalty: float, stabilisation: float) -> None:
        super().__init__(functions, penalty, stabilisation)
        self._factorize = functions.recorded("factorize_constraints", self._factors, into=["correction_numbers"])

    def _factors(self, given: RecordedSystem, _: dict[str, Any]) -> list[Any]:
        """Return each of the numbers once; their positions are kept, and so are constants."""
        self._corrections: Corrections = given.corrections(self._penalty)
        numbers = self._corrections.numbers()
        assert isinstance(numbers, RecordedArray)
        varying, self._order = np.unique(numbers.places, return_inverse=True)
        self._constants = int(np.count_nonzero(varying < 0))
        self._places = varying
        self.size = len(varying) - self._constants
        self._functions.add_part("correction_numbers", self.size)
        return [RecordedArray(numbers.recorder, varying[self._constants :])]

    @cached_property
    def factorize(self) -> AnyFunction:
        """The matrices."""
        return self._factorize

    @cached_property
    def correction(self) -> AnyFunction:
        """Δq and Δλ."""

        def made(_: RecordedSystem, own: dict[str, Any]) -> list[Any]:
            return list(self._known(own).solve(own["violation"]))

        return self._functions.recorded("correction", made, ["correction_numbers", "violation"])

    def _known(self, own: dict[str, Any]) -> Corrections:
        """Return the problem with the kept matrices."""
        kept = own["correction_numbers"]
        places = np.concatenate([self._places[: self._constants], kept.places])
        numbers: Any = RecordedArray(kept.recorder, places[self._order])
        return self._corrections.with_numbers(numbers)

    @cached_property
    def free_motion(self) -> AnyFunction:
        """Φ̈ without q̈, and q̈ and λ of the first iteration."""

        def made(given: RecordedSystem, own: dict[str, Any]) -> list[Any]:
            turning = given.turning(self._stabilisation)
            return [turning, *self._known(own).solve(turning, given.free_accelerations)]

        return self._functions.recorded("free_motion", made, ["correction_numbers"], into=_FIRST)

    @cached_property
    def violations(self) -> Mapping[str, AnyFunction]:
        """Φ, Φ̇ and Φ̈."""

        def velocity(given: RecordedSystem, _: dict[str, Any]) -> list[Any]:
            return [given.along(given.closure, given.instant.velocities) + given.drifts]

        def acceleration(given: RecordedSystem, own: dict[str, Any]) -> list[Any]:
            return [given.along(given.closure, given.instant.accelerations) + own["turning"]]

        values = {"position": lambda given, _: [given.closure], "velocity": velocity, "acceleration": acceleration}
        return {
            level: self._functions.recorded(f"{level}_violation", made, ["turning"], into=["violation"])
            for level, made in values.items()
        }


MOST_ITERATIONS = 10
"""Largest number of iterations at each level; in a singular configuration the result so far is used."""

STAGNATION = 0.5
"""Ratio of consecutive increments above which accelerations do not converge: without projections, dependent constraints
are inconsistent by the error of the positions.
"""

SLOW = 0.1
"""Ratio of consecutive increments above which loops have a weak direction: with the eigenvalue s of Φ_q M⁻¹ Φ_qᵀ an
iteration leaves 1 / (1 + α s), and conjugate gradients find the rest.
"""

MOST_GRADIENTS = 40
"""Largest number of conjugate gradients; each finds one eigenvalue, and there are few."""

SINGULAR = 1e-8
"""α s / (1 + α s) below which a direction is singular, as at a change point: forces along it move nothing."""

NEGLIGIBLE = 1e-12
"""Fraction of the motion, by the root of kinetic energy, below which the contribution of a gradient is negligible …"""

UNRESOLVED = 1e-6
"""… and fraction of the multipliers above which it is not, if the largest number was used."""

TOLERANCES = {"position": 1e-14, "velocity": 1e-12, "acceleration": 1e-10}
"""Norms of the last increments at which an iteration ends, in SI units, relative to values above one."""

INSIDE = 1e-10
"""The same for positions inside a step; the actual remainder is smaller by the penalty factor."""

ASTRAY = 1e-6
"""Distance of an external solver's state from the constraint manifold beyond which it is projected at an event, in SI
units, relative to values above one.
"""


class Projection:
    """The iterations at the three levels.

    Parameters
    ----------
    functions
        Functions of a system in absolute coordinates, all its constraints in use; they get the parts that follow.
    penalty
        α as a multiple of the mean mass; what suits the number of coordinates by default.
    stabilisation
        Rate a in 1/s of Φ̈ + 2 a Φ̇ + a² Φ = 0: the paper's Ω, its μ being 1. With projections 0.
    converges
        Whether constraints contradict each other by no more than round-off, so that an iteration has an end.

    Attributes
    ----------
    stabilisation, converges
        As given.
    calls
        What it calls.
    iterations
        Counts by level: `position`, `velocity`, `acceleration`; without positions inside steps.
    """

    def __init__(
        self,
        functions: SystemFunctions,
        penalty: float | None = None,
        stabilisation: float = 0.0,
        *,
        converges: bool = True,
    ) -> None:
        self._functions = functions
        self.iterations = {level: IterationCount() for level in TOLERANCES}
        if penalty is None:
            penalty = suitable_penalty(len(functions.coordinates))
        self.stabilisation = stabilisation
        self.converges = converges
        self.calls = ProjectionFunctions.of(functions, penalty, stabilisation)

    @property
    def in_steps(self) -> tuple[AnyFunction, ...]:
        """All its functions."""
        own = self.calls.factorize, self.calls.correction, self.calls.free_motion, *self.calls.violations.values()
        return (*own, self.feed_through_values) if self._functions.system.fed_through else own

    def factorize(self) -> None:
        """Set the matrices at the positions."""
        self.calls.factorize()

    def project(self) -> None:
        """Project positions and velocities onto the constraints; leave the matrices of the result.

        Raises
        ------
        SimulationError
            When the positions run away.
        """
        self.place()
        self._iterate("velocity", self._functions.velocities)

    def place(self, *, inside: bool = False) -> None:
        """Project positions onto the constraints with the present matrices, and set the matrices of the result.

        Redundant constraints are dependent on the manifold only. Off it they are inconsistent: α would amplify the
        square of the distance, and multipliers would not be reactions.

        Parameters
        ----------
        inside
            Whether an explicit method looks inside its step: less exact, and not counted.
        """
        self.factorize()
        # What one iteration moves at the end of a step is round-off, which changes no matrices.
        if len(self._functions.rows):
            iterations = self._iterate("position", self._functions.coordinates, inside=inside)
            if inside or iterations > 1:
                self.factorize()

    def accelerate(self) -> None:
        """Compute accelerations and multipliers with the present matrices."""
        if self._functions.system.fed_through:
            self._feel()
        self._accelerate()

    def _accelerate(self, *, inside: bool = False) -> None:
        self.calls.free_motion()
        self._iterate("acceleration", self._functions.accelerations, inside=inside)

    def _feel(self) -> None:
        """Compute the acceleration feed-through of connections, which is linear in accelerations: w = A w + b."""
        functions, count = self._functions, len(self._functions.system.fed_through)
        answers = np.empty((1 + count, count))
        for index, fed_through in enumerate(np.concatenate([np.zeros((1, count)), np.eye(count)])):
            functions.write("fed_through", fed_through)
            self._accelerate(inside=True)
            answers[index] = self.feed_through_values()[0]
        matrix = np.eye(count) - (answers[1:] - answers[0]).T
        factors = LuFactors(matrix)
        if factors.singular:
            raise SimulationError("accelerations that act back on forces have no bounds")
        functions.write("fed_through", factors.solve(answers[0]))

    @cached_property
    def feed_through_values(self) -> TracedFunction:
        """Acceleration feed-through of connections, shape (number of values,)."""
        return self._functions.traced("felt_values", [self._functions.expressions.feed_through_values])

    def _iterate(self, level: str, values: Floats, *, inside: bool = False) -> int:
        """Iterate at a level until increments are negligible; return the number of iterations.

        The remainder is smaller than the last increment by the penalty factor. Earlier increments do not predict it:
        each motion decreases by its own ratio, and the slowest dominate last. Violations are evaluated again in each
        iteration, because round-off in redundant ones accumulates in multipliers. Where increments hardly decrease,
        conjugate gradients find the sum of all remaining ones.
        """
        functions = self._functions
        tolerance = INSIDE if inside else TOLERANCES[level]
        if not len(functions.rows):
            return 0
        violation = self.calls.violations[level]
        iterations, before, size, limit = 0, np.inf, np.inf, 0.0
        if level == "acceleration":  # its first iteration is that of the loads
            iterations, size = 1, float(np.linalg.norm(values))
            limit = tolerance * max(1.0, float(np.max(np.abs(values))))
        gradients = 0
        while size > limit and iterations < MOST_ITERATIONS:
            if (level == "acceleration" or gradients) and size > STAGNATION * before:
                break
            before = size
            violation()
            increments, multipliers = self.calls.correction()
            iterations += 1
            size = float(np.linalg.norm(increments))
            limit = tolerance * max(1.0, float(np.max(np.abs(values + increments))))
            if self.converges and limit < size and SLOW * before < size:
                increments, multipliers, taken = self._to_come(increments.copy(), multipliers.copy(), level)
                gradients += taken
            values += increments
            if level == "acceleration":
                functions.multipliers += multipliers
        if not np.isfinite(size):
            raise SimulationError(f"the iteration for the constraints at {level} level is not finite")
        if not inside:
            corrections = iterations + gradients
            self.iterations[level].join(IterationCount(1, corrections, corrections))
        return iterations

    def _to_come(self, moved: Floats, pushed: Floats, level: str) -> tuple[Floats, Floats, int]:
        """Return the sum of all remaining increments and of their multipliers, and the number of gradients.

        An increment r is followed by G r = r + C Φ_q r, where C is the correction of a violation, and their sum is t
        with (1 − G) t = r. G is symmetric in the inner product of the kinetic energy, rᵀ M s = −zᵀ Φ_q s with the
        multipliers z of r, and has one nonzero eigenvalue for each weak direction, so that as many conjugate gradients
        find t. Inconsistent parts of redundant constraints do not enter any product.

        Parameters
        ----------
        moved, pushed
            The next increment, shape (n,), and its multipliers, shape (m,).
        level
            For messages.
        """
        motion, multipliers = np.zeros(len(moved)), np.zeros(len(pushed))
        opening = self._opening(moved)
        along, force, opens = moved.copy(), pushed.copy(), opening.copy()
        energy, reached = -float(pushed @ opening), 0.0
        taken, change = 0, np.zeros(len(pushed))
        while taken < MOST_GRADIENTS and energy > 0.0:
            self._functions.write("violation", opens)
            answer, answering = self.calls.correction()
            firmness, own = float(opens @ answering), -float(force @ opens)
            if not firmness > SINGULAR * own:
                return motion, multipliers, taken
            taken += 1
            share = energy / firmness
            motion += share * along
            change = share * force
            multipliers += change
            added = share * share * own
            reached += added
            if added <= NEGLIGIBLE**2 * reached:
                return motion, multipliers, taken
            moved += share * answer
            pushed += share * answering
            opening = self._opening(moved)
            energy, before = -float(pushed @ opening), energy
            turned = energy / before
            along = moved + turned * along
            force = pushed + turned * force
            opens = opening + turned * opens
        if taken == MOST_GRADIENTS:
            self._check(change, self._functions.multipliers + multipliers, level)
        return motion, multipliers, taken

    def _opening(self, motion: Floats) -> Floats:
        """Return Φ_q δ of a motion δ."""
        functions = self._functions
        before = functions.accelerations.copy(), functions.values("turning").copy()
        functions.accelerations[:] = motion
        functions.write("turning", np.zeros(len(functions.rows)))
        self.calls.violations["acceleration"]()
        functions.accelerations[:] = before[0]
        functions.write("turning", before[1])
        return functions.values("violation").copy()

    def _check(self, change: Floats, multipliers: Floats, level: str) -> None:
        """Refuse accelerations whose multipliers have not converged."""
        worst, largest = int(np.argmax(np.abs(change))), float(np.max(np.abs(multipliers)))
        if level != "acceleration" or not abs(change[worst]) > UNRESOLVED * largest:
            return
        joint = self._functions.system.constraints[self._functions.rows[worst]]
        raise SimulationError(
            f"the reactions do not converge: after {MOST_GRADIENTS} iterations that at joint {joint} still changes by "
            f"{abs(change[worst]):.3g} of {largest:.3g} N or N m; take another formulation"
        )
