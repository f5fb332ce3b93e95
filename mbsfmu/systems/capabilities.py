"""What some systems can do beside what all can: each capability is a class that they derive from, and found by it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TypeVar

from mbsfmu.divide_and_conquer.corrections import Corrections
from mbsfmu.modelling.fields import Array
from mbsfmu.systems.system import LoopsInUse, System, SystemContext

SystemWithCapability = TypeVar("SystemWithCapability", bound=System)


class SampledUpdates(System):
    """Has discrete states, which stay as they are between the instants of `samplings`."""

    @abstractmethod
    def updates(self, instant: SystemContext) -> Array:
        """Return what all discrete states would be after an update, shape (d,)."""

    @abstractmethod
    def initial_discrete(self, parameters: Array) -> Array:
        """Return the discrete states before their first update, shape (d,)."""


class InertiaTensors(System):
    """Has inertia tensors that parameters decide."""

    @abstractmethod
    def inertia_tensors(self, parameters: Array) -> Array:
        """Return Jxx, Jyy, Jzz, Jxy, Jxz, Jyz of each of `tensors` in kg m², shape (6 k,)."""


class StartLimits(System):
    """Has quantities that must lie between limits where it starts."""

    @abstractmethod
    def start_limits(self, instant: SystemContext) -> Array:
        """Return what each of `limited` is at the start, what it must exceed and may be at most, shape (3 k,)."""

    @abstractmethod
    def start_advice(self, limited: int, parameters: Array) -> str:
        """Return what to do where one of `limited` starts beyond its limits; nothing where that is plain.

        Parameters
        ----------
        limited
            Its index.
        parameters
            Numbers of the parameters.
        """


class JointReactions(System):
    """Has joints that transmit forces and moments."""

    @abstractmethod
    def evaluate_reactions(self, instant: SystemContext, loops: LoopsInUse) -> Array:
        """Return the reactions from z̈ and the loop multipliers λ in use, in the order of `reactions`."""


class StartPlacement(System):
    """Has a start system with other coordinates than its own."""

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
    """Describes orientations from references that move along."""

    @abstractmethod
    def start_references(self, coordinates: Array) -> Array:
        """Return the references that suit coordinates of the start system, shape (4 r,)."""

    @abstractmethod
    def with_present_references(self, instant: SystemContext) -> SystemContext:
        """Return the same motion with all references moved to where it is now."""


class ArticulatedDynamics(System):
    """Finds accelerations by divide and conquer over its joints."""

    @property
    @abstractmethod
    def depths(self) -> list[int]:
        """By coordinate how many joints there are from the ground to its own."""

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
    """Knows how its constraints follow from how its bodies move."""

    @abstractmethod
    def closure_jacobian(self, instant: SystemContext) -> Array:
        """Return Φ_z where Φ = 0, shape (number of constraints, n).

        Elsewhere it lacks what turning a loop as a whole changes of its violation: elements are zero for coordinates
        that move both sides of a cut joint.
        """

    @abstractmethod
    def closure_rate(self, instant: SystemContext) -> Array:
        """Return dΦ/dt = Φ_z ż + Φ_t, shape (number of constraints,)."""


class CanonicalMomenta(System):
    """Describes motion by canonical momenta too."""

    @abstractmethod
    def initial_momenta(self, instant: SystemContext) -> Array:
        """Return the canonical momenta p = M ż that fit the velocities, shape (n,)."""

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
        """Return what each coordinate's body alone weighs against it, shape (n,); as `apparent_inertias`."""

    @abstractmethod
    def carried_inertias(self, instant: SystemContext) -> Array:
        """Return Σ m s² of masses m that hang on joints moved by a coordinate, by s of it; as `apparent_inertias`."""


class ConstraintCorrections(System):
    """Finds the mass-orthogonal motion that takes a violation of its constraints away."""

    @abstractmethod
    def free_accelerations(self, instant: SystemContext) -> Array:
        """Return z̈ without constraint forces, shape (n,); its accelerations are not used."""

    @abstractmethod
    def unheld(self, instant: SystemContext, forces: Array) -> Array:
        """Return M⁻¹ f of generalized forces, shape (n,)."""

    @abstractmethod
    def constrained_residual(self, instant: SystemContext, multipliers: Array) -> Array:
        """Return M z̈ − Q + Φ_zᵀ λ with the multipliers of all constraints, shape (n,)."""

    @property
    @abstractmethod
    def moved_by_constraints(self) -> list[list[int]]:
        """By constraint the coordinates of the bodies that it acts on."""

    @abstractmethod
    def corrections(self, instant: SystemContext, loops: LoopsInUse, penalty: float) -> Corrections:
        """Return what finds Δz and Δλ with M Δz + Φ_zᵀ Δλ = 0 and Δλ = α (Φ_z Δz + violation), of those in use.

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
    """An algebraic loop, solved from guesses.

    Attributes
    ----------
    description
        What the loop is called.
    values
        The solution, NaN where there is none near the guesses.
    off
        How far its equations stay off where there is none, else 0; shape (1,).
    """

    description: str
    values: Array
    off: Array


class AlgebraicLoops(System):
    """Has nonlinear algebraic loops between its parts, which are solved for `loop_iterates`.

    Where an instant is numbers, its functions solve them from the guesses there. Where it is symbols, these stand for
    the solution: functions have the derivatives of the solution, but not its value where the symbols have another one.
    """

    @abstractmethod
    def solved_loops(self, instant: SystemContext) -> list[LoopSolution]:
        """Return all of them, solved from the guesses of an instant that is symbols."""


class AccelerationFeedback(System):
    """Has connections that carry what depends on accelerations, `fed_through`, to inputs that count at once."""

    @abstractmethod
    def feed_through_values(self, instant: SystemContext) -> Array:
        """Return what these connections carry at the accelerations of the instant, shape (number of them,)."""


def require_capability(system: System, capability: type[SystemWithCapability]) -> SystemWithCapability:
    """Return a system as one that has a capability.

    Raises
    ------
    TypeError
        When it has not.
    """
    if not isinstance(system, capability):
        raise TypeError(f"system '{system.name}' ({type(system).__name__}) is none of those with {capability.__name__}")
    return system
