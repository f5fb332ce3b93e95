"""The equations of a system as functions that are fast to call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, cast

import casadi as ca
import numpy as np

from mbsfmu.equations.rotation import Array
from mbsfmu.errors import SimulationError
from mbsfmu.formulations.expressions import PARTS, SystemExpressions
from mbsfmu.formulations.loop_equations import NEAR, LoopEquations
from mbsfmu.formulations.recorded_system import Code, RecordedSystem, is_in_loops, varies
from mbsfmu.formulations.system import Instant, LoopsInUse, System, starts
from mbsfmu.formulations.traces import Traces
from mbsfmu.formulations.workspace import AnyFunction, Floats, RecordedFunction, TracedFunction, Workspace
from mbsfmu.programs.program import depends, program_of, programs_in_turn
from mbsfmu.programs.recorded_array import RecordedArray
from mbsfmu.programs.recording import Recorder

LOOP_PARTS = ("multipliers", "active")


class _Traced(cached_property[AnyFunction]):
    """A function of the property's name that gives one vector of the expressions, whose name there is given."""

    def __init__(self, vector: str) -> None:
        super().__init__(lambda own: own.defined(self.attrname, lambda given: [getattr(given, vector)]))


class SystemFunctions(Workspace):
    """A system's functions and derivatives at the values in the arrays of a workspace (`functions.coordinates[:] = …`).

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
        Whether divide and conquer eliminates the joints of a tree one after the other in code in loops.
    sections
        In how many sections it takes a tree there, for as many threads.

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
        The parts of an `Instant`; references are no rotation at first.
    guesses
        Those of algebraic loops in the instant, at first their start values.
    multipliers
        λ, shape (number of rows,).
    rates, momentum_rates
        ẋ and ṗ at the end of a step, written by the formulations; shapes (k,) and (n,).
    suggested_step
        Room for one number, which solvers that choose their steps remember.
    tangent, tangent_use
        Zeros for what states keep of a tangent; empty but for implicit steps.
    unconverged
        Zeros for how far steps were from converged; empty but where iterations are limited.
    ahead
        Zeros for what is known past the present; empty but for solvers that step past where they are asked to come.
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
        sections: int = 1,
    ) -> None:
        self.system = system
        self._sequential = sequential
        self.expressions = SystemExpressions(system, loops)
        self.in_loops = is_in_loops(system, code)
        self._recorded_parts: dict[str, RecordedArray] = {}
        self.rows = self.expressions.rows
        # Of all functions in loops: what they have in common is recorded once.
        self._recorder = Recorder(1 if self.rows else sections)
        self.rank = len(self.rows) if loops is None else loops.rank
        self.scales = np.ones(len(self.rows)) if loops is None else np.array(loops.scales)
        self.near = NEAR if loops is None else loops.near
        super().__init__(self.expressions.symbol_by_part)
        self.traces = (traces or Traces()).of(self.rows, self.rank, self.scales.tolist())
        self.coordinates, self.velocities, self.accelerations = (self._memory[part] for part in PARTS[:3])
        self.states, self.integrals, self.inputs, self.parameters = (self._memory[part] for part in PARTS[3:7])
        self.references, self.momenta, self.discrete, self.guesses = (self._memory[part] for part in PARTS[7:])
        self.guesses[:] = starts(system.guesses)
        self.references[::4] = 1.0
        self.multipliers = self._memory["multipliers"]
        self.rates = self.add_part("rates", len(system.states))[1]
        self.momentum_rates = self.add_part("momentum_rates", len(system.coordinates))[1]
        self.add_part("integral_rates", len(system.integrals))
        self.add_part("input_rates", len(system.inputs))
        self.suggested_step = np.zeros(1)
        self.tangent = self.tangent_use = self.unconverged = self.ahead = np.zeros(0)
        self.active = self._memory.setdefault("active", np.zeros(len(self.rows)))
        self.active[:] = 1.0

    @property
    def history(self) -> Floats:
        """What the rule of integration remembers; empty but for formulations whose rule does."""
        return self._memory.get("history", np.zeros(0))

    @property
    def redundant(self) -> bool:
        """Whether some of the loop equations in use follow from others."""
        return self.rank < len(self.rows)

    def element_scales(self, arm: float) -> Floats:
        """Return what the elements of Φ_z are divided by to be the same in all units and sizes, shape (m, n).

        Parameters
        ----------
        arm
            A length in m by which distances are measured.
        """
        system = self.system
        equations = [arm if system.constraint_units[row] == "m" else 1.0 for row in self.rows]
        return np.divide.outer(equations, self.coordinate_lengths(arm))

    def coordinate_lengths(self, arm: float) -> Floats:
        """Return what coordinates are divided by to be the same in all units and sizes, shape (n,); `arm` as there."""
        return np.array([arm if each.unit == "m" else 1.0 for each in self.system.coordinates])

    def kept(
        self, name: str, results: Callable[[], Sequence[ca.SX]], matrices: Sequence[int] = (), into: Iterable[str] = ()
    ) -> TracedFunction:
        """Return a function that was traced before, or trace it; arguments as for `traced`, expressions when wanted."""
        function = self.traces.function(name, lambda: self._function(name, results()))
        return TracedFunction(function, self._memory, matrices, into)

    def defined(
        self,
        name: str,
        results: Callable[[Any], Sequence[Any]],
        matrices: Sequence[int] = (),
        into: Iterable[str] = (),
    ) -> AnyFunction:
        """Return a function of what the system gives; its code is in loops where that of the system is.

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
        """Return two functions in loops, the second of which goes on from what the first has found.

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
        programs = programs_in_turn(names, self._recorder, given, found, memory_name)
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
        loops = LoopsInUse(self.rows, active if self.redundant else None, multipliers, self._sequential)
        return RecordedSystem(self.system, Instant(**parts), loops)

    def _function(self, name: str, results: Sequence[ca.SX]) -> ca.Function:
        return super()._function(name, self.expressions.closed(results))

    @cached_property
    def loop_solutions(self) -> TracedFunction:
        """How far each algebraic loop that is not linear stays off, 0 where it is solved, and the solutions."""
        return self.kept("loop_solutions", lambda: self.expressions.loop_solutions)

    def follow_loops(self) -> None:
        """Solve the algebraic loops where the arrays are, and take what is found as guesses.

        Raises
        ------
        SimulationError
            When one of them is not solved.
        """
        if not len(self.guesses):
            return
        off, found = self.loop_solutions()
        for (told, first), left in zip(self.expressions.unsolved, off.tolist(), strict=True):
            if left != 0.0:
                raise SimulationError(f"{told} = {self.guesses[first]:.6g} on: it stays off by {left:.3g}")
        self.guesses[:] = found

    def numeric_instant(self) -> Instant:
        """Return an instant of copies of the arrays, for calls of the system's own NumPy functions."""
        return Instant(*(self._memory[part].copy() for part in PARTS))

    gap = _Traced("closure")
    """Φ of the constraints in use, shape (m,)."""
    quadratic = _Traced("quadratic")
    """Φ̇_z ż + Φ_tt, shape (m,)."""
    integral_rates = _Traced("integral_rates")
    """Rates of the integrals, shape (i,), with the multipliers that belong to the motion."""
    updates = _Traced("updates")
    """The discrete states after an update of all of them, shape (d,)."""
    initial_discrete = _Traced("initial_discrete")
    """The discrete states before their first update, shape (d,)."""
    reactions = _Traced("reactions")
    """Forces and moments in the joints, shape (number of reactions,)."""
    inertia_tensors = _Traced("inertia_tensors")
    """Jxx, Jyy, Jzz, Jxy, Jxz, Jyz of each body whose parameters decide on them, shape (6 k,)."""
    start_limits = _Traced("start_limits")
    """What is limited at the start: its value, what it must exceed, what it may be at most; shape (3 k,)."""
    initial_integrals = _Traced("initial_integrals")
    """The integrals at the start, shape (i,)."""

    @cached_property
    def rates_by_accelerations(self) -> bool:
        """Whether rates of states or integrals depend on accelerations: they are found behind these then."""
        given = self.expressions
        if not self.system.felt:
            return False
        return ca.depends_on(ca.vertcat(given.rates, given.integral_rates), given.symbol_by_part["accelerations"])

    @cached_property
    def masses(self) -> TracedFunction:
        """M, and M where connections carry nothing of accelerations, each of shape (n, n)."""
        given = self.expressions
        return self.kept("masses", lambda: [given.mass, given.bare_mass], matrices=[0, 1])

    state_rates = _Traced("rates")
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

    @cached_property
    def driven(self) -> tuple[int, ...]:
        """Indices, among the loop equations in use, of those that move with time; they do work."""
        if self.in_loops:
            return tuple(np.flatnonzero(varies(self._recorded_system.drifts)).tolist())
        return tuple(self.traces.fact("driven", lambda: list(self.expressions.driven)))

    @cached_property
    def missed(self) -> AnyFunction:
        """Φ, Φ̇ and Φ_t of the loop equations that move."""
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
    def outputs(self) -> AnyFunction:
        """Outputs y, and the magnitudes of Φ and Φ̇ over all constraints, shape (2,)."""
        return self.defined("outputs", lambda given: [given.outputs, given.violation])

    @cached_property
    def outputs_by_accelerations(self) -> tuple[bool, ...]:
        """Which outputs depend on accelerations."""
        if isinstance(self.outputs, RecordedFunction):
            pattern = depends(self.outputs.program, 0, "accelerations")
        else:
            pattern = self.expressions.depends(self.expressions.outputs, "accelerations")
        return tuple(bool(each.any()) for each in pattern)

    @cached_property
    def reactions_open(self) -> bool:
        """Whether redundant constraints leave the reactions open, and nothing else decides on them."""
        if self.redundant or self.rank == len(self.system.constraints):
            return self.redundant
        if self.in_loops:
            return self._shares_reactions
        return self.traces.fact("reactions_open", lambda: self.expressions.reactions_open)

    @cached_property
    def _shares_reactions(self) -> bool:
        """Whether what constraints transmit that no motion touches adds to what is transmitted anyway."""
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
    def reaction_play(self) -> AnyFunction:
        """What unit multipliers of all constraints add to the reactions, and Φ_z of all constraints."""
        if self.in_loops:
            return self.recorded("reaction_play", lambda given, _: list(given.reaction_play))
        return self.kept("reaction_play", lambda: self.expressions.reaction_play, matrices=[0, 1])

    @cached_property
    def recentred(self) -> AnyFunction:
        """Z, ż, z̈, p and references of the same motion with the references moved to where it is now."""
        return self.defined("recentred", lambda given: list(given.recentred.values()))

    @cached_property
    def start(self) -> AnyFunction:
        """Coordinates and velocities of the start system as the user gave them, and x at the start, shape (k,)."""
        return self.defined("start", lambda given: list(given.start.values()))

    @cached_property
    def _start_parts(self) -> tuple[ca.SX, ca.SX]:
        count = len(self.system.start_system.coordinates)
        return self.add_part("start_coordinates", count)[0], self.add_part("start_velocities", count)[0]

    @cached_property
    def start_references(self) -> AnyFunction:
        """Nothing but what it writes: references that suit the part `start_coordinates`."""
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
        """Nothing but what it writes: z and ż from the parts `start_coordinates` and `start_velocities`."""
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
        """Write references, z and ż that belong to coordinates and velocities of the start system."""
        functions = self.start_references, self.placement
        for part, values in (("start_coordinates", coordinates), ("start_velocities", velocities)):
            self._memory[part][:] = values
        for function in functions:
            function()
