"""Communication steps of a run in compiled code, several per call."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from ctypes import byref

import numpy as np

from mbsfmu.base.interruption import deferring_interruptions
from mbsfmu.cosim.compiled.layout import (
    MADE,
    NO_CONVERGENCE,
    NO_JACOBIAN,
    NOT_FINITE,
    REFUSED,
    UNFINISHED,
    UNFIT,
)
from mbsfmu.cosim.compiled.library import compiled_differences, exchange_function
from mbsfmu.cosim.coupling.compiled_tables import Tables
from mbsfmu.cosim.coupling.explicit_coupling import Explicit, OneSweep
from mbsfmu.cosim.coupling.extrapolation import OutputHistory, PolynomialWeights
from mbsfmu.cosim.coupling.interface_newton import InterfaceNewton
from mbsfmu.cosim.coupling.iterated import Iterated, pointer_to
from mbsfmu.cosim.coupling.stepping import Stepping
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuCalls, FmuError
from mbsfmu.cosim.joints.joint_closing import JointClosing
from mbsfmu.cosim.runs.run_recorder import Record

_PATIENCE = 0.05  # s between two looks at the interpreter, which alone hears of interruptions
_CHUNK = 4096  # steps for which signals are asked at once


class CompiledSteps:
    """Runner of communication steps in compiled code.

    It works on the memory of history, members and record: Python may make any of the steps between.

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
        self._function, self._stepping, self._tables, self._calls = function, stepping, tables, calls
        self._history, self._record = history, record
        self._times, self._lengths = times, lengths.tolist()
        self._changes = [*(np.flatnonzero(np.diff(lengths)) + 1).tolist(), len(lengths)]
        self._most = _CHUNK
        self._weights: list[PolynomialWeights] = []
        tables.exchange.patience = _PATIENCE

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
                outcome = self._function(byref(exchange), count)
                while outcome in (UNFINISHED, NO_JACOBIAN):
                    if outcome == UNFINISHED:
                        self._complete_step_of_fmu()
                    else:
                        self._make_jacobian(index, step)
                    outcome = self._function(byref(exchange), exchange.made + 1)
                self._look(outcome, index, step)
            finally:
                self._end(index, step)
        self._most = min(2 * exchange.made, _CHUNK) if exchange.made == count else exchange.made
        return exchange.made

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

    def _make_jacobian(self, index: int, step: float) -> None:
        """Make the Jacobian of a Newton iteration in a step in s."""
        algorithm, exchange = self._stepping.algorithm, self._tables.exchange
        time = self._times[index + exchange.made]
        self._take_over_states()
        if isinstance(algorithm, JointClosing):
            correction = self._tables.missed if exchange.has_missed else None
            algorithm.renew_within(self._tables.polynomials, correction, time, step, self._differences)
            algorithm.table.is_fresh = algorithm.table.is_renewed = True
            return
        assert isinstance(algorithm, InterfaceNewton)
        algorithm.renew(self._history, time, step)
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
            weights = [history.weights(kind, step) for kind in ("extrapolate", "interpolate")]
            if weights != self._weights:
                self._weights = weights
                self._tables.weigh(*(each.values() for each in weights))
        exchange.has_missed = history.correction is not None
        if history.correction is not None and history.correction is not self._tables.missed:
            self._tables.missed[:] = history.correction
        for bond, residual, exchanged in zip(self._tables.bonds, record.residuals, record.exchanged, strict=True):
            bond.residual, bond.exchanged = residual, exchanged

    def _end(self, index: int, step: float) -> None:
        """Take over what was done."""
        exchange, made = self._tables.exchange, self._tables.exchange.made
        for number in np.flatnonzero(self._tables.disturbing):
            self._calls[int(number)][0].disturbs = True
        self._stepping.algorithm.sweeps += exchange.sweeps
        self._forget_ends()
        self._take_over_states()
        self._record.times.extend(self._times[index + 1 : index + made + 1])
        self._record.residuals[:] = [bond.residual for bond in self._tables.bonds]
        self._record.exchanged[:] = [bond.exchanged for bond in self._tables.bonds]
        if made:
            self._history.went_on(step, made)
        if exchange.has_missed:
            self._history.correction = self._tables.missed

    def _look(self, outcome: int, index: int, step: float) -> None:
        """Raise the error of compiled code, if any."""
        exchange = self._tables.exchange
        if outcome == REFUSED:
            instance, function = self._calls[exchange.refused]
            instance.fail(function, exchange.status)
        if outcome == UNFIT:
            instance, _ = self._calls[exchange.refused]
            self._stepping.exchange.member(instance.name).entries.write()
        if outcome == NOT_FINITE:
            self._stepping.check(self._stepping.exchange.outputs, self._times[index + exchange.made] + step)
        if outcome == NO_CONVERGENCE:
            assert isinstance(self._stepping.algorithm, Iterated | JointClosing)
            raise self._stepping.algorithm.failure(self._times[index + exchange.made])
        assert outcome == MADE


def compile_steps(
    stepping: Stepping, history: OutputHistory, record: Record, times: list[float], lengths: Floats
) -> CompiledSteps | None:
    """Return the compiled runner of a run, or None if Python is required.

    Joints of FMUs for model exchange, threads, and FMUs that compiled code cannot call are for Python; so are runs
    where there is no compiler.

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
    algorithm, exchange, calls = stepping.algorithm, stepping.exchange, FmuCalls()
    if not isinstance(algorithm, Explicit | Iterated | JointClosing) or algorithm.settings.threads > 1:
        return None
    ports = [port for member in exchange.members for port in (member.entries, member.outputs)]
    if isinstance(algorithm, JointClosing):
        ports += algorithm.compiled_ports
    if not all(port.compiles for port in ports):
        return None
    functions = [
        member.instance.step_function(calls, algorithm.compiled_slot(member)) for member, _ in algorithm.compiled_turns
    ]
    known = [function for function in functions if function is not None]
    if len(known) < len(functions) or (function := exchange_function()) is None:
        return None
    closing = algorithm.enter(calls) if isinstance(algorithm, JointClosing) else None
    signals = min(_CHUNK, len(lengths))
    tables = Tables(algorithm, known, closing, calls, stepping.bonds, history, np.array(times), signals)
    return CompiledSteps(function, stepping, tables, calls, history, record, times, lengths)
