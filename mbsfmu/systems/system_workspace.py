"""Arrays of a system, and construction of functions on them: unrolled or recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, cast

import casadi as ca
import numpy as np

from mbsfmu.modelling.data import Array
from mbsfmu.systems.expressions import PARTS, SystemExpressions
from mbsfmu.systems.recorded_system import RecordedSystem
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
from mbsfmu.tracing.tape.recorded_program import program_of, programs_in_sequence
from mbsfmu.tracing.tape.recording import RecordedArray, Recorder
from mbsfmu.tracing.workspace import AnyFunction, Floats, RecordedFunction, TracedFunction, Workspace

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
