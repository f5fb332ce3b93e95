"""Communication steps of a run in compiled code, several per call."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from ctypes import byref

import numpy as np

from mbsfmu.base.interruption import deferring_interruptions
from mbsfmu.cosim.compiled.library import (
    MADE,
    NO_CONVERGENCE,
    NO_JACOBIAN,
    NOT_FINITE,
    REFUSED,
    UNFINISHED,
    UNFIT,
    MakeStep,
    compiled_differences,
    exchange_function,
)
from mbsfmu.cosim.coupling.compiled_tables import Tables
from mbsfmu.cosim.coupling.extrapolation import OutputHistory
from mbsfmu.cosim.coupling.iterated_coupling import InterfaceNewton, Iterated, pointer_to
from mbsfmu.cosim.coupling.stepping import Stepping
from mbsfmu.cosim.coupling.sweeps import Explicit, OneSweep
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuCalls, FmuError
from mbsfmu.cosim.joints.joint_closing import JointClosing
from mbsfmu.cosim.runs.run_recorder import Record

_PATIENCE = 0.05  # s between two looks at the interpreter, which alone hears of interruptions
_MOST_WEIGHTS = 16  # sets that are kept, by lengths of steps
_CHUNK = 4096  # steps for which signals are asked at once


class CompiledCode:
    """Compiled code with what Python does for it between its calls.

    Parameters
    ----------
    function
        The compiled code.
    stepping
        What makes the steps in Python.
    tables
        What both work on.
    calls
        The functions that the compiled code calls.
    """

    def __init__(self, function: Callable[..., int], stepping: Stepping, tables: Tables, calls: FmuCalls) -> None:
        self._function, self._stepping, self._tables, self._calls = function, stepping, tables, calls
        self._slots = [
            (member.instance, stepping.algorithm.compiled_slot(member)) for member in stepping.exchange.members
        ]
        self._lengths_of_weights: tuple[float, ...] = ()
        self._known_weights: dict[tuple[float, ...], list[Floats]] = {}
        tables.exchange.patience = _PATIENCE

    def _run(self, history: OutputHistory, count: int, step: float) -> None:
        """Make so many steps in s from where the structures are; they tell how many were made.

        Raises
        ------
        FmuEnded, SimulationError
            What the same steps raise in Python.
        """
        exchange = self._tables.exchange
        exchange.earliest = min(instance.earliest_state(slot) for instance, slot in self._slots)
        outcome = self._function(byref(exchange), count)
        while outcome in (UNFINISHED, NO_JACOBIAN):
            if outcome == UNFINISHED:
                self._complete_step_of_fmu()
            else:
                self._make_jacobian(history, step)
            outcome = self._function(byref(exchange), exchange.made + 1)
        self._look(outcome, step)

    @property
    def _time(self) -> float:
        """Beginning of the present step in s."""
        exchange = self._tables.exchange
        return exchange.times[exchange.first + exchange.made]

    def _set_weights(self, history: OutputHistory, step: float) -> None:
        """Set the weights of the polynomials over a step in s; controlled steps come back to a few lengths."""
        weights = [history.weights(kind, step) for kind in ("extrapolate", "interpolate")]
        lengths = weights[0].lengths
        if lengths == self._lengths_of_weights:
            return
        self._lengths_of_weights = lengths
        if lengths not in self._known_weights:
            if len(self._known_weights) == _MOST_WEIGHTS:
                self._known_weights.clear()
            self._known_weights[lengths] = [each.values() for each in weights]
        self._tables.weigh(*self._known_weights[lengths])

    def _set_correction(self, history: OutputHistory) -> None:
        """Set what inputs have missed until now."""
        self._tables.exchange.has_missed = history.correction is not None
        if history.correction is not None and history.correction is not self._tables.missed:
            self._tables.missed[:] = history.correction

    def _take_over(self) -> None:
        """Take over what was done to FMUs, and the number of sweeps."""
        for number in np.flatnonzero(self._tables.disturbing):
            self._calls[int(number)][0].disturbs = True
        self._stepping.algorithm.sweeps += self._tables.exchange.sweeps
        self._forget_ends()
        self._take_over_states()

    def _complete_step_of_fmu(self) -> None:
        """Complete the step of an FMU; one that ends the run at the end of its step does not end this one."""
        exchange = self._tables.exchange
        self._forget_ends()
        instance, _ = self._calls[exchange.refused]
        try:
            instance.stepped(exchange.unit_step, exchange.status)
        except FmuError as error:
            member = self._stepping.exchange.member(instance.name)
            member.finish(error, instance.time, exchange.unit_step)

    def _make_jacobian(self, history: OutputHistory, step: float) -> None:
        """Make the Jacobian of a Newton iteration in a step in s."""
        algorithm, exchange, time = self._stepping.algorithm, self._tables.exchange, self._time
        self._take_over_states()
        if isinstance(algorithm, JointClosing):
            correction = self._tables.missed if exchange.has_missed else None
            algorithm.renew_within(self._tables.polynomials, correction, time, step, self._differences)
            algorithm.table.is_fresh = True
            return
        assert isinstance(algorithm, InterfaceNewton)
        algorithm.renew(history, time, step)
        algorithm.table.is_renewed = True

    def _differences(self, multipliers: Floats, perturbations: Floats) -> Floats:
        """Return derivatives of what joints are open by; by Python where an FMU needs it."""
        algorithm = self._stepping.algorithm
        assert isinstance(algorithm, JointClosing)
        jacobian = np.zeros((len(perturbations), len(perturbations)))
        table, exchange = algorithm.table, self._tables.exchange
        table.jacobian, table.perturbations = pointer_to(jacobian), pointer_to(perturbations)
        counts = [(member.instance, member.instance.steps) for member in algorithm.together]
        if compiled_differences()(byref(exchange)) == MADE:
            return jacobian
        exchange.part = 0
        for instance, count in counts:
            instance.steps = count
        return algorithm.trials.differences(multipliers, perturbations)

    def _take_over_states(self) -> None:
        """Record the states at the start of the last step in which they were saved."""
        for instance, slot, saved in self._tables.states:
            instance.take_over(slot, self._tables.exchange.saved_at, saved)

    def _forget_ends(self) -> None:
        """Forget which FMUs have ended the run in steps that were made again."""
        algorithm = self._stepping.algorithm
        table = algorithm.table if isinstance(algorithm, Iterated | JointClosing) else None
        if table is None or not table.rollbacks:
            return
        if isinstance(algorithm, Iterated):
            algorithm.rollbacks += table.rollbacks
        table.rollbacks = 0
        for instance, _, _ in self._tables.states:
            self._stepping.exchange.ends.pop(instance.name, None)

    def _look(self, outcome: int, step: float) -> None:
        """Raise the error of compiled code, if any."""
        exchange = self._tables.exchange
        if outcome == REFUSED:
            instance, function = self._calls[exchange.refused]
            instance.fail(function, exchange.status)
        if outcome == UNFIT:
            instance, _ = self._calls[exchange.refused]
            self._stepping.exchange.member(instance.name).entries.write()
        if outcome == NOT_FINITE:
            self._stepping.check(self._stepping.exchange.outputs, self._time + step)
        if outcome == NO_CONVERGENCE:
            assert isinstance(self._stepping.algorithm, Iterated | JointClosing)
            raise self._stepping.algorithm.failure(self._time)
        assert outcome == MADE


class CompiledSteps(CompiledCode):
    """Runner of communication steps in compiled code.

    It works on the memory of history, members and record: Python may make any of the steps between.

    Parameters
    ----------
    function, stepping, tables, calls
        As for `CompiledCode`.
    history, record
        The run until now.
    times
        Communication points in s.
    lengths
        Of the steps between them in s.
    """

    def __init__(
        self,
        function: Callable[..., int],
        stepping: Stepping,
        tables: Tables,
        calls: FmuCalls,
        history: OutputHistory,
        record: Record,
        times: list[float],
        lengths: Floats,
    ) -> None:
        super().__init__(function, stepping, tables, calls)
        self._history, self._record = history, record
        self._times, self._lengths = times, lengths.tolist()
        self._changes = [*(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(lengths)]
        self._most = _CHUNK

    def advance(self, index: int, end: int) -> int:
        """Make steps from one of an index on, up to another one at most; return how many: 0 where Python has to.

        Raises
        ------
        FmuEnded, SimulationError
            What the same steps raise in Python; those before are recorded.
        """
        algorithm, exchange, step = self._stepping.algorithm, self._tables.exchange, self._lengths[index]
        if isinstance(algorithm, OneSweep) and algorithm.repeats(self._history):
            return 0
        even = self._changes[bisect_right(self._changes, index)] if self._history.is_even(step) else index + 1
        count = self._signals(index, min(even - index, end - index, self._most), step)
        if not count:
            return 0
        with deferring_interruptions():
            self._begin(index, count, step)
            try:
                self._run(self._history, count, step)
            finally:
                self._end(index, step)
        self._most = min(2 * exchange.made, _CHUNK) if exchange.made == count else exchange.made
        return exchange.made

    def _signals(self, index: int, count: int, step: float) -> int:
        """Ask the signals for so many steps in s; return for how many they have answered."""
        driven, tables = self._stepping.exchange.driven, self._tables
        if driven.are_constant:
            if len(driven):
                tables.after[:count] = tables.before[:count] = driven.after(self._times[index])
            return count
        for place, time in enumerate(self._times[index : index + count]):
            try:
                tables.after[place] = driven.after(time)
                if self._history.rows > 1:
                    tables.before[place] = driven.before(time + step)
            except Exception:  # Python meets it again, where it makes this step
                return place
        return count

    def _begin(self, index: int, count: int, step: float) -> None:
        """Set the start of the compiled code for steps in s, and reserve rows."""
        exchange, history, record = self._tables.exchange, self._history, self._record
        record.reserve(count)
        exchange.recorded = record.rows.ctypes.data_as(type(exchange.recorded))
        exchange.first_row, exchange.first, exchange.step = len(record.times), index, step
        exchange.made = exchange.sweeps = exchange.under_way = 0
        if history.rows > 1:
            self._set_weights(history, step)
        self._set_correction(history)
        for bond, residual, exchanged in zip(self._tables.bonds, record.residuals, record.exchanged, strict=True):
            bond.residual, bond.exchanged = residual, exchanged

    def _end(self, index: int, step: float) -> None:
        """Take over what was done."""
        exchange, made = self._tables.exchange, self._tables.exchange.made
        self._take_over()
        self._record.times.extend(self._times[index + 1 : index + made + 1])
        self._record.residuals[:] = [bond.residual for bond in self._tables.bonds]
        self._record.exchanged[:] = [bond.exchanged for bond in self._tables.bonds]
        if made:
            self._history.went_on(step, made)
        if exchange.has_missed:
            self._history.correction = self._tables.missed


class CompiledStep(CompiledCode):
    """Single steps in compiled code, from any history, as controlled runs make them.

    Parameters
    ----------
    function, stepping, tables, calls
        As for `CompiledCode`.
    times
        The array of the structures that has the beginning of the step in s.
    """

    def __init__(
        self, function: Callable[..., int], stepping: Stepping, tables: Tables, calls: FmuCalls, times: Floats
    ) -> None:
        super().__init__(function, stepping, tables, calls)
        self._times = times
        exchange = tables.exchange
        self._row = np.zeros(exchange.outputs + exchange.reaction_count)
        exchange.recorded = pointer_to(self._row)
        exchange.first = exchange.first_row = 0

    def __call__(self, history: OutputHistory, time: float, step: float) -> bool:
        """Make a step in s from a time in s, and append its end to the history; False where Python has to make it.

        Raises
        ------
        FmuEnded, SimulationError
            What the same step raises in Python.
        """
        algorithm, tables, driven = self._stepping.algorithm, self._tables, self._stepping.exchange.driven
        if isinstance(algorithm, OneSweep) and algorithm.repeats(history):
            return False
        exchange = tables.exchange
        exchange.known, exchange.step, self._times[0] = pointer_to(history.known), step, time
        exchange.made = exchange.sweeps = exchange.under_way = 0
        if history.rows > 1:
            self._set_weights(history, step)
        if len(driven):
            tables.after[0], tables.before[0] = driven.after(time), driven.before(time + step)
        self._set_correction(history)
        try:
            self._run(history, 1, step)
        finally:
            self._take_over()
        history.went_on(step, 1)
        if exchange.has_missed:
            history.correction = tables.missed.copy()
        return True


def compile_step(stepping: Stepping, history: OutputHistory) -> CompiledStep | None:
    """Return what makes single steps in compiled code, or None if Python is required, as in `compile_steps`.

    Parameters
    ----------
    stepping
        What makes the steps in Python.
    history
        One of the run.
    """
    if (found := _function_and_calls(stepping)) is None:
        return None
    function, functions, calls = found
    times = np.zeros(1)
    tables = Tables(stepping.algorithm, functions, None, calls, (), history, times, 1)
    return CompiledStep(function, stepping, tables, calls, times)


def compile_steps(
    stepping: Stepping, history: OutputHistory, record: Record, times: list[float], lengths: Floats
) -> CompiledSteps | None:
    """Return the compiled runner of a run, or None if Python is required.

    Joints of FMUs for model exchange, threads, linear corrections, and FMUs that compiled code cannot call are for
    Python; so are runs where there is no compiler.

    Parameters
    ----------
    stepping
        What makes the steps in Python.
    history, record
        The run until now.
    times
        Communication points in s.
    lengths
        Of the steps between them in s.
    """
    if (found := _function_and_calls(stepping)) is None:
        return None
    function, functions, calls = found
    algorithm = stepping.algorithm
    closing = algorithm.enter(calls) if isinstance(algorithm, JointClosing) else None
    signals = min(_CHUNK, len(lengths))
    tables = Tables(algorithm, functions, closing, calls, stepping.bonds, history, np.array(times), signals)
    return CompiledSteps(function, stepping, tables, calls, history, record, times, lengths)


def _function_and_calls(stepping: Stepping) -> tuple[Callable[..., int], list[MakeStep], FmuCalls] | None:
    """Return the compiled code, what makes a step of each FMU, and the calls; None if Python is required."""
    algorithm, calls = stepping.algorithm, FmuCalls()
    settings = algorithm.settings
    if not isinstance(algorithm, Explicit | Iterated | JointClosing):
        return None
    if settings.threads > 1 or settings.linear_correction:
        return None
    ports = [port for member in stepping.exchange.members for port in (member.entries, member.outputs)]
    if isinstance(algorithm, JointClosing):
        ports += algorithm.compiled_ports
    if not all(port.compiles for port in ports):
        return None
    functions = [member.instance.step_function(calls) for member, _ in algorithm.compiled_turns]
    known = [function for function in functions if function is not None]
    if len(known) < len(functions) or (function := exchange_function()) is None:
        return None
    return function, known, calls
