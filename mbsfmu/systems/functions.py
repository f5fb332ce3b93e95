"""Fast functions of a system's equations."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.modelling.data import Array
from mbsfmu.systems.expressions import PARTS, SystemExpressions
from mbsfmu.systems.recorded_system import RecordedSystem, varies
from mbsfmu.systems.system import LoopsInUse
from mbsfmu.systems.system_workspace import LOOP_PARTS, SystemWorkspace
from mbsfmu.tracing.tape.recorded_program import depends, program_of
from mbsfmu.tracing.workspace import AnyFunction, Floats, RecordedFunction, TracedFunction


class _TracedFunction(cached_property[AnyFunction]):
    """A function with the property's name and one vector of the expressions as result."""

    def __init__(self, vector: str) -> None:
        super().__init__(lambda own: own.defined(self.attrname, lambda given: [getattr(given, vector)]))


class SystemFunctions(SystemWorkspace):
    """A system's functions and derivatives at the values in the arrays of a workspace (`functions.coordinates[:] = …`).

    Parameters and attributes are those of `SystemWorkspace`.
    """

    @cached_property
    def loop_solutions(self) -> TracedFunction:
        """Residual of each nonlinear algebraic loop, 0 if solved, and the solutions."""
        return self.kept("loop_solutions", lambda: self.expressions.loop_solutions)

    def follow_loops(self) -> None:
        """Solve the algebraic loops at the present arrays, and store the solutions as iterates.

        Raises
        ------
        SimulationError
            When one of them is not solved.
        """
        if not len(self.loop_iterates):
            return
        off, found = self.loop_solutions()
        for (description, first), left in zip(self.expressions.unsolved, off.tolist(), strict=True):
            if left != 0.0:
                raise SimulationError(f"{description} = {self.loop_iterates[first]:.6g} on: it stays off by {left:.3g}")
        self.loop_iterates[:] = found

    gap = _TracedFunction("closure")
    """Φ of the constraints in use, shape (m,)."""
    quadratic = _TracedFunction("quadratic")
    """Φ̇_z ż + Φ_tt, shape (m,)."""
    event_indicators = _TracedFunction("event_indicators")
    """The event indicators, shape (number of event indicators,)."""
    integral_rates = _TracedFunction("integral_rates")
    """Rates of the integrals, shape (i,), with the multipliers of the motion."""
    updates = _TracedFunction("updates")
    """The discrete states after an update of all of them, shape (d,)."""
    initial_discrete = _TracedFunction("initial_discrete")
    """The discrete states before their first update, shape (d,)."""
    reactions = _TracedFunction("reactions")
    """Forces and moments in the joints, shape (number of reactions,)."""
    inertia_tensors = _TracedFunction("inertia_tensors")
    """Jxx, Jyy, Jzz, Jxy, Jxz, Jyz of each body with parameter-dependent inertia, shape (6 k,)."""
    start_limits = _TracedFunction("start_limits")
    """Limited variables at the start: value, lower and upper limit; shape (3 k,)."""
    initial_integrals = _TracedFunction("initial_integrals")
    """The integrals at the start, shape (i,)."""

    @cached_property
    def rates_by_accelerations(self) -> bool:
        """Whether rates of states or integrals depend on accelerations, and are evaluated after these."""
        if not self.system.fed_through:
            return False

        def depends_on_them() -> bool:
            given = self.expressions
            rates = ca.vertcat(given.rates, given.integral_rates)
            return bool(ca.depends_on(rates, given.symbol_by_part["accelerations"]))

        return bool(self.traces.fact("rates by accelerations", depends_on_them))

    @cached_property
    def masses(self) -> TracedFunction:
        """M, and M without acceleration feed-through, each of shape (n, n)."""
        given = self.expressions
        return self.kept("masses", lambda: [given.mass, given.bare_mass], matrices=[0, 1])

    state_rates = _TracedFunction("rates")
    """ẋ, shape (k,)."""

    @cached_property
    def closure(self) -> AnyFunction:
        """Φ, shape (m,), and Φ_z, shape (m, n), of the constraints in use."""
        return self.defined("closure", lambda given: [given.closure, given.closure_jacobian], matrices=[1])

    @cached_property
    def all_closure(self) -> AnyFunction:
        """Φ, Φ_z and Φ_t of all constraints, redundant ones included."""
        return self.defined(
            "all_closure", lambda given: [given.all_closure, given.all_closure_jacobian, given.all_drifts], matrices=[1]
        )

    misalignment = _TracedFunction("misalignment")
    """1 − cos θ of joints that Φ = 0 lets turn over by half a turn."""

    @cached_property
    def misalignment_slopes(self) -> AnyFunction:
        """The same, and its derivatives by z."""
        return self.defined(
            "misalignment_slopes", lambda given: [given.misalignment, given.misalignment_jacobian], matrices=[1]
        )

    @cached_property
    def driven(self) -> tuple[int, ...]:
        """Indices, among the active loop equations, of prescribed motions, which do work."""
        if self.in_loops:
            return tuple(np.flatnonzero(varies(self._recorded_system.drifts)).tolist())
        return tuple(self.traces.fact("driven", lambda: list(self.expressions.driven)))

    @cached_property
    def missed(self) -> AnyFunction:
        """Φ, Φ̇ and Φ_t of the prescribed motions."""
        rows = list(self.driven)
        return self.defined(
            "missed", lambda given: [each[rows] for each in (given.closure, given.closure_rate, given.drifts)]
        )

    @cached_property
    def equilibrium(self) -> TracedFunction:
        """M, shape (n, n), −Q, shape (n,), ẋ, and ∂(M z̈ − Q)/∂u, shape (n, number of inputs)."""
        given = self.expressions

        def made() -> list[ca.SX]:
            return [given.mass, given.rest, given.rates, given.derivative(given.residual, "inputs")]

        return self.kept("equilibrium", made, matrices=[0, 3])

    @cached_property
    def kinetic_residuals(self) -> AnyFunction:
        """M z̈ − Q + Φ_zᵀ λ, shape (n,), and Φ̈, Φ̇ and Φ of the constraints in use, each of shape (m,)."""

        def made(given: SystemExpressions | RecordedSystem) -> list[Any]:
            recorded = isinstance(given, RecordedSystem)
            accelerations = given.loop_accelerations(0.0) if recorded else given.closure_acceleration
            return [given.balance, accelerations, given.closure_rate, given.closure]

        return self.defined("kinetic_residuals", made)

    @cached_property
    def standing(self) -> AnyFunction:
        """−Q at zero velocity, shape (n,), and its derivatives with respect to the balancing inputs."""
        names = [each.name for each in self.system.inputs]
        columns = [names.index(name) for _, name in self.system.balances]
        if not self.in_loops:
            given = self.expressions
            return self.kept(
                "standing", lambda: [given.rest, ca.vec(given.derivative(given.residual, "inputs")[:, columns])]
            )

        units = np.eye(len(names))[columns]

        def made(given: RecordedSystem, _: object) -> list[Array]:
            changes = [given.changes([given.resting], [(given.instant.inputs, unit)])[0] for unit in units]
            return [given.resting, np.concatenate(changes)]

        return self.recorded("standing", made)

    @cached_property
    def freed(self) -> RecordedFunction:
        """Velocity of the open tree for loads as momenta, M⁻¹ p, shape (n,); in loops."""
        return self.recorded("freed", lambda given, _: [given.open_velocities])

    @cached_property
    def outputs(self) -> AnyFunction:
        """Outputs y, and magnitudes of Φ and Φ̇ over all constraints, shape (2,)."""
        return self.defined("outputs", lambda given: [given.outputs, given.violation])

    @cached_property
    def outputs_by_accelerations(self) -> tuple[bool, ...]:
        """Which outputs depend on accelerations."""
        if isinstance(self.outputs, RecordedFunction):
            return tuple(bool(each.any()) for each in depends(self.outputs.program, 0, "accelerations"))

        def pattern() -> list[bool]:
            depends_on = self.expressions.depends(self.expressions.outputs, "accelerations")
            return [bool(row.any()) for row in depends_on]

        return tuple(self.traces.fact("outputs by accelerations", pattern))

    @cached_property
    def reactions_open(self) -> bool:
        """Whether redundant constraints leave the reactions undetermined."""
        if self.redundant or self.rank == len(self.system.constraints):
            return self.redundant
        if self.in_loops:
            return self._shares_reactions
        return self.traces.fact("reactions_open", lambda: self.expressions.reactions_open)

    @cached_property
    def _shares_reactions(self) -> bool:
        """Whether multipliers of redundant constraints change the reactions."""
        given, still = self._recorded_system, self._recorder.new(1)
        own = dict(zip(self.rows, given.loops.multipliers, strict=True))
        every = range(len(self.system.constraints))
        multipliers = np.stack([own.get(row, still[0]) for row in every])
        reactions = given.of_loops(LoopsInUse(every, multipliers=multipliers)).reactions
        offered = {part: self._recorded_part(part) for part in (*PARTS, *LOOP_PARTS)} | {"still": still}
        shared = depends(program_of("shared", self._recorder, offered, [reactions]), 0, "still")
        return bool((shared[:, 0] & varies(given.reactions)).any())

    @cached_property
    def moving_rows(self) -> tuple[int, ...]:
        """Indices of the constraints that depend on the coordinates at all."""
        if self.in_loops:
            return tuple(np.flatnonzero(varies(self._recorded_system.all_closure_jacobian).any(axis=1)).tolist())
        return tuple(self.traces.fact("moving_rows", lambda: list(self.expressions.moving_rows)))

    @cached_property
    def shared_reactions(self) -> AnyFunction:
        """Reactions of the multipliers of all constraints in the part `shared_multipliers`."""
        part = "shared_multipliers"
        if self.in_loops:
            return self.recorded("shared_reactions", lambda given, own: [given.shared_reactions(own[part])], [part])
        return self.kept("shared_reactions", lambda: [self.expressions.shared_reactions(self.symbol(part))])

    @cached_property
    def all_closure_jacobian(self) -> AnyFunction:
        """Φ_z of all constraints, redundant ones included."""
        return self.defined("all_closure_jacobian", lambda given: [given.all_closure_jacobian], matrices=[0])

    @cached_property
    def with_present_references(self) -> AnyFunction:
        """z, ż, z̈, p and references of the same motion with references at the present orientation."""
        return self.defined("with_present_references", lambda given: list(given.with_present_references.values()))

    @cached_property
    def with_references(self) -> TracedFunction:
        """z, ż, z̈ and p of the same motion with the part `new_references` as references."""
        references, _ = self.add_part("new_references", len(self.references))
        given = self.expressions
        return self.kept("with_references", lambda: list(given.with_references(references).values()))

    @cached_property
    def start(self) -> AnyFunction:
        """Coordinates and velocities of the start system as given by the user, and initial x, shape (k,)."""
        return self.defined("start", lambda given: list(given.start.values()))

    @cached_property
    def start_slopes(self) -> TracedFunction:
        """Derivatives of the start that is given, and of what it has to fulfil; shapes (its size, that of a part).

        Of z, ż and x as given by p; of Φ, all constraints included, by z, p, u; of Φ̇ by the same; of the integrals at
        the start by z, ż, x, p, u.
        """
        given = self.expressions
        every = ("coordinates", "parameters", "inputs")

        def made() -> list[ca.SX]:
            start = [given.derivative(each, "parameters") for each in given.start.values()]
            closed = [
                given.derivative(each, part) for each in (given.all_closure, given.all_closure_rate) for part in every
            ]
            parts = ("coordinates", "velocities", "states", "parameters", "inputs")
            return [*start, *closed, *(given.derivative(given.initial_integrals, part) for part in parts)]

        return self.kept("start_slopes", made, matrices=range(14))

    @cached_property
    def standing_slopes(self) -> TracedFunction:
        """Derivatives of −Q + Φ_zᵀ λ of all constraints by z, x, p and u, each of shape (n, size of the part)."""
        given = self.expressions

        def made() -> list[ca.SX]:
            loads = given.rest + ca.mtimes(given.all_closure_jacobian.T, given.multipliers)
            return [given.derivative(loads, part) for part in ("coordinates", "states", "parameters", "inputs")]

        return self.kept("standing_slopes", made, matrices=range(4))

    @cached_property
    def _start_parts(self) -> tuple[ca.SX, ca.SX]:
        count = len(self.system.start_system.coordinates)
        return self.add_part("start_coordinates", count)[0], self.add_part("start_velocities", count)[0]

    @cached_property
    def start_references(self) -> AnyFunction:
        """Write references for the part `start_coordinates`."""
        given, (coordinates, _) = self.expressions, self._start_parts
        if self.in_loops:
            return self.recorded(
                "start_references",
                lambda given, own: [given.start_references(own["start_coordinates"])],
                ["start_coordinates"],
                into=["references"],
            )
        return self.kept("start_references", lambda: [given.start_references(coordinates)], into=["references"])

    @cached_property
    def placement(self) -> AnyFunction:
        """Write z and ż from the parts `start_coordinates` and `start_velocities`."""
        given, parts = self.expressions, self._start_parts
        if self.in_loops:
            return self.recorded(
                "placement",
                lambda given, own: list(given.placed(*own.values())),
                ["start_coordinates", "start_velocities"],
                into=["coordinates", "velocities"],
            )
        return self.kept("placement", lambda: given.placed(*parts), into=["coordinates", "velocities"])

    def place(self, coordinates: Floats, velocities: Floats) -> None:
        """Write references, z and ż for coordinates and velocities of the start system."""
        functions = self.start_references, self.placement
        for part, values in (("start_coordinates", coordinates), ("start_velocities", velocities)):
            self._memory[part][:] = values
        for function in functions:
            function()
