"""Divide and conquer in joint coordinates: accelerations [Featherstone1999], or canonical momenta [Chadaj2017]."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cached_property
from typing import Annotated, ClassVar, Self

import casadi as ca
import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.base.options import NOT_NEGATIVE, Number, Switch
from mbsfmu.formulations.first_order import FirstOrderFormulation, Motion, change_of, defined
from mbsfmu.formulations.formulation import CodeOptions, FormulationOptions, NativeNeeds, StepKind
from mbsfmu.formulations.recorded_steps import Moved
from mbsfmu.initialization.initialization import Initialization
from mbsfmu.rules.rule import Rule
from mbsfmu.stepping.iteration import Limits, NewtonTolerances
from mbsfmu.stepping.state import State
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.recorded_system import RecordedSystem
from mbsfmu.tracing.workspace import AnyFunction, Floats


class DcaOptions(CodeOptions):
    """Options of `dca`."""

    stabilisation: Annotated[
        float,
        Number(
            "Baumgarte stabilisation rate of loop constraints in 1/s; 0 for none, as published",
            unit="1/s",
            bounds=NOT_NEGATIVE,
            lacking="which needs none",
        ),
    ] = 10.0


class Dca(FirstOrderFormulation):
    """Accelerations from an assembly of the whole mechanism; y = (z, ż, x).

    Loops are closed at acceleration level, Φ̈ + 2 a Φ̇ + a² Φ = 0, with Baumgarte's stabilisation a. The papers'
    reference has a = 0, and its positions drift.

    Parameters
    ----------
    functions, tolerances, rule, options
        As for every formulation.
    """

    name: ClassVar[str] = "dca"
    Options: ClassVar[type[FormulationOptions]] = DcaOptions
    moving: ClassVar[str] = "velocities"
    quantities: ClassVar[tuple[tuple[str, str], ...]] = (
        ("coordinates", "velocities"),
        ("velocities", "accelerations"),
        ("states", "rates"),
    )

    def __init__(
        self, functions: SystemFunctions, tolerances: NewtonTolerances, rule: Rule, options: DcaOptions
    ) -> None:
        super().__init__(functions, tolerances, rule, options)
        self.stabilisation = options.stabilisation

    def _kinetics(self) -> tuple[ca.SX, ca.SX]:
        return self.functions.symbol("velocities"), self.dynamics[0]

    def _dynamics(self) -> tuple[ca.SX, ca.SX]:
        return self.functions.expressions.forward_dynamics(self.stabilisation)

    def _changes(self) -> tuple[ca.SX, ca.SX, Motion]:
        motion, n = self._accelerations({}), len(self.functions.coordinates)
        of_velocities = ca.horzcat(ca.SX(n, n), ca.SX.eye(n), ca.SX(n, len(self.functions.states)))
        return of_velocities, motion["accelerations"].change, motion

    def _moved(self, given: RecordedSystem) -> Moved:
        accelerations, multipliers = given.forward_dynamics(self.stabilisation)
        moved = given.at(accelerations=accelerations, multipliers=multipliers)
        return Moved(moved, accelerations, multipliers)


# -- Hamiltonian divide and conquer in joint coordinates and canonical momenta [Chadaj2017] ----------------------------

_LOGGER = logging.getLogger(__name__)
HEAVY = 2000.0
"""Ratio of outboard inertia to a coordinate's own inertia above which a warning is given: errors grow as much."""
GROWN = 10.0
"""Ratio of the open tree's kinetic energy, with the momenta, to the actual one at which momenta are restarted."""
GROWN_BETWEEN_EVENTS = 1e4
"""The same for external solvers, which must restart as well."""


class HdcaOptions(CodeOptions):
    """Options of `hdca`."""

    stabilisation: Annotated[
        float,
        Number(
            "Stabilisation rate of loop constraints in 1/s; 0 for none",
            unit="1/s",
            bounds=NOT_NEGATIVE,
            lacking="which needs none",
        ),
    ] = 10.0
    restart_momenta: Annotated[
        bool | None,
        Switch(
            "Whether momenta are restarted where constraint impulses outweigh them; yes by default, but not with "
            "multistep solvers",
            called="restart_momenta",
            lacking="which has no momenta",
        ),
    ] = None

    def completed(self, remembering: str) -> Self:
        """Return the options with the choice of restarts, which multistep solvers cannot follow."""
        if self.restart_momenta and remembering:
            raise InputError(f"restart_momenta = True does not go with {remembering}, or no restarts")
        return self.model_copy(update={"restart_momenta": self.restart_momenta is not False and not remembering})


class Hdca(FirstOrderFormulation):
    """Velocities and constraint impulses from an assembly of momenta; y = (z, p, x).

    Loops are closed at velocity level, Φ̇ + a Φ = 0, with the stabilisation a. Accelerations and constraint forces come
    from a second assembly, of accelerations, which the integration itself does not need [Chadaj2017, sect. 3.4].

    The momenta p = M ż − Φ_zᵀ σ contain the impulses σ of the loops, which grow with time under sustained loads, and
    errors relative to p with them. The motion does not depend on σ; where it dominates, the momenta restart with p = M
    ż and σ = 0. Φ_zᵀ σ and M ż are orthogonal with respect to M⁻¹, so that pᵀ M⁻¹ p of the open tree exceeds żᵀ M ż by
    the part of the impulses. Their ratio is independent of units and of the choice of coordinates.

    Parameters
    ----------
    functions, tolerances, rule, options
        As for every formulation.

    Attributes
    ----------
    inertias
        What velocities of one are worth in momenta, in kg m² and kg, shape (n,): absolute tolerances are those of
        velocities, whatever the masses are.
    """

    name: ClassVar[str] = "hdca"
    Options: ClassVar[type[FormulationOptions]] = HdcaOptions
    moving: ClassVar[str] = "momenta"
    quantities: ClassVar[tuple[tuple[str, str], ...]] = (
        ("coordinates", "velocities"),
        ("momenta", "momentum_rates"),
        ("states", "rates"),
    )

    def __init__(
        self, functions: SystemFunctions, tolerances: NewtonTolerances, rule: Rule, options: HdcaOptions
    ) -> None:
        super().__init__(functions, tolerances, rule, options)
        self.stabilisation = options.stabilisation
        self.restarts = bool(options.restart_momenta) and bool(functions.rows)
        self.inertias = np.ones(len(functions.coordinates))

    def fit_to(self, initialization: Initialization, step: float) -> None:
        """Scale momenta by velocities at the model's start."""
        del step
        self.inertias = initialization.apparent_inertias
        _warn_heavy(initialization, self.inertias)

    def _kinetics(self) -> tuple[ca.SX, ca.SX]:
        """Return ż [eq. 40], and ṗ [eq. 77] with ż and σ as they follow from z and p."""
        given = self.functions.expressions
        velocities, impulses = given.impulsive_velocities(self.stabilisation)
        motion = {"velocities": velocities, "multipliers": impulses}
        if ca.depends_on(given.momentum_rates, given.symbol_by_part["accelerations"]):
            accelerations, _ = given.forward_dynamics(self.stabilisation)
            (motion["accelerations"],) = given.at([accelerations], {"velocities": velocities})
        (rates,) = given.at([given.momentum_rates], motion)
        return velocities, rates

    def _dynamics(self) -> tuple[ca.SX, ca.SX]:
        """Return z̈ and λ: with Φ̇ + a Φ = 0, Φ̈ + 2 a Φ̇ + a² Φ = 0 is its derivative Φ̈ + a Φ̇ = 0."""
        dynamics = self.functions.expressions.forward_dynamics(self.stabilisation)
        accelerations, multipliers = self._at_velocities(*dynamics)
        return accelerations, multipliers

    def _changes(self) -> tuple[ca.SX, ca.SX, Motion]:
        """Return the changes of M ż − Φ_zᵀ σ = p, with σ for the multipliers, and Φ̇ + a Φ = 0."""
        given, symbols = self.functions.expressions, self.functions.symbol
        impulsive = given.initial_momenta - ca.mtimes(given.closure_jacobian.T, given.multipliers) - symbols("momenta")
        loops = given.closing(given.closure_rate + self.stabilisation * given.closure)
        parts = "velocities", "multipliers"
        moved = defined(given, ca.vertcat(impulsive, loops), parts, self._unknown_parts, {})
        velocities, motion = moved["velocities"], {"velocities": moved["velocities"]}
        found = ca.vertcat(symbols("accelerations"), symbols("multipliers"))
        rates = ca.vertcat(given.rates, given.integral_rates)
        fed_through = ca.depends_on(given.momentum_rates, symbols("accelerations"))
        if fed_through or ca.depends_on(rates, found):
            motion |= self._accelerations(motion)
        if fed_through:
            moved["accelerations"] = motion["accelerations"]
        of_momenta = change_of(given, given.momentum_rates, self._unknown_parts, moved)
        return velocities.change, of_momenta, motion

    def _moved(self, given: RecordedSystem) -> Moved:
        velocities, impulses = given.impulsive_velocities(self.stabilisation)
        moved = given.at(velocities=velocities)
        accelerations, multipliers = moved.forward_dynamics(self.stabilisation)
        moved = moved.at(accelerations=accelerations, multipliers=multipliers)
        return Moved(moved, moved.at(multipliers=impulses).momentum_rates, impulses)

    @cached_property
    def initial_momenta(self) -> AnyFunction:
        """P = M ż, the impulses being zero [eq. 6]; shape (n,)."""
        return self.functions.defined("initial_momenta", lambda given: [given.initial_momenta], into=["momenta"])

    @cached_property
    def restarted_momenta(self) -> AnyFunction:
        """Twice the kinetic energies, of the open tree with p and of the motion, shape (2,), and M ż, shape (n,)."""
        return self.functions.defined(
            "restarted_momenta", lambda given: [given.momentum_energies, given.initial_momenta]
        )

    @property
    def explicit_scale(self) -> Floats:
        """Magnitudes of y; those of momenta correspond to velocities of one."""
        scale = super().explicit_scale
        n = len(self.inertias)
        scale[n : 2 * n] = self.inertias
        return scale

    def limits(self, unknowns: int) -> Limits:
        """Return the tolerances of the increments; magnitudes of momenta correspond to those of velocities."""
        given, n = super().limits(unknowns), len(self.inertias)
        nominal = given.nominal.copy()
        nominal[n : 2 * n] *= self.inertias
        return replace(given, nominal=nominal)

    def native_needs(self, kind: StepKind) -> NativeNeeds:
        """Return the needs of its C code."""
        needs = super().native_needs(kind)
        return replace(
            needs,
            choices={**needs.choices, "RESTARTS": int(self.restarts)},
            in_steps=(*needs.in_steps, self.initial_momenta, *((self.restarted_momenta,) if self.restarts else ())),
        )

    def prepared(self, state: State) -> State:
        """Return the state with momenta consistent with its velocities."""
        state = super().prepared(state)
        self.load(state)
        self.initial_momenta()
        return replace(state, momenta=self.functions.momenta.copy())

    def check_loops(self) -> None:
        """Check whether an unsolved algebraic loop is the cause of non-finite numbers."""
        if len(self.functions.loop_iterates):
            self.motion()
            super().check_loops()

    def restarted_as(self, other: State, state: State) -> State:
        """Return the state with momenta restarted where those of another state are M ż."""
        if not self.restarts:
            return state
        self.load(other)
        self.initial_momenta()
        if not np.array_equal(self.functions.momenta, other.momenta):
            return state
        self.load(state)
        self.initial_momenta()
        return replace(state, momenta=self.functions.momenta.copy())

    def made_consistent(self, state: State) -> State:
        """Return the state to continue from after a step, with momenta restarted where impulses dominate."""
        moved = super().made_consistent(state)
        if not self.restarts:
            return moved
        self.load(moved)
        (with_impulses, without), momenta = self.restarted_momenta()
        if with_impulses <= GROWN * without:
            return moved
        return self.consistent(replace(moved, momenta=momenta.copy()))


def _warn_heavy(initialization: Initialization, inertias: Floats) -> None:
    """Warn in the log if outboard masses dominate, by their momenta, the velocity of a light body."""
    factors = initialization.carried_inertias / inertias
    if np.max(factors, initial=0.0) > HEAVY:
        system, worst = initialization.system, int(np.argmax(factors))
        _LOGGER.warning(
            "%s: what hangs beyond %s weighs %.2g times its own inertia, and hdca has velocities from momenta: steps "
            "may be off by as many times as much as with dca",
            *(system.name, system.coordinates[worst].name, factors[worst]),
        )
