"""Optional capabilities of systems: classes from which a system derives."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TypeVar

from mbsfmu.divide_and_conquer.assembly import Corrections
from mbsfmu.modelling.data import Array
from mbsfmu.systems.system import LoopsInUse, System, SystemContext

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
