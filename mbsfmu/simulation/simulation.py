"""A system with a solver: set, initialize, step, read, save, restore."""

from __future__ import annotations

import logging
import math
import time as clock
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import numpy as np

from mbsfmu.data import meant
from mbsfmu.ended import RunError, RunInterrupted
from mbsfmu.errors import InputError, SimulationError
from mbsfmu.formulations.change_points import RankWatch
from mbsfmu.formulations.functions import Floats
from mbsfmu.formulations.initialization import Initialization, check_limits
from mbsfmu.formulations.state import State
from mbsfmu.formulations.system import starts
from mbsfmu.identity import Origin
from mbsfmu.signals import AnySignal
from mbsfmu.simulation.dependencies import Dependencies
from mbsfmu.simulation.energy_watch import EnergyWatch
from mbsfmu.simulation.inputs import InputValues
from mbsfmu.simulation.result import Result
from mbsfmu.simulation.sampling import Sampler
from mbsfmu.simulation.saved_state import Snapshot, StateFormat
from mbsfmu.simulation.solver import AdaptiveSolver, Inputs, Solver, Statistics
from mbsfmu.simulation.variables import NO_EVENT, VariableTable, check_value, readings, warn_below_minimum
from mbsfmu.times import check_run, check_step, counted, tolerance
from mbsfmu.variables import Causality, Variability, Variable

logger = logging.getLogger(__name__)

_TOLERANCE = 1e-6  # told to importers of units that have none


class Simulation:
    """A running system.

    Parameters and start values are set before the first step; then inputs are set and steps are made. An
    input that has a signal follows it until it is set by hand.

    Parameters
    ----------
    name
        Name of the model.
    initialization
        Finds the start of the system.
    solver
        Advances its states.
    signals
        Signals by the input's name.
    description
        One line on the model.
    stop_time
        Default end of a run in s.
    identity
        What the simulation computes, in a word: saved states of others are refused.
    origin
        Where the model comes from.

    Attributes
    ----------
    time
        Present time in s.
    initialization, solver, formulation, functions
        What the simulation is made of; the functions are the formulation's.
    rank_watch
        Tells where the loop equations lose rank.
    energy_watch
        Tells where the energy drifts.
    identity, origin
        As given.
    """

    def __init__(
        self,
        name: str,
        initialization: Initialization,
        solver: Solver,
        signals: Mapping[str, AnySignal],
        *,
        description: str = "",
        stop_time: float = 10.0,
        identity: str = "",
        origin: Origin = Origin(),  # noqa: B008 - it is frozen
    ) -> None:
        self.name = name
        self.identity = identity
        self.origin = origin
        self.description = description
        self.stop_time = stop_time
        self.initialization = initialization
        self.solver = solver
        self.formulation = solver.formulation
        self.functions = solver.formulation.functions
        self._inputs = InputValues(self.functions.system.inputs, signals)
        self._sampler = Sampler(self.functions)
        self._table = VariableTable.of(
            self.functions,
            initialization,
            solver.step,
            self._inputs.starting(),
            bool(signals or self.functions.system.discrete),
        )
        self._place = {
            variable.name: (kind, index)
            for kind in ("continuous", "parameters", "settings", "calculated", "timing")
            for index, variable in enumerate(getattr(self._table, kind))
        }
        self._variable_by_name = {variable.name: variable for variable in self._table.ordered}
        names = [variable.name for variable in self._table.continuous]
        self.energy_watch = EnergyWatch(self.functions.system.name, names, solver.remedy)
        self._format = StateFormat(self.functions, len(self._table.calculated), self.energy_watch.size, identity)
        rank = initialization.independent_equations(self.functions)
        self.rank_watch = RankWatch(self.functions, rank, initialization.lever_arm)
        self._tolerances = self._present_tolerances
        self._told_undriven = False
        self.reset()

    def __repr__(self) -> str:
        return f"<Simulation: {self.name}, {self.formulation.name}, {self.solver.name}, at t = {self.time:g} s>"

    # -- description ----------------------------------------------------------------------------------------

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables: inputs, outputs, parameters, calculated parameters, then the rest."""
        return self._table.ordered

    @property
    def step_size(self) -> float:
        """Largest internal step in s."""
        return self.solver.step

    @property
    def tolerance(self) -> float:
        """Relative tolerance of a solver that chooses its steps; 1e-6 for others, which have none."""
        return self.solver.relative_tolerance if isinstance(self.solver, AdaptiveSolver) else _TOLERANCE

    def set_tolerance(self, relative: float) -> None:
        """Change the relative tolerance, and the absolute one in proportion; equal steps take no notice.

        Raises
        ------
        InputError
            When it is not positive.
        """
        if not (relative > 0 and math.isfinite(relative)):
            raise InputError(f"the tolerance is {relative:g}; it must be positive and finite")
        if isinstance(self.solver, AdaptiveSolver):
            self._set_tolerances(self._tolerances * (relative / self._tolerances[0]))

    @property
    def _present_tolerances(self) -> Floats:
        """Relative and absolute tolerance; zero where the solver has none."""
        solver = self.solver
        adaptive = isinstance(solver, AdaptiveSolver)
        return np.array([solver.relative_tolerance, solver.absolute_tolerance]) if adaptive else np.zeros(2)

    def _set_tolerances(self, tolerances: Floats) -> None:
        if isinstance(self.solver, AdaptiveSolver):
            self.solver.relative_tolerance, self.solver.absolute_tolerance = tolerances.tolist()

    @property
    def statistics(self) -> Statistics:
        """What the run has cost since it was initialized."""
        return self.solver.statistics

    @property
    def independent(self) -> tuple[str, ...]:
        """Names of the coordinates that are independent at present; all where there is no choice."""
        coordinates = self.functions.system.coordinates
        partition = self._started().partition
        chosen = range(len(coordinates)) if partition is None else partition.independent
        return tuple(coordinates[index].name for index in chosen)

    @cached_property
    def _depends(self) -> Dependencies:
        return Dependencies(self.functions, self.initialization, self._table)

    @property
    def dependencies(self) -> dict[str, tuple[str, ...]]:
        """Inputs that each variable depends on directly while stepping."""
        return self._depends.while_stepping

    @property
    def initial_dependencies(self) -> dict[str, tuple[str, ...]]:
        """Parameters and inputs that each variable depends on after initialization."""
        return self._depends.at_start

    @property
    def signals(self) -> Mapping[int, AnySignal]:
        """Signals by the index of the input that follows them."""
        return self._inputs.signals

    @property
    def undriven(self) -> tuple[str, ...]:
        """Names of the inputs that follow no signal and were not set."""
        return self._inputs.undriven

    # -- life cycle -----------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Go back to how the simulation was made: start values, no state."""
        self.time = self._passed = self._sampled = 0.0
        self._parameters = starts(self.functions.system.parameters)
        (self.solver.step,) = starts(self._table.settings)
        self._set_tolerances(self._tolerances)
        self._inputs.reset()
        self._calculated = np.zeros(len(self._table.calculated))
        self._state: State | None = None
        self._stepped = False
        self._row: Floats | None = None

    def initialize(self, time: float = 0.0) -> None:
        """Find the consistent state at the start time in s.

        Raises
        ------
        InputError
            When the mechanism cannot be assembled with the parameters that are set, or accelerates without bounds.
        """
        start = self.initialization.run(self._parameters)
        self.initialization.tell_changes(start)
        functions = self.functions
        functions.parameters[:] = self._parameters = start.parameters
        functions.place(start.coordinates, start.velocities)
        functions.states[:] = start.states
        integrals = functions.initial_integrals()[0].copy()
        nothing = np.zeros_like(functions.coordinates)
        state = State(
            functions.coordinates.copy(),
            functions.velocities.copy(),
            nothing,
            np.zeros(len(functions.rows)),
            start.states,
            np.zeros_like(start.states),
            integrals,
            np.zeros_like(integrals),
            nothing,
            nothing,
            functions.references.copy(),
            np.ones(len(functions.rows)),
            np.zeros_like(functions.history),
            np.zeros_like(functions.suggested_step),
        )
        self._sampler.check(time)
        functions.discrete[:] = functions.initial_discrete()[0]
        self.time = time
        same = self._same(math.inf, time)
        self._passed, self._sampled = time + same, time - same
        self._effective = self._inputs.over(self._passed)(time)
        functions.inputs[:] = self._effective
        check_limits(functions)
        state = self.formulation.consistent(self.formulation.prepared(state))
        if not (np.isfinite(state.accelerations).all() and np.isfinite(state.rates).all()):
            raise InputError("the start is not finite; check the parameters")
        self._state = state
        self._sample()
        self.rank_watch.begin(time, self._state)
        self.energy_watch.begin()
        self._calculated = np.array(list(start.calculated.values()))
        self._stepped = False
        self._row = None
        for count in self.formulation.iterations.values():
            count.clear()
        self.solver.statistics = Statistics(iterations=self.formulation.iterations)

    def step(self, time: float, step: float) -> None:
        """Advance from a time by a step in s; longer steps than the internal one are divided.

        Raises
        ------
        InputError
            When the step is not positive, lost in the resolution of time or too long, or does not begin at the
            present time.
        SimulationError
            When the equations cannot be solved; the simulation stays where the step began.
        """
        check_step(time, step, self.step_size)
        self._started()
        if not abs(time - self.time) <= tolerance(step, time, self.time):
            raise InputError(f"the step begins at t = {time:.12g} s, but the simulation is at {self.time:.12g} s")
        if not self.energy_watch.begun:
            self._follow_energy()
        before = self._state, self.time, self._passed, self._sampled, self._effective
        discrete = self.functions.discrete.copy()
        self._sampler.check(time + step)
        self._stepped = True
        try:
            for _ in self._advance(np.array([self.time, time + step])):
                pass
        except SimulationError:
            self._state, self.time, self._passed, self._sampled, self._effective = before
            self.functions.discrete[:] = discrete
            self.rank_watch.forget()
            self._row = None
            raise
        if self.energy_watch.due():
            self._follow_energy()

    def _follow_energy(self) -> None:
        """Look at the energies of now, without a change to what the next step begins with."""
        row = self._row
        if row is None:
            self.functions.parameters[:] = self._parameters
            row = readings(self.formulation, self._started(), self._effective)
        self.energy_watch.follow(np.array([self.time]), row[np.newaxis])

    def run(
        self,
        stop: float | None = None,
        *,
        output_step: float | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Result:
        """Initialize, run to the stop time and return all variables that change.

        Parameters
        ----------
        stop
            End time in s; the model's own by default.
        output_step
            Interval of the result in s; the internal step by default.
        progress
            Called with the share that is done.

        Raises
        ------
        InputError
            When a time is not positive, a step longer than the run, the result larger than the memory, or the
            mechanism cannot be assembled.
        RunError
            When a step fails; its `result` has what was recorded until then.
        """
        stop = self.stop_time if stop is None else stop
        output_step = self.solver.output_step(stop) if output_step is None else output_step
        check_run(stop, output_step, self.step_size, 1 + len(self._table.continuous))
        self._sampler.check(stop)
        self.initialize()
        begin = clock.perf_counter()
        times = counted(0.0, stop, output_step)
        rows = np.empty((len(times), len(self._table.continuous)))
        rows[0] = self._readings()
        self._stepped = True
        done = 1

        def result() -> Result:
            warn_below_minimum(self._table.continuous, times[:done], rows[:done])
            self.energy_watch.follow(times[:done], rows[:done])
            return Result(
                times[:done],
                rows[:done],
                [variable.name for variable in self._table.continuous],
                [variable.unit for variable in self._table.continuous],
                model=self.name,
                formulation=self.formulation.name,
                solver=self.solver.name,
                step=self.step_size,
                wall_seconds=clock.perf_counter() - begin,
                statistics=self.statistics,
            )

        self._tell_undriven()
        try:
            for index, _ in enumerate(self._advance(times), start=1):
                rows[index] = self._readings()
                done = index + 1
                if progress is not None and index % 100 == 0:
                    progress(index / (len(times) - 1))
            return result()
        except SimulationError as error:
            raise RunError(str(error), result()) from error
        except KeyboardInterrupt:
            raise RunInterrupted(result()) from None

    def _tell_undriven(self) -> None:
        """Tell once which inputs a run leaves as they are, for nobody may have meant them to be zero."""
        told = ", ".join(
            f"{name} (stays {self.get(name):g} {self._variable_by_name[name].unit})" for name in self.undriven
        )
        if told and not self._told_undriven:
            logger.warning("nothing drives %s: connect it, give it a signal, or set it before the run", told)
        self._told_undriven = True

    def _advance(self, times: Floats) -> Iterator[None]:
        """Advance over a grid of times, halting at jumps of inputs and updates; stop at each time of the grid."""
        last = float(times[-1])
        same = self._same(float(times[1] - times[0]), float(times[0]), last)
        done = 1
        while done < len(times):
            self._passed = self.time + same
            self._sample()
            end = self._inputs.next_event(self._passed, last - same, last)
            instant = self._sampler.next_instant(self._sampled)
            end = instant if instant < min(end, last - same) else end
            count = int(np.searchsorted(times, end + same, side="right")) - done
            targets = times[done : done + count]
            if not count or targets[-1] < end - same:
                targets = np.append(targets, end)
            self._refresh()
            inputs = self._inputs.over(self._passed)
            states = self.solver.advance(self._started(), np.concatenate([[self.time], targets]), inputs)
            for index, state in enumerate(states):
                self._arrive(state, float(targets[index]), inputs, same)
                if index == len(targets) - 1:
                    self._sample()
                if index < count:
                    yield
            done += count

    def _arrive(self, state: State, time: float, inputs: Inputs, same: float) -> None:
        self._state, self.time, self._passed = state, time, time + same
        self._effective = inputs(time)
        self.rank_watch.follow(time, state)
        self._row = None

    def _same(self, step: float, *times: float) -> float:
        """Return by how many s times may differ that are one, where steps in s are made."""
        return tolerance(min(self.step_size, step, self._sampler.shortest), *times)

    def _sample(self) -> None:
        """Make the updates whose instants have passed since the last ones; accelerations and rates jump with them.

        The inputs are those just before: what jumps at an instant has not jumped yet.
        """
        if self._sampler.next_instant(self._sampled) <= self._passed:
            state = self._started()
            self.functions.parameters[:] = self._parameters
            self.formulation.load(state)
            self.functions.inputs[:] = self._effective
            if self._sampler.update(self._sampled, self._passed):
                self._state = self.formulation.consistent(state)
                self._row = None
        self._sampled = max(self._sampled, self._passed)

    def _refresh(self) -> None:
        """Where an input has jumped, let accelerations and rates jump too."""
        if not np.array_equal(inputs := self._inputs.over(self._passed)(self.time), self._effective):
            self.functions.parameters[:] = self._parameters
            self.functions.inputs[:] = inputs
            self._state = self.formulation.consistent(self._started())
            self._effective = inputs
            self._row = None

    def _adapted(self) -> State:
        """Return the state of now with accelerations and rates that fit parameters which have changed in a run."""
        self.functions.parameters[:] = self._parameters
        self.functions.inputs[:] = self._effective
        return self.formulation.consistent(self._started())

    def _started(self) -> State:
        if self._state is None:
            self.initialize(self.time)
        assert self._state is not None
        return self._state

    # -- values ---------------------------------------------------------------------------------------------

    def get(self, name: str) -> float:
        """Return the present value of a variable.

        Raises
        ------
        InputError
            When there is no such variable.
        """
        kind, index = self._find(name)
        if kind == "continuous":
            anew = self._row is None
            row = self._readings()
            if anew and self._stepped:
                self._follow_energy()  # looked at anyway
            return float(row[index])
        if kind == "calculated":
            self._started()
            return float(self._calculated[index])
        if kind == "settings":
            return self.solver.step
        if kind == "timing":
            return min(
                self._inputs.next_event(self._passed, NO_EVENT, NO_EVENT), self._sampler.next_instant(self._passed)
            )
        return float(self._parameters[index])

    def set(self, name: str, value: float) -> None:
        """Set an input or a tunable parameter, or before the first step any parameter.

        Raises
        ------
        InputError
            When there is no such variable, when it cannot be set now, or when the value is not allowed.
        """
        number = self.check(name, value)
        kind, index = self._find(name)
        if self._variable_by_name[name].causality is Causality.INPUT:
            self._inputs.set(index, number)
            self._row = None
        elif kind == "settings":
            self.solver.step = number
        elif number != self._parameters[index]:
            before = self._readings() if self._stepped else None
            self._parameters = self._parameters.copy()
            self._parameters[index] = number
            self._row = None
            self._state = self._adapted() if self._stepped else None
            if before is not None:
                self.energy_watch.shift(before, self._readings())

    def check(self, name: str, value: float) -> float:
        """Return a value as a float if `set` would take it now; a parameter may always be given the value that it has.

        Raises
        ------
        InputError
            As `set`.
        """
        self._find(name)
        variable = self._variable_by_name[name]
        if not variable.settable:
            raise InputError(f"{name} is computed and cannot be set")
        number = check_value(variable, value)
        fixed = variable.causality is not Causality.INPUT and variable.variability is not Variability.TUNABLE
        if fixed and self._stepped and number != self.get(name):
            raise InputError(f"{name} is a parameter that counts at initialization; it cannot be set after it")
        return number

    def _find(self, name: str) -> tuple[str, int]:
        if name not in self._place:
            raise InputError(f"there is no variable '{name}' in {self.name}; {meant(name, self._place)}")
        return self._place[name]

    def _readings(self) -> Floats:
        if self._row is None:
            self._started()
            self._refresh()
            state = self._started()
            self.functions.parameters[:] = self._parameters
            self._row = readings(self.formulation, state, self._effective)
        return self._row

    # -- saved states ---------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """Return all that is needed to continue exactly as from now."""
        return self._format.pack(
            Snapshot(
                self.time,
                self._passed,
                self._sampled,
                self.solver.step,
                self._present_tolerances,
                self._parameters,
                self._inputs.values,
                self._inputs.held,
                self._effective if self._state is not None else self._inputs.values,
                self._calculated,
                self.functions.discrete,
                self.energy_watch.numbers,
                self._stepped,
                self._state,
            )
        )

    def restore(self, saved: bytes) -> None:
        """Go back to what `save` gave.

        Raises
        ------
        InputError
            When it was not saved by a simulation of the same model and formulation, or has been changed since.
        """
        snapshot = self._format.unpack(saved)
        self.time, self._passed, self.solver.step = snapshot.time, snapshot.passed, snapshot.step
        self._sampled = snapshot.sampled
        self.functions.discrete[:] = snapshot.discrete
        self._set_tolerances(snapshot.tolerances)
        self._parameters = snapshot.parameters
        self._inputs.values, self._inputs.held = snapshot.inputs, snapshot.held
        self._effective = snapshot.effective
        self._calculated = snapshot.calculated
        self.energy_watch.numbers = snapshot.energies
        self._stepped = snapshot.stepped
        self._state = snapshot.state
        self.rank_watch.forget()
        self._row = None
        self.functions.parameters[:] = self._parameters
