"""The one interface between equations and time stepping."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mbsfmu.equations.rotation import Array
from mbsfmu.errors import InputError
from mbsfmu.model.inertia import missing_in
from mbsfmu.variables import Variable


@dataclass(frozen=True)
class Instant:
    """All that the equations of a system may depend on, in SI units.

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
        Quaternions (w, x, y, z) from which joints that turn freely turn, shape (4 r,).
    momenta
        Canonical momenta p of the coordinates, shape (n,); Hamiltonian formulations have them.
    discrete
        Discrete states, which stay as they are between the instants at which they are updated, shape (d,).
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


@dataclass(frozen=True)
class Sampling:
    """Discrete states that are updated at the instants offset + k · sample_time, for all whole k.

    Attributes
    ----------
    owner
        Name of what they belong to.
    first, count
        Index of the first of them, and how many there are.
    sample_time, offset
        In s.
    """

    owner: str
    first: int
    count: int
    sample_time: float
    offset: float


@dataclass(frozen=True)
class Tensor:
    """The inertia tensor of a body, which parameters decide.

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

    M(z) z̈ − Q(z, ż, x, u) + Φ_zᵀ λ = 0,  Φ(z) = 0,  ẋ = f(z, ż, x, u),  y = h(z, ż, z̈, x, u).

    All functions are pure NumPy; they take numbers and symbols alike. A hydraulic circuit has no
    coordinates, a mechanism no states x. Integrals are quantities such as work that are integrated beside.

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
    reactions
        Variables of the forces and moments that joints transmit.
    constraints, constraint_units
        One name per element of Φ, and its unit, m or rad.
    balances
        Pairs of a calculated parameter and an input: the parameter is the value of the input that keeps the
        system at rest where it starts.
    orderings
        Pairs of parameters' indices: the second must be greater than the first.
    tensors
        Inertia tensors that must be such as bodies have; see `inertia_tensors`.
    limited
        Variables that must lie between limits where the system starts; see `start_limits`.
    references
        Number r of orientations that are described from a reference.
    steep
        Indices of the coordinates for which a reference must be moved before they get large.
    correction_count
        How many numbers `correction_numbers` gives.
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
    reactions: tuple[Variable, ...] = ()
    constraints: tuple[str, ...] = ()
    constraint_units: tuple[str, ...] = ()
    balances: tuple[tuple[Variable, str], ...] = ()
    orderings: tuple[tuple[int, int], ...] = ()
    tensors: tuple[Tensor, ...] = ()
    limited: tuple[Variable, ...] = ()
    references: int = 0
    steep: tuple[int, ...] = ()
    correction_count: int = 0

    @abstractmethod
    def residual(self, instant: Instant) -> Array:
        """Return M z̈ − Q in N m and N, shape (n,)."""

    @abstractmethod
    def closure(self, instant: Instant) -> Array:
        """Return Φ in m and rad, shape (number of constraints,)."""

    @abstractmethod
    def rates(self, instant: Instant) -> Array:
        """Return ẋ, shape (k,)."""

    @abstractmethod
    def integral_rates(self, instant: Instant) -> Array:
        """Return the rates of the integrals, shape (i,)."""

    @abstractmethod
    def evaluate_outputs(self, instant: Instant) -> Array:
        """Return y, shape (number of outputs,)."""

    @abstractmethod
    def initial_coordinates(self, parameters: Array) -> tuple[Array, Array]:
        """Return z and ż as the user gave them, not yet on the constraints; each of shape (n,)."""

    @abstractmethod
    def initial_states(self, parameters: Array) -> Array:
        """Return x at the start, shape (k,)."""

    @abstractmethod
    def initial_integrals(self, instant: Instant) -> Array:
        """Return the integrals at the start, shape (i,)."""

    def updates(self, instant: Instant) -> Array:  # noqa: ARG002
        """Return what all discrete states would be after an update, shape (d,)."""
        return np.zeros(0)

    def initial_discrete(self, parameters: Array) -> Array:  # noqa: ARG002
        """Return the discrete states before their first update, shape (d,)."""
        return np.zeros(0)

    def inertia_tensors(self, parameters: Array) -> Array:  # noqa: ARG002
        """Return Jxx, Jyy, Jzz, Jxy, Jxz, Jyz of each of `tensors` in kg m², shape (6 k,)."""
        return np.zeros(0)

    def start_limits(self, instant: Instant) -> Array:  # noqa: ARG002
        """Return what each of `limited` is at the start, what it must exceed and may be at most, shape (3 k,)."""
        return np.zeros(0)

    def evaluate_reactions(self, instant: Instant, rows: Sequence[int], multipliers: Array) -> Array:  # noqa: ARG002
        """Return the reactions from z̈ and the multipliers λ of the loop equations in use, as `reactions` lists them."""
        return np.zeros(0)

    def forward_dynamics(
        self,
        instant: Instant,  # noqa: ARG002
        rows: Sequence[int],  # noqa: ARG002
        stabilisation: float,  # noqa: ARG002
        active: Array | None = None,  # noqa: ARG002
    ) -> tuple[Array, Array]:
        """Return z̈ and λ by divide and conquer, shapes (n,) and (rows,).

        Parameters
        ----------
        instant
            Its accelerations are not used.
        rows
            Indices of the loop equations in use.
        stabilisation
            Rate a in 1/s of Baumgarte's Φ̈ + 2 a Φ̇ + a² Φ = 0; 0 for Φ̈ = 0.
        active
            Ones for those of them that count, zeros for those that follow from these, shape (rows,); None where all
            count.
        """
        return np.zeros(0), np.zeros(0)

    @cached_property
    def start_system(self) -> System:
        """The system in whose coordinates the start is given."""
        return self

    def start_references(self, coordinates: Array) -> Array:  # noqa: ARG002
        """Return the references that suit coordinates of the start system, shape (4 r,)."""
        return np.tile([1.0, 0.0, 0.0, 0.0], self.references)

    def place(self, coordinates: Array, velocities: Array, instant: Instant) -> tuple[Array, Array]:  # noqa: ARG002
        """Return z and ż from coordinates and velocities of the start system.

        Parameters
        ----------
        coordinates, velocities
            Of the start system.
        instant
            Its references and parameters are used.
        """
        return coordinates, velocities

    def free_accelerations(self, instant: Instant) -> Array:  # noqa: ARG002
        """Return z̈ without constraint forces, shape (n,); its accelerations are not used."""
        return np.zeros(0)

    def correction_numbers(self, instant: Instant, penalty: float) -> Array:  # noqa: ARG002
        """Return the matrices, which depend on positions only, that `correction` needs; shape (numbers,).

        Parameters
        ----------
        instant
            Its coordinates, references and parameters are used.
        penalty
            Penalty factor α as a multiple of the mean mass of the bodies in kg.
        """
        return np.zeros(0)

    def correction(self, numbers: Array, violation: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """Return Δz and Δλ with M Δz + Φ_zᵀ Δλ = 0 and Δλ = α (Φ_z Δz + violation), shapes (n,) and (m,)."""
        return np.zeros(0), np.zeros(0)

    def initial_momenta(self, instant: Instant) -> Array:  # noqa: ARG002
        """Return the canonical momenta p = M ż that fit the velocities, shape (n,)."""
        return np.zeros(0)

    def impulsive_velocities(
        self,
        instant: Instant,  # noqa: ARG002
        rows: Sequence[int],  # noqa: ARG002
        stabilisation: float,  # noqa: ARG002
        active: Array | None = None,  # noqa: ARG002
    ) -> tuple[Array, Array]:
        """Return ż and the impulses σ of the loop equations in use from the momenta, shapes (n,) and (rows,).

        Parameters
        ----------
        instant, rows, active
            As for `forward_dynamics`; velocities are not used.
        stabilisation
            Rate a in 1/s of Φ̇ + a Φ = 0; 0 for Φ̇ = 0.
        """
        return np.zeros(0), np.zeros(0)

    def momentum_rates(self, instant: Instant, rows: Sequence[int], impulses: Array) -> Array:  # noqa: ARG002
        """Return ṗ at velocities and impulses that fit the momenta, shape (n,)."""
        return np.zeros(0)

    def recentred(self, instant: Instant) -> Instant:
        """Return the same motion with all references moved to where it is now."""
        return instant

    def check(self, parameters: Array) -> None:
        """Check what parameters must be together.

        Raises
        ------
        InputError
            When one is not greater than another as `orderings` demands, or an inertia tensor is none of a body.
        """
        for smaller, greater in self.orderings:
            if not parameters[greater] > parameters[smaller]:
                variable = self.parameters[greater]
                raise InputError(
                    f"{variable.name} is {parameters[greater]:g} {variable.unit}; "
                    f"it must be greater than {self.parameters[smaller].name}, {parameters[smaller]:g}"
                )
        for tensor, values in zip(self.tensors, self.inertia_tensors(parameters).reshape(-1, 6).tolist(), strict=True):
            if missing := missing_in(values, rod=tensor.rod):
                moments, products = (", ".join(f"{each:g}" for each in part) for part in (values[:3], values[3:]))
                raise InputError(
                    f"the moments of inertia of body '{tensor.body}' are ({moments}), the products of inertia "
                    f"({products}) kg.m2; {missing}"
                )

    def instant(self, vector: Callable[[str, int], Array]) -> Instant:
        """Make an instant whose parts `vector(name, size)` gives."""
        n = len(self.coordinates)
        return Instant(
            vector("coordinates", n),
            vector("velocities", n),
            vector("accelerations", n),
            vector("states", len(self.states)),
            vector("integrals", len(self.integrals)),
            vector("inputs", len(self.inputs)),
            vector("parameters", len(self.parameters)),
            vector("references", 4 * self.references),
            vector("momenta", n),
            vector("discrete", len(self.discrete)),
        )


def starts(variables: Sequence[Variable]) -> Array:
    """Return the start values of variables, zero where there is none; shape (number of variables,)."""
    return np.array([variable.start or 0.0 for variable in variables], dtype=float)


def starting(variables: Iterable[Variable], values: Mapping[str, float]) -> tuple[Variable, ...]:
    """Return variables with other start values where such are given by name."""
    return tuple(replace(variable, start=values.get(variable.name, variable.start)) for variable in variables)


def renamed(variable: Variable, name: str) -> Variable:
    """Return the variable under another name."""
    return replace(variable, name=name)
