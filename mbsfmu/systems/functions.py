"""Fast functions of a system's equations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, cast

import casadi as ca
import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.modelling.data import Array
from mbsfmu.systems.expressions import PARTS, SystemExpressions
from mbsfmu.systems.recorded_system import RecordedSystem, varies
from mbsfmu.systems.system import (
    NEAR,
    Code,
    LoopEquations,
    LoopsInUse,
    System,
    SystemContext,
    is_in_loops,
    longest_lever_arm,
    starts,
)
from mbsfmu.tracing.kept_traces import Traces
from mbsfmu.tracing.tape.recorded_program import depends, program_of, programs_in_sequence
from mbsfmu.tracing.tape.recording import RecordedArray, Recorder
from mbsfmu.tracing.workspace import AnyFunction, Floats, RecordedFunction, TracedFunction, Workspace

# -- arrays of a system, and construction of functions on them: unrolled or recorded -----------------------------------

LOOP_PARTS = ("multipliers", "active")


class SystemWorkspace(Workspace):
    """Arrays of a system, and functions of them in its form of code: unrolled, or kernel loops.

    Parameters
    ----------
    system
        The system.
    loops
        The loop equations in use; all of them, as if they were independent, by default.
    traces
        Has what was traced of this system before.
    code
        The form of their code.
    sequential
        Whether divide and conquer eliminates the joints of a tree one after the other in kernel loops.

    Attributes
    ----------
    in_loops
        Whether that is in loops.
    expressions
        What the functions are made of.
    traces
        As given, of these loop equations.
    rows, rank, scales, near
        Indices of the loop equations in use, how many of them are independent, what their violations are large by, and
        by which share the last of them stands out least where no change point is near.
    coordinates, velocities, accelerations, states, integrals, inputs, parameters, references, momenta, discrete
        The parts of an `SystemContext`; references are no rotation at first.
    loop_iterates
        Those of algebraic loops in the instant, at first their start values.
    multipliers
        λ, shape (number of rows,).
    rates, momentum_rates
        ẋ and ṗ at the end of a step, written by the formulations; shapes (k,) and (n,).
    shared_multipliers
        Those of all constraints whose share of the reactions is asked for, shape (number of constraints,).
    suggested_step
        Room for one number, which solvers that choose their steps remember.
    iteration_matrix, iteration_matrix_use
        Zeros for what states keep of an iteration matrix; empty but for implicit steps.
    unconverged
        Zeros for how far steps were from converged; empty but where iterations are limited.
    ahead
        Zeros for what is known past the present; empty but for solvers that step past where they are asked to come.
    error, error_history, error_record
        Zeros for what is known of the error of a run; empty but where that is estimated.
    active
        Ones for the loop equations that count, zeros for those that follow from them, shape (m,).
    """

    def __init__(
        self,
        system: System,
        loops: LoopEquations | None = None,
        traces: Traces | None = None,
        code: Code | None = None,
        *,
        sequential: bool = False,
    ) -> None:
        self.system = system
        self._sequential = sequential
        self.expressions = SystemExpressions(system, loops)
        self.in_loops = is_in_loops(system, code)
        self._recorded_parts: dict[str, RecordedArray] = {}
        self.rows = self.expressions.rows
        # Of all functions in loops: what they have in common is recorded once.
        self._recorder = Recorder()
        self.rank = len(self.rows) if loops is None else loops.rank
        self.scales = np.ones(len(self.rows)) if loops is None else np.array(loops.scales)
        self.near = NEAR if loops is None else loops.near
        self.staged = None if loops is None else loops.staged
        self.weak = loops is not None and loops.weak
        super().__init__(self.expressions.symbol_by_part)
        self.traces = (traces or Traces()).of(self.rows, self.rank, self.weak)
        self.coordinates, self.velocities, self.accelerations = (self._memory[part] for part in PARTS[:3])
        self.states, self.integrals, self.inputs, self.parameters = (self._memory[part] for part in PARTS[3:7])
        self.references, self.momenta, self.discrete, self.loop_iterates = (self._memory[part] for part in PARTS[7:])
        self.loop_iterates[:] = starts(system.loop_iterates)
        self.references[::4] = 1.0  # quaternions
        self.multipliers = self._memory["multipliers"]
        self.rates = self.add_part("rates", len(system.states))[1]
        self.momentum_rates = self.add_part("momentum_rates", len(system.coordinates))[1]
        self.add_part("integral_rates", len(system.integrals))
        self.add_part("input_rates", len(system.inputs))
        self.shared_multipliers = self.add_part("shared_multipliers", len(system.constraints))[1]
        self.suggested_step = np.zeros(1)
        self.iteration_matrix = self.iteration_matrix_use = self.unconverged = self.ahead = np.zeros(0)
        self.error = self.error_history = self.error_record = np.zeros(0)
        self.active = self._memory.setdefault("active", np.zeros(len(self.rows)))
        self.active[:] = 1.0

    @property
    def history(self) -> Floats:
        """History of the integration rule; empty for formulations without one."""
        return self._memory.get("history", np.zeros(0))

    @property
    def lever_arm(self) -> float:
        """The longest lever arm of the loops in m; 1 without."""
        return longest_lever_arm(self.system.constraint_units, self.rows, self.scales.tolist())

    @property
    def redundant(self) -> bool:
        """Whether some of the active loop equations are redundant."""
        return self.rank < len(self.rows)

    def element_scales(self, arm: float) -> Floats:
        """Return the scales of the elements of Φ_z that make it dimensionless, shape (m, n).

        Parameters
        ----------
        arm
            A length in m by which distances are measured.
        """
        return np.divide.outer(self.equation_lengths(arm), self.coordinate_lengths(arm))

    def equation_lengths(self, arm: float) -> Floats:
        """Return the scales of the active loop equations that make them dimensionless, shape (m,)."""
        units = self.system.constraint_units
        return np.array([arm if units[row] == "m" else 1.0 for row in self.rows])

    def coordinate_lengths(self, arm: float) -> Floats:
        """Return the scales of the coordinates that make them dimensionless, shape (n,); `arm` as there."""
        return np.array([arm if each.unit == "m" else 1.0 for each in self.system.coordinates])

    def kept(
        self, name: str, results: Callable[[], Sequence[ca.SX]], matrices: Sequence[int] = (), into: Iterable[str] = ()
    ) -> TracedFunction:
        """Return a cached traced function, or trace it; arguments as for `traced`, expressions on demand."""
        function = self.traces.function(name, lambda: self._function(name, results()))
        return TracedFunction(function, self._memory, matrices, into)

    def defined(
        self,
        name: str,
        results: Callable[[Any], Sequence[Any]],
        matrices: Sequence[int] = (),
        into: Iterable[str] = (),
    ) -> AnyFunction:
        """Return a function of the system's results, in the system's form of code.

        Parameters
        ----------
        name, matrices, into
            As for `traced`.
        results
            Function of `SystemExpressions`, or of a `RecordedSystem`.
        """
        if not self.in_loops:
            return self.kept(name, lambda: results(self.expressions), matrices, into)
        return self.recorded(name, lambda given, _: results(given), into=into)

    def recorded(
        self,
        name: str,
        results: Callable[[RecordedSystem, dict[str, Any]], Sequence[Any]],
        beside: Sequence[str] = (),
        into: Iterable[str] = (),
    ) -> RecordedFunction:
        """Return a function in loops.

        Parameters
        ----------
        name, into
            As for `traced`.
        results
            Function of the system, and of the parts that are given beside those of its instant.
        beside
            Names of these.
        """
        own = {part: self._recorded_part(part) for part in beside}
        found = results(self._recorded_system, own)
        offered = {part: self._recorded_part(part) for part in (*PARTS, *LOOP_PARTS, *beside)}
        return RecordedFunction(program_of(name, self._recorder, offered, found), self._memory, into)

    def recorded_in_turn(
        self,
        names: tuple[str, str],
        results: Callable[[RecordedSystem, dict[str, Any]], tuple[Sequence[Any], Sequence[Any]]],
        beside: Sequence[str],
        later: Sequence[str],
        memory_name: str,
    ) -> tuple[RecordedFunction, RecordedFunction]:
        """Return two functions in loops, of which the second continues from the results of the first.

        Parameters
        ----------
        names
            Of the functions.
        results
            As for `recorded`, of both.
        beside
            As for `recorded`, of the first.
        later
            Names of the parts that the second is given besides.
        memory_name
            Name of the memory that they share.
        """
        own = {part: self._recorded_part(part) for part in (*beside, *later)}
        found = results(self._recorded_system, own)
        given = (
            {part: self._recorded_part(part) for part in (*PARTS, *LOOP_PARTS, *beside)},
            {part: own[part] for part in later},
        )
        programs = programs_in_sequence(names, self._recorder, given, found, memory_name)
        memory = programs[1].memory()
        memory[: programs[0].schedule.size] = programs[0].memory()
        first, second = (RecordedFunction(each, self._memory, work=memory) for each in programs)
        return first, second

    def _recorded_part(self, part: str) -> RecordedArray:
        if part not in self._recorded_parts:
            self._recorded_parts[part] = self._recorder.new(self.values(part).size)
        return self._recorded_parts[part]

    @cached_property
    def _recorded_system(self) -> RecordedSystem:
        parts: dict[str, Any] = {part: self._recorded_part(part) for part in PARTS}
        multipliers, active = (cast("Array", self._recorded_part(part)) for part in LOOP_PARTS)
        chosen = self.redundant or self.staged is not None
        counting = active if chosen else None
        loops = LoopsInUse(self.rows, counting, multipliers, self._sequential, refined=self.weak)
        return RecordedSystem(self.system, SystemContext(**parts), loops)

    def _function(self, name: str, results: Sequence[ca.SX], *, merged: bool = False) -> ca.Function:
        return super()._function(name, self.expressions.closed(results), merged=merged)

    def numeric_instant(self) -> SystemContext:
        """Return a context of copies of the arrays, for the system's own NumPy functions."""
        return SystemContext(*(self._memory[part].copy() for part in PARTS))


# -- fast functions of a system's equations ----------------------------------------------------------------------------


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
