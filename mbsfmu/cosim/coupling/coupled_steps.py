"""Coupled steps of a run: their tables, and who makes them.

The steps are those of `mbsfmu.cosim.compiled.coupled_step`: its C makes them where it can call all FMUs; else they run
as they stand, over the same tables.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.interruption import deferring_interruptions
from mbsfmu.cosim.compiled.coupled_step import append, make_step
from mbsfmu.cosim.compiled.library import (
    MADE,
    NO_CONVERGENCE,
    NO_JACOBIAN,
    NOT_FINITE,
    REFUSED,
    UNFINISHED,
    UNFIT,
    ExchangeTable,
    MakeStep,
    compiled_library,
    exchange_function,
    pointer_to,
)
from mbsfmu.cosim.compiled.member_step import advance, extrapolate, interpolate, set_inputs, take, weigh
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance
from mbsfmu.cosim.coupling.extrapolation import Extrapolation, OutputHistory, ends, mean
from mbsfmu.cosim.coupling.power_bonds import PowerBond
from mbsfmu.cosim.coupling.step_tables import Tables
from mbsfmu.cosim.coupling.sweeps import Algorithm
from mbsfmu.cosim.fmus.fmu_instance import Floats, FmuCalls, FmuEnded, FmuError
from mbsfmu.stepping.language import Reals

_PATIENCE = 0.05  # s between two looks at the interpreter, which alone hears of interruptions


def interpreted(exchange: ExchangeTable, count: int) -> int:
    """Make steps until so many are made, or patience is at its end, or something needs a look; as C does."""
    begin = clock.perf_counter()
    if exchange.closing and not exchange.under_way:
        exchange.closing[0].knows_motions = 0  # FMUs may have been set since
    while exchange.made < count:
        is_made_again = exchange.sweeps_again > 0 and exchange.points > exchange.length_count
        try:
            outcome = make_step(exchange)
        finally:
            # What was saved for it is not restored any more, which the FMUs may count on from the next step on.
            for unit in exchange.units if is_made_again else ():
                unit.instance.release(exchange.slot)
        if outcome != MADE:
            return outcome
        exchange.made += 1
        if exchange.units[0].instance.ends or clock.perf_counter() - begin > exchange.patience:
            break
    return MADE


def _extrapolate(exchange: ExchangeTable) -> None:
    weigh(exchange)
    extrapolate(exchange)


def _interpolate(exchange: ExchangeTable, end: Reals) -> None:
    weigh(exchange)
    interpolate(exchange, end, 0, exchange.outputs)


class CoupledSteps:
    """Who makes coupled steps, with what is done between its calls.

    Parameters
    ----------
    algorithm
        What the steps are made with.
    history
        The history of the run, or one of its form.
    bonds
        The power bonds whose energies are recorded with the steps.
    times
        Communication points in s.
    signals
        Number of steps for which there is room for the values of signals.

    Attributes
    ----------
    tables
        What the steps work on.
    is_compiled
        Whether C makes them.
    """

    def __init__(
        self, algorithm: Algorithm, history: OutputHistory, bonds: Sequence[PowerBond], times: Floats, signals: int
    ) -> None:
        self._algorithm, self._calls = algorithm, FmuCalls()
        compiled = self._compiled()
        self.is_compiled = compiled is not None
        self._function, functions = compiled or (interpreted, None)
        self.tables = Tables(algorithm, functions, self._calls, bonds, history, times, signals)
        self._slots = [
            (member.instance, algorithm.slot if algorithm.is_saved(member) else None)
            for member in algorithm.exchange.members
        ]
        exchange = self.tables.exchange
        exchange.patience = _PATIENCE
        exchange.is_compiled = self.is_compiled
        exchange.shown = algorithm.correction is not None
        exchange.apart = algorithm.pool is not None or any(unit.steps_apart for unit in exchange.units)
        exchange.advance_apart, exchange.correct_outputs = self._advance_apart, self._correct_outputs
        exchange.integrate_joined = lambda: algorithm.integrate(exchange)

    def _compiled(self) -> tuple[Callable[..., int], list[MakeStep]] | None:
        """Return the compiled code, and what makes a step of each FMU; None where they are made in Python.

        Joints of FMUs for model exchange, threads, linear corrections, and FMUs that compiled code cannot call are for
        Python; so are runs where there is no compiler.
        """
        algorithm = self._algorithm
        if algorithm.pool is not None or algorithm.correction is not None or not algorithm.compiles:
            return None
        members = [member for member, _ in algorithm.order_of_steps]
        ports = [port for member in members for port in (member.entries, member.outputs)]
        if not all(port.compiles for port in (*ports, *algorithm.other_ports)):
            return None
        functions = [member.instance.step_function(self._calls) for member in members]
        if None in functions or (function := exchange_function()) is None:
            return None
        return function, cast("list[MakeStep]", functions)

    def _run(self, history: OutputHistory, count: int, step: float) -> None:
        """Make so many steps in s from where the tables are; these tell how many were made.

        Raises
        ------
        FmuEnded, SimulationError
            When an FMU ends the run or refuses, an iteration does not converge or an output is not finite.
        """
        exchange = self.tables.exchange
        exchange.made = exchange.sweeps = exchange.rollbacks = exchange.under_way = 0
        self._set_history(history, step)
        exchange.has_missed = history.correction is not None
        if history.correction is not None and history.correction is not self.tables.missed:
            self.tables.missed[:] = history.correction
        try:
            if self.is_compiled:
                exchange.earliest = min(instance.earliest_state(slot) for instance, slot in self._slots)
                with deferring_interruptions():
                    self._call(count)
            else:
                self._call(count)
        finally:
            self._take_over()

    def _call(self, count: int) -> None:
        exchange = self.tables.exchange
        outcome = self._function(exchange, count)
        while outcome in (UNFINISHED, NO_JACOBIAN):
            if outcome == UNFINISHED:
                self._complete_step_of_fmu()
            else:
                self._take_over_states()
                self._algorithm.make_jacobian(exchange)
            outcome = self._function(exchange, exchange.made + 1)
        self._look(outcome)

    @property
    def _time(self) -> float:
        """Beginning of the present step in s."""
        exchange = self.tables.exchange
        return exchange.times[exchange.first + exchange.made]

    def _set_history(self, history: OutputHistory, step: float) -> None:
        """Set a history, and the length of the step in s that comes."""
        exchange = self.tables.exchange
        exchange.known, exchange.step = pointer_to(history.known), step
        exchange.length_count = len(history.lengths)
        for place, length in enumerate(history.lengths):
            exchange.lengths[place] = length

    def _take_history(self, history: OutputHistory) -> None:
        """Let a history know what was written into it."""
        exchange = self.tables.exchange
        history.went_on(tuple(exchange.lengths[: exchange.length_count]))

    # -- what is done for steps -------------------------------------------------------------------------------------

    def _take_over(self) -> None:
        """Take over what was done to FMUs, and the numbers of sweeps and returns."""
        for number in np.flatnonzero(self.tables.disturbing):
            self._calls[int(number)][0].disturbs = True
        exchange = self.tables.exchange
        self._algorithm.sweeps += exchange.sweeps
        exchange.sweeps = 0
        self._forget_ends()
        self._take_over_states()
        if exchange.sweeps_again:  # what was saved for a step that is made again is not restored behind it
            for instance, _ in self.tables.states:
                instance.release(self._algorithm.slot)

    def _complete_step_of_fmu(self) -> None:
        """Complete the step of an FMU; one that ends the run at the end of its step does not end this one."""
        exchange = self.tables.exchange
        self._forget_ends()
        self._take_over_states()  # the rest of a step must not count on it that no state is restored
        instance, _ = self._calls[exchange.refused]
        try:
            instance.stepped(exchange.unit_step, exchange.status)
        except FmuError as error:
            member = self._algorithm.exchange.member(instance.name)
            member.finish(error, instance.time, exchange.unit_step)

    def _take_over_states(self) -> None:
        """Record the states at the start of the last step in which compiled code has saved them."""
        saved_at = self.tables.exchange.saved_at
        for instance, saved in self.tables.states if math.isfinite(saved_at) else ():
            instance.take_over(self._algorithm.slot, saved_at, saved)

    def _forget_ends(self) -> None:
        """Count returns to the start of steps, and forget which FMUs have ended the run in those made again."""
        exchange = self.tables.exchange
        closing = exchange.closing[0] if exchange.closing else None
        if exchange.rollbacks or (closing is not None and closing.rollbacks):
            for instance, _ in self.tables.states:
                self._algorithm.exchange.ends.pop(instance.name, None)
        self._algorithm.rollbacks += exchange.rollbacks
        exchange.rollbacks = 0
        if closing is not None:
            closing.rollbacks = 0

    def _advance_apart(self, first: int, behind: int) -> None:
        """Let members go over the step, in threads where there are some.

        Those in other processes begin, those in this one step, and only then the others are waited for, all of them
        before one that failed ends the step.
        """
        exchange, time, pool = self.tables.exchange, self._time, self._algorithm.pool
        turns = range(first, behind)
        if pool is not None:
            made = [pool.submit(advance, exchange, exchange.members[turn]) for turn in turns]
            wait(made)
            for each in made:
                each.result()
            return
        apart = [turn for turn in turns if exchange.units[turn].steps_apart]
        failures, begun = list[Exception](), list[int]()
        try:
            for turn in apart:
                take(exchange, exchange.members[turn])
                set_inputs(exchange, exchange.members[turn], exchange.step)
                exchange.units[turn].instance.send_step(time, exchange.step)
                begun.append(turn)
            for turn in turns:
                if turn not in apart:
                    advance(exchange, exchange.members[turn])
        except (SimulationError, FmuEnded) as error:
            failures.append(error)
        for turn in begun:
            try:
                exchange.units[turn].complete(time, exchange.step)
            except (SimulationError, FmuEnded) as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _correct_outputs(self) -> None:
        """Correct outputs with direct feed-through at the end of the step."""
        outputs, correction = self._algorithm.exchange.outputs, self._algorithm.correction
        assert correction is not None
        outputs[:] = correction.apply(outputs, self._time + self.tables.exchange.step)

    def _look(self, outcome: int) -> None:
        """Raise the error of an outcome, if it is one."""
        exchange, members = self.tables.exchange, self._algorithm.exchange
        if outcome == REFUSED:
            instance, function = self._calls[exchange.refused]
            instance.fail(function, exchange.status)
        if outcome == UNFIT:
            instance, _ = self._calls[exchange.refused]
            members.member(instance.name).entries.write()
        if outcome == NOT_FINITE:
            instance, variable = members.names[int(np.argmin(np.isfinite(members.outputs)))]
            end = self._time + exchange.step
            raise SimulationError(f"{instance}.{variable} is not finite at t = {end:.9g} s: the run diverges")
        if outcome == NO_CONVERGENCE:
            raise self._algorithm.failure(self._time)
        assert outcome == MADE


class SingleSteps(CoupledSteps):
    """Single coupled steps from any history, as controlled runs make them, and what they go by.

    Parameters
    ----------
    algorithm, history
        As for `CoupledSteps`.
    """

    def __init__(self, algorithm: Algorithm, history: OutputHistory) -> None:
        self._times = np.zeros(1)
        super().__init__(algorithm, history, (), self._times, 1)
        exchange = self.tables.exchange
        self._row = np.zeros(exchange.outputs + exchange.reaction_count)
        exchange.recorded = self.tables.pointer(self._row)
        exchange.first = exchange.first_row = 0
        library = compiled_library() if exchange_function() is not None else None
        self._extrapolate = library.mbsfmu_extrapolate if library else _extrapolate
        self._interpolate = library.mbsfmu_interpolate if library else _interpolate
        self._append = library.mbsfmu_append if library else append

    def make(self, history: OutputHistory, time: float, step: float) -> None:
        """Make a step in s from a time in s, and append its end to the history.

        Raises
        ------
        FmuEnded, SimulationError
            When an FMU ends the run or refuses, an iteration does not converge or an output is not finite.
        """
        driven = self._algorithm.exchange.driven
        self._times[0] = time
        if len(driven):
            self.tables.after[0], self.tables.before[0] = driven.after(time), driven.before(time + step)
        self._run(history, 1, step)
        self._take_history(history)
        if self.tables.exchange.has_missed:
            history.correction = self.tables.missed.copy()

    def append(self, history: OutputHistory, other: OutputHistory, step: float) -> None:
        """Append the end of a step in s to a history that does not know it, from another one that has made it."""
        self._set_history(history, step)
        exchange = self.tables.exchange
        self._algorithm.exchange.outputs[:] = other.now
        reading, exchange.rate_count = exchange.rate_count, 0
        self._append(exchange)
        exchange.rate_count = reading
        if exchange.takes_rates:
            history.known[-1] = other.known[-1]
        self._take_history(history)
        history.correction = other.correction

    def predicted(self, history: OutputHistory, step: float) -> Floats:
        """Return the extrapolated outputs at the end of a step in s, shape (outputs,)."""
        self._set_history(history, step)
        self._extrapolate(self.tables.exchange)
        return ends(self._polynomials(history))

    def means(self, history: OutputHistory, end: Floats, step: float) -> Floats:
        """Return the means of the outputs over a step in s, of at least linear polynomials.

        The history ends where the step begins; shape (outputs,).
        """
        if history.extrapolation is Extrapolation.ZERO:
            return 0.5 * (history.now + end)
        self._set_history(history, step)
        self._interpolate(self.tables.exchange, pointer_to(end))
        return mean(self._polynomials(history))

    def _polynomials(self, history: OutputHistory) -> Floats:
        return self.tables.polynomials[: history.rows, : len(history.now)]

    def advance(self, member: CoupledInstance, polynomials: Floats, time: float, step: float) -> None:
        """Let a member go over a step in s with its inputs along other polynomials of all columns.

        Raises
        ------
        FmuEnded, SimulationError
            When its FMU ends the run or refuses.
        """
        exchange = self.tables.exchange
        exchange.step, self._times[0], exchange.made, exchange.has_missed = step, time, 0, 0
        self.tables.polynomials[:] = polynomials
        turn = next(turn for turn, unit in enumerate(exchange.units) if unit is member)
        exchange.members[turn].part = 0
        advance(exchange, exchange.members[turn])


class CommunicationPoint(NamedTuple):
    """Data recorded at a communication point.

    Attributes
    ----------
    time, outputs
        Time in s and all outputs.
    energies
        For each bond, what the taker got and the giver gave in the step to this point, in J.
    reactions
        Those of joints; see `Algorithm`.
    """

    time: float
    outputs: Floats
    energies: list[tuple[float, float]]
    reactions: Floats


class Stepping:
    """An algorithm with its power bonds, as runs step it one by one.

    Parameters
    ----------
    algorithm
        The algorithm, with its members.
    bonds
        The power bonds.
    history
        The history of the run, or one of its form.

    Attributes
    ----------
    shows_inputs
        Of each output, whether it shows at the end of a step what the inputs that it depends on directly are off by
        there. Where steps are iterated, that is nothing for FMUs that interpolate.
    steps
        What makes single steps.
    """

    def __init__(self, algorithm: Algorithm, bonds: Sequence[PowerBond], history: OutputHistory) -> None:
        self.algorithm = algorithm
        self.exchange = algorithm.exchange
        self.bonds = bonds
        self._history = history
        members = [self.exchange.member(name) for name, _ in self.exchange.names]
        corrected = algorithm.settings.linear_correction
        self.shows_inputs = np.array(
            [
                variable in member.direct
                and not corrected
                and not (algorithm.iterates and member.instance.interpolates)
                for member, (_, variable) in zip(members, self.exchange.names, strict=True)
            ],
            dtype=bool,
        )

    @cached_property
    def steps(self) -> SingleSteps:
        """What makes single steps."""
        return SingleSteps(self.algorithm, self._history)

    @property
    def order(self) -> int:
        """Order of the coupling."""
        return self.algorithm.order

    @property
    def degree(self) -> int:
        """Degree of the polynomials that extrapolate."""
        return self.algorithm.settings.extrapolation.degree

    def advance(self, history: OutputHistory, time: float, step: float) -> CommunicationPoint:
        """Make a step in s; its end is added to the history.

        Raises
        ------
        FmuEnded, SimulationError
            When an FMU ends the run or refuses, an iteration does not converge or an output is not finite.
        """
        before = history.now
        self.steps.make(history, time, step)
        energies = [bond.exchanged(before, history.now, step) for bond in self.bonds]
        return CommunicationPoint(time + step, history.now, energies, self.algorithm.reactions)

    def save(self, slot: str, time: float) -> None:
        """Save the states of all members at a time in s under a name."""
        self.exchange.save(slot, time)

    def restore(self, slot: str) -> None:
        """Restore all members."""
        self.algorithm.rollbacks += 1
        self.exchange.restore(slot)
