"""`System`, the interface between equations and time stepping; loop equations, form of code, capabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.divide_and_conquer.assembly import Corrections
from mbsfmu.equations.kinematics import REFERENCE
from mbsfmu.equations.linear import Floats, pivot_columns
from mbsfmu.modelling.data import Array
from mbsfmu.modelling.variables import Variable


@dataclass(frozen=True)
class SystemContext:
    """Evaluation context of a system's equations, in SI units.

    Attributes
    ----------
    coordinates, velocities, accelerations
        z, ż and z̈, each of shape (n,).
    states
        States x of first order, shape (k,).
    integrals
        Integrals over time, shape (i,): outputs depend on them, and full turns of measured angles.
    inputs, parameters
        Shape (number of inputs,) and (number of parameters,).
    references
        Reference quaternions (w, x, y, z) of ball and free joints, shape (4 r,).
    momenta
        Canonical momenta p of the coordinates, shape (n,); Hamiltonian formulations have them.
    discrete
        Discrete states, constant between sample times, shape (d,).
    loop_iterates
        Iterates of nonlinear algebraic loops, shape (g,).
    fed_through
        What the connections that `fed_through` of a system names carry, where this does not follow from the
        accelerations of the instant; empty where it does.
    """

    coordinates: Array
    velocities: Array
    accelerations: Array
    states: Array
    integrals: Array
    inputs: Array
    parameters: Array
    references: Array
    momenta: Array
    discrete: Array
    loop_iterates: Array = field(default_factory=lambda: np.zeros(0))
    fed_through: Array = field(default_factory=lambda: np.zeros(0))


SIZES = {
    "coordinates": "coordinates",
    "velocities": "coordinates",
    "accelerations": "coordinates",
    "states": "states",
    "integrals": "integrals",
    "inputs": "inputs",
    "parameters": "parameters",
    "references": "references",
    "momenta": "coordinates",
    "discrete": "discrete",
    "loop_iterates": "loop_iterates",
}
"""Parts of a `SystemContext` in order, each with the system attribute of the same length."""
MOTION = tuple(SIZES)[:3]


@dataclass(frozen=True)
class LoopsInUse:
    """Active loop equations of a function, with a number for each.

    Attributes
    ----------
    rows
        Their indices.
    active
        Ones for those that count, zeros for those that follow from these, shape (rows,); None where all count.
    multipliers
        λ, or the impulses σ, shape (rows,), for functions of them.
    sequential
        Whether divide and conquer eliminates the joints of a tree one after the other where there are none.
    refined
        Whether divide and conquer refines its solution, for loops with a weak direction and very unequal inertias.
    opened
        Whether loops that hold the mechanism are left out: what they alone hold may have no inertia.
    """

    rows: Sequence[int]
    active: Array | None = None
    multipliers: Array = field(default_factory=lambda: np.zeros(0))
    sequential: bool = False
    refined: bool = False
    opened: bool = False


NO_LOOPS = LoopsInUse(())
"""No loop equations."""


@dataclass(frozen=True)
class Sampling:
    """Discrete states with the sample times offset + k · sample_time, k = 0, 1, ….

    Attributes
    ----------
    owner
        Name of what they belong to.
    first, count
        Index of the first of them, and how many there are.
    sample_time, offset
        In s.
    advice
        Clause of the message on an update that is not finite; empty if obvious.
    delays
        Whether they bring back later what has happened to continuous states, as a transmission line does: linear
        equations without their updates are not those of the system.
    """

    owner: str
    first: int
    count: int
    sample_time: float
    offset: float
    advice: str = ""
    delays: bool = False

    @property
    def reason(self) -> str:
        """What follows "is not finite" in the message on such an update."""
        return f": {self.advice}" if self.advice else ""


@dataclass(frozen=True)
class Tensor:
    """Inertia tensor of a body, with parameters.

    Attributes
    ----------
    body
        Name of the body.
    rod
        Whether one of its principal moments may be zero.
    """

    body: str
    rod: bool


class System(ABC):
    """Equations of motion with loop constraints, and first-order equations, in one form.

    M(z) z̈ − Q(z, ż, x, u) + Φ_zᵀ λ = 0,  Φ(z, u) = 0,  ẋ = f(z, ż, x, u),  y = h(z, ż, z̈, x, u).

    All functions are pure NumPy for numbers and symbols. A hydraulic circuit has no coordinates, a mechanism without
    dynamic forces no states x. Integrals are variables such as work that are integrated along.

    Attributes
    ----------
    name
        Name of the system.
    coordinates, velocities, accelerations
        Variables of z, ż and z̈.
    states
        Variables of x; their nominal values set the tolerances.
    discrete
        Variables of the discrete states.
    samplings
        When these are updated: at one instant in this order, those behind seeing what those before have changed.
    integrals
        Variables that are integrated beside the motion.
    inputs, parameters, outputs
        Variables of u, p and y.
    event_indicators
        Variables of the functions whose zeros are kinks or jumps of the equations, such as gaps of end stops.
    reactions
        Variables of the forces and moments that joints transmit.
    constraints, constraint_units
        One name per element of Φ, and its unit, m or rad.
    aligned
        Names of the joints whose misalignment can be half a turn where Φ = 0.
    balances
        Pairs of a calculated parameter and an input: the parameter is the value of the input that keeps the
        system at rest where it starts.
    orderings
        Pairs of parameters' indices: the second must be greater than the first.
    tensors
        Inertia tensors that must be such as bodies have.
    limited
        Variables that must lie between limits where the system starts.
    written
        Whether the start value of each coordinate is written in the model, as zero or otherwise, and the same of each
        velocity; else they are defaults.
    references
        Number r of orientations that are described from a reference.
    loop_iterates
        What algebraic loops between its parts are solved for by iteration, with the values to begin with.
    fed_through
        Names of the inputs that are driven by what depends on accelerations, and count at once.
    turning_angles
        Indices of the three angles from each reference, from the inner body outwards.
    weight
        Weight of all bodies in N, by the values of the model: forces that cancel are round-off of it.
    """

    name: str
    coordinates: tuple[Variable, ...] = ()
    velocities: tuple[Variable, ...] = ()
    accelerations: tuple[Variable, ...] = ()
    states: tuple[Variable, ...] = ()
    discrete: tuple[Variable, ...] = ()
    samplings: tuple[Sampling, ...] = ()
    integrals: tuple[Variable, ...] = ()
    inputs: tuple[Variable, ...] = ()
    parameters: tuple[Variable, ...] = ()
    outputs: tuple[Variable, ...] = ()
    event_indicators: tuple[Variable, ...] = ()
    reactions: tuple[Variable, ...] = ()
    constraints: tuple[str, ...] = ()
    constraint_units: tuple[str, ...] = ()
    aligned: tuple[str, ...] = ()
    balances: tuple[tuple[Variable, str], ...] = ()
    orderings: tuple[tuple[int, int], ...] = ()
    tensors: tuple[Tensor, ...] = ()
    limited: tuple[Variable, ...] = ()
    written: tuple[tuple[bool, ...], ...] = ((), ())
    references: int = 0
    loop_iterates: tuple[Variable, ...] = ()
    fed_through: tuple[str, ...] = ()
    turning_angles: tuple[tuple[int, int, int], ...] = ()
    weight: float = 0.0

    @abstractmethod
    def residual(self, instant: SystemContext) -> Array:
        """Return M z̈ − Q in N m and N, shape (n,)."""

    @abstractmethod
    def closure(self, instant: SystemContext) -> Array:
        """Return Φ in m and rad, shape (number of constraints,)."""

    def misalignment(self, instant: SystemContext) -> Array:  # noqa: ARG002
        """Return 1 − cos θ of each joint in `aligned`: where Φ = 0 it is 0, or 2 where half a turn is wrong."""
        return np.zeros(0)

    @abstractmethod
    def rates(self, instant: SystemContext) -> Array:
        """Return ẋ, shape (k,)."""

    @abstractmethod
    def integral_rates(self, instant: SystemContext) -> Array:
        """Return the rates of the integrals, shape (i,)."""

    @abstractmethod
    def evaluate_outputs(self, instant: SystemContext) -> Array:
        """Return y, shape (number of outputs,)."""

    @abstractmethod
    def initial_coordinates(self, parameters: Array) -> tuple[Array, Array]:
        """Return z and ż as given by the user, not yet on the constraints; each of shape (n,)."""

    @abstractmethod
    def initial_states(self, parameters: Array) -> Array:
        """Return the initial x, shape (k,)."""

    @abstractmethod
    def initial_integrals(self, instant: SystemContext) -> Array:
        """Return the initial integrals, shape (i,)."""

    def constraint_drifts(self, instant: SystemContext) -> Array:  # noqa: ARG002
        """Return Φ_t, shape (number of constraints,), independent of positions and velocities."""
        return np.zeros(len(self.constraints))

    def constraint_drift_rates(self, instant: SystemContext) -> Array:  # noqa: ARG002
        """Return Φ_tt, independent of positions and velocities."""
        return np.zeros(len(self.constraints))

    def driving_powers(self, instant: SystemContext, loops: LoopsInUse) -> Array:  # noqa: ARG002
        """Return the contribution of prescribed motion to the rates of the integrals, λᵀ Φ_t for work, shape (i,)."""
        return np.zeros(len(self.integrals))

    def undefined_forces(self, instant: SystemContext) -> list[str]:  # noqa: ARG002
        """Return the names of forces whose loads are not finite."""
        return []

    def inertia_spread(self, parameters: Array) -> float:  # noqa: ARG002
        """Return the factor by which round-off of divide and conquer grows with unequal inertias, from numbers."""
        return 1.0

    def lightest_body(self, parameters: Array) -> tuple[float, str]:  # noqa: ARG002
        """Return the least mass of a body in kg, from numbers, and the name of the body; infinity without bodies."""
        return np.inf, ""

    @property
    def start_system(self) -> System:
        """System in whose coordinates the start is given."""
        return self

    def size(self, kind: str) -> int:
        """Return the number of values of an attribute."""
        counted = getattr(self, kind)
        return (
            REFERENCE * self.references
            if kind == "references"
            else counted
            if isinstance(counted, int)
            else len(counted)
        )

    def instant(self, vector: Callable[[str, int], Array]) -> SystemContext:
        """Return a context with parts from `vector(name, size)`."""
        return SystemContext(**{part: vector(part, self.size(kind)) for part, kind in SIZES.items()})


def starts(variables: Sequence[Variable]) -> Array:
    """Return the start values of variables, zero by default; shape (number of variables,)."""
    return np.array([variable.start or 0.0 for variable in variables], dtype=float)


def starting(variables: Iterable[Variable], values: Mapping[str, float]) -> tuple[Variable, ...]:
    """Return variables with start values replaced by name."""
    return tuple(replace(variable, start=values.get(variable.name, variable.start)) for variable in variables)


def started(states: Array, variables: Sequence[Variable], values: Mapping[str, float]) -> Array:
    """Return initial states, replaced by name."""
    if not any(each.name in values for each in variables):
        return states
    return np.stack([np.asarray(values.get(each.name, states[index])) for index, each in enumerate(variables)])


LARGE = 64
"""Number of coordinates above which kernel loops are the default: unrolled code takes longer to compile."""


class Code(StrEnum):
    """Forms of generated code."""

    STRAIGHT = "straight"
    LOOPS = "loops"


def is_in_loops(system: System, code: Code | None) -> bool:
    """Return whether the code of a system is in loops.

    Parameters
    ----------
    system
        The system.
    code
        Chosen form; None if the size decides.

    Raises
    ------
    InputError
        When loops are chosen for a system that cannot have them.
    """
    if code is Code.STRAIGHT:
        return False
    lacking = why_unrolled(system)
    if code is Code.LOOPS and lacking:
        raise InputError(f"kernel loops are for mechanisms; {system.name} {lacking}")
    return not lacking and (code is Code.LOOPS or len(system.start_system.coordinates) > LARGE)


def can_be_in_loops(system: System) -> bool:
    """Return whether the code of a system can be in loops."""
    return not why_unrolled(system)


def why_unrolled(system: System) -> str:
    """Return why the code of a system cannot be in loops, as the end of a sentence; empty if it can."""
    if not system.coordinates:
        return "has no bodies that move"
    if system.loop_iterates or system.fed_through:
        return "has a loop of connections that is solved at every instant"
    return ""


WORSE = 0.3
"""Ratio of distances from dependence at which other equations are chosen."""
NEAR = 1e-3
"""Relative distance of the last equation from the span of the others below which rank is lost; for mechanisms in which
it is small anyway, relative to its usual value.
"""

WEAK = 1e3
"""Ratio of the largest to the least singular value of Φ_z above which divide and conquer refines its solution: of 120
random machines 86 were below, where elimination had errors of 8e-8 at most; above, of 5e-6, and of 1.5e-3 once."""

UNEVEN = 1e5
"""Factor of round-off by unequal inertias (`System.inertia_spread`) above which divide and conquer refines its
solution: of 500 random trees those with 1e4 to 1e6 had errors up to 2e-7, with 1e12 to 1e14 up to 3e-4; refined they
had 1e-10 and 2e-8."""

LOST = 1e10
"""The same factor above which nothing is left of refined solutions in the worst case, so that their error is looked at
wherever they are used: with couplings, 1e-5 at 1e12 and all digits at 1e17, which `dca-alm` loses at 1e17 too."""


@dataclass(frozen=True)
class LockedCoordinates:
    """Coordinates of loops without freedom.

    Attributes
    ----------
    coordinates
        Their indices.
    rows
        Indices of the constraints that hold them.
    firmness
        Least singular value of the scaled equations, relative to the largest; 1 for many, where it is not computed.
    """

    coordinates: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    firmness: float = 1.0


def scale_of_arm(arm: float) -> float:
    """Return the power of two next to a lever arm in m.

    It makes equations dimensionless as well as the arm does, and code that has it inside is the same for machines of
    about the same size.
    """
    return float(2.0 ** np.round(np.log2(arm)))


def have_weak_direction(jacobian: Floats, rank: int) -> bool:
    """Return whether loops with Φ_z of shape (m, n) and a rank have a direction in which elimination loses digits.

    The least singular value that counts is then less than 1 / `WEAK` of the largest.
    """
    if not rank:
        return False
    sizes = np.linalg.svd(jacobian, compute_uv=False)
    return not bool(sizes[rank - 1] * WEAK > sizes[0])


@dataclass(frozen=True)
class LoopEquations:
    """Loop equations of a formulation.

    Attributes
    ----------
    rows
        Indices of the constraints that depend on the coordinates at all.
    rank
        How many of these are independent; which ones may change as the mechanism moves.
    scales
        Scales of violations: 1 rad for angles; for distances the longest lever arm in m, the largest derivative of a
        violation.
    near
        Where the last equation stands out of the span of the others by less than this share of the first, the mechanism
        is next to a change point.
    staged
        By row whether it counts in stages of linearly implicit methods, where the others follow from these wherever the
        mechanism is; None where that is not so, or all count.
    locked
        The coordinates of loops without freedom.
    weak
        Whether elimination loses digits: loops have a weak direction, or inertias are very unequal.
    """

    rows: tuple[int, ...]
    rank: int
    scales: tuple[float, ...]
    near: float = NEAR
    staged: tuple[bool, ...] | None = None
    locked: LockedCoordinates = LockedCoordinates()
    weak: bool = False


def longest_lever_arm(units: Sequence[str], rows: Sequence[int], scales: Iterable[float]) -> float:
    """Return the longest lever arm of loops in m, how far a distance in them moves with an angle at most; 1 without.

    Parameters
    ----------
    units
        Of all constraints.
    rows, scales
        As of `LoopEquations`.
    """
    return max((scale for row, scale in zip(rows, scales, strict=True) if units[row] == "m"), default=1.0)


def chosen_rows(jacobian: Floats, rank: int, active: Floats | None = None) -> Floats:
    """Return independent rows of Φ_z by pivoting; the present choice is kept while nearly as good.

    The quality is the last pivot: the smallest distance of a row from the span of earlier ones.

    Parameters
    ----------
    jacobian
        Φ_z of all loop equations, shape (m, n).
    rank
        How many to choose.
    active
        Ones for the rows in use, zeros for the others, shape (m,); None where a choice is made for the first time.

    Returns
    -------
    NDArray
        Ones and zeros, shape (m,); `active` itself where it stays.
    """
    best, order = pivot_columns(jacobian.T, rank)
    if active is not None:
        used, _ = pivot_columns(jacobian[active == 1.0].T, rank)
        if used[rank - 1] >= WORSE * best[rank - 1]:
            return active
    chosen = np.zeros(len(jacobian))
    chosen[order] = 1.0
    return chosen


# -- optional capabilities of systems: classes from which a system derives ---------------------------------------------

SystemWithCapability = TypeVar("SystemWithCapability", bound=System)


class SampledUpdates(System):
    """Discrete states, constant between the sample times of `samplings`."""

    @abstractmethod
    def updates(self, instant: SystemContext) -> Array:
        """Return all discrete states after an update, shape (d,)."""

    @abstractmethod
    def initial_discrete(self, parameters: Array) -> Array:
        """Return the discrete states before their first update, shape (d,)."""


class InertiaTensors(System):
    """Inertia tensors that depend on parameters."""

    @abstractmethod
    def inertia_tensors(self, parameters: Array) -> Array:
        """Return Jxx, Jyy, Jzz, Jxy, Jxz, Jyz of each of `tensors` in kg m², shape (6 k,)."""


class StartLimits(System):
    """Variables that must be within limits at the start."""

    @abstractmethod
    def start_limits(self, instant: SystemContext) -> Array:
        """Return for each of `limited` the initial value, lower and upper limit, shape (3 k,)."""

    @abstractmethod
    def start_advice(self, limited: int, parameters: Array) -> str:
        """Return advice on one of `limited` that starts outside its limits; empty if obvious.

        Parameters
        ----------
        limited
            Its index.
        parameters
            Numbers of the parameters.
        """


class EventIndicators(System):
    """Functions whose zeros are kinks or jumps of the equations."""

    @abstractmethod
    def evaluate_event_indicators(self, instant: SystemContext) -> Array:
        """Return the event indicators, shape (number of event indicators,); accelerations are not used."""


class JointReactions(System):
    """Joints that transmit forces and moments."""

    @abstractmethod
    def evaluate_reactions(self, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return the reactions from z̈ and the active loop multipliers λ, in the order of `reactions`."""


class StartPlacement(System):
    """A start system with other coordinates."""

    @abstractmethod
    def place(self, coordinates: Array, velocities: Array, instant: SystemContext) -> tuple[Array, Array]:
        """Return z and ż from coordinates and velocities of the start system.

        Parameters
        ----------
        coordinates, velocities
            Of the start system.
        instant
            Its references and parameters are used.
        """


class MovingReferences(System):
    """Orientations relative to reference quaternions that change (coordinate charts)."""

    @abstractmethod
    def start_references(self, coordinates: Array) -> Array:
        """Return the references for coordinates of the start system, shape (8 r,)."""

    @abstractmethod
    def with_references(self, instant: SystemContext, references: Array | None) -> SystemContext:
        """Return the same motion with other references, shape (8 r,); None for the present orientations."""


class ArticulatedDynamics(System):
    """Accelerations by divide and conquer over the joints."""

    @property
    @abstractmethod
    def depths(self) -> list[int]:
        """Number of joints from the ground to each coordinate's own."""

    @abstractmethod
    def forward_dynamics(self, instant: SystemContext, loops: LoopsInUse, stabilisation: float) -> tuple[Array, Array]:
        """Return z̈ and λ of the loop equations in use, shapes (n,) and (rows,).

        Parameters
        ----------
        instant
            Its accelerations are not used.
        loops
            The loop equations in use.
        stabilisation
            Rate a in 1/s of Baumgarte's Φ̈ + 2 a Φ̇ + a² Φ = 0; 0 for Φ̈ = 0.
        """

    @abstractmethod
    def responses(self, instant: SystemContext, loops: LoopsInUse, loads: Array) -> tuple[Array, Array]:
        """Return x and μ with M x = F + Φ_zᵀ μ and Φ_z x + γ = 0, shapes (n,) and (rows,).

        Parameters
        ----------
        instant
            Where the system is.
        loops
            The loop equations in use, with γ in the place of their multipliers.
        loads
            F along the coordinates, shape (n,).
        """

    @abstractmethod
    def balance(self, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return M z̈ − Q + Φ_zᵀ λ, shape (n,)."""

    @abstractmethod
    def loop_accelerations(self, instant: SystemContext, loops: LoopsInUse, stabilisation: float) -> Array:
        """Return Φ̈ + 2 a Φ̇ + a² Φ of the loop equations in use, shape (rows,); arguments: see `forward_dynamics`."""


class ConstraintMotion(System):
    """Constraint rates and Jacobian from the motion of the bodies."""

    @abstractmethod
    def closure_jacobian(self, instant: SystemContext) -> Array:
        """Return Φ_z on the constraint manifold, shape (number of constraints, n).

        Off the manifold it lacks the change of a violation by a rotation of the whole loop: elements are zero for
        coordinates that move both sides of a cut joint.
        """

    @abstractmethod
    def misalignment_jacobian(self, instant: SystemContext) -> Array:
        """Return the derivatives of the misalignment by z, shape (number of values, n)."""

    @abstractmethod
    def closure_rate(self, instant: SystemContext) -> Array:
        """Return dΦ/dt = Φ_z ż + Φ_t, shape (number of constraints,)."""


class CanonicalMomenta(System):
    """Motion in canonical momenta."""

    @abstractmethod
    def initial_momenta(self, instant: SystemContext) -> Array:
        """Return the canonical momenta p = M ż consistent with the velocities, shape (n,)."""

    @abstractmethod
    def impulsive_velocities(
        self, instant: SystemContext, loops: LoopsInUse, stabilisation: float
    ) -> tuple[Array, Array]:
        """Return ż and the impulses σ of the loop equations in use from the momenta, shapes (n,) and (rows,).

        Parameters
        ----------
        instant
            Its velocities are not used.
        loops
            The loop equations in use.
        stabilisation
            Rate a in 1/s of Φ̇ + a Φ = 0; 0 for Φ̇ = 0.
        """

    @abstractmethod
    def canonical_momenta(self, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return the momenta p = M ż − Φ_zᵀ σ with impulses σ, shape (n,)."""

    @abstractmethod
    def loop_rates(self, instant: SystemContext, loops: LoopsInUse, stabilisation: float) -> Array:
        """Return Φ̇ + a Φ of the loop equations in use, shape (rows,); arguments as for `impulsive_velocities`."""

    @abstractmethod
    def momentum_rates(self, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return ṗ at velocities and impulses that fit the momenta, shape (n,)."""

    @abstractmethod
    def apparent_inertias(self, instant: SystemContext) -> Array:
        """Return 1 / (M⁻¹)ᵢᵢ of the coordinates in kg m² and kg, shape (n,); from numbers, and never traced."""

    @abstractmethod
    def own_inertias(self, instant: SystemContext) -> Array:
        """Return the inertia of each coordinate's own body, shape (n,); as `apparent_inertias`."""

    @abstractmethod
    def carried_inertias(self, instant: SystemContext) -> Array:
        """Return Σ m s² of outboard masses m, with the displacement s per coordinate; as `apparent_inertias`."""


class ConstraintCorrections(System):
    """Mass-orthogonal corrections of constraint violations."""

    @abstractmethod
    def free_accelerations(self, instant: SystemContext) -> Array:
        """Return accelerations of the bodies without constraint forces, shape (n,); its accelerations are not used."""

    @abstractmethod
    def unheld(self, instant: SystemContext, forces: Array) -> Array:
        """Return accelerations of the bodies under generalized forces alone, shape (n,)."""

    @abstractmethod
    def constrained_residual(self, instant: SystemContext, multipliers: Array, regular: bool) -> Array:
        """Return M z̈ − Q + Φ_zᵀ λ with the multipliers of all constraints, and M perhaps made regular, shape (n,)."""

    @property
    @abstractmethod
    def moved_by_constraints(self) -> list[list[int]]:
        """For each constraint the coordinates of the bodies on which it acts."""

    @abstractmethod
    def corrections(self, instant: SystemContext, loops: LoopsInUse, penalty: float) -> Corrections:
        """Return the solver for Δz and Δλ of M Δz + Φ_zᵀ Δλ = 0 and Δλ = α (Φ_z Δz + violation).

        Parameters
        ----------
        instant
            Its coordinates, references and parameters are used.
        loops
            The constraints in use, and whether joints are eliminated one after the other.
        penalty
            Penalty factor α as a multiple of the bodies' mean mass in kg, or of their mean moment of inertia about
            their joints by (100 m)² where that is more.
        """


@dataclass(frozen=True)
class LoopSolution:
    """Solution of an algebraic loop from its iterates.

    Attributes
    ----------
    description
        Name of the loop.
    values
        The solution; NaN without convergence.
    off
        Residual without convergence, otherwise 0; shape (1,).
    """

    description: str
    values: Array
    off: Array


class AlgebraicLoops(System):
    """Nonlinear algebraic loops between parts, solved for `loop_iterates`.

    In a numeric context the functions solve the loops from the iterates. In a symbolic one the iterates stand for the
    solution: functions have its derivatives, but not its value at other symbols.
    """

    @abstractmethod
    def solved_loops(self, instant: SystemContext) -> list[LoopSolution]:
        """Return the solutions of all loops from the iterates of a symbolic context."""


class AccelerationFeedback(System):
    """Acceleration feed-through: connections that transmit accelerations to inputs without delay."""

    @abstractmethod
    def feed_through_values(self, instant: SystemContext) -> Array:
        """Return the values of these connections at the accelerations of the context, shape (number of values,)."""


def require_capability(system: System, capability: type[SystemWithCapability]) -> SystemWithCapability:
    """Return a system if it has a capability.

    Raises
    ------
    TypeError
        When it has not.
    """
    if not isinstance(system, capability):
        raise TypeError(f"system '{system.name}' ({type(system).__name__}) is none of those with {capability.__name__}")
    return system
