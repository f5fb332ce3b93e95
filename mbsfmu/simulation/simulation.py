"""Simulation of a system: make by options, set, initialize, step, read, save, restore."""

from __future__ import annotations

import logging
import math
import time as clock
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Unpack

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.identity import Origin, content_key
from mbsfmu.base.times import (
    check_experiment,
    check_run,
    check_step,
    counted,
    default_interval,
    short_memory_in_words,
    time_in_s,
    tolerance,
)
from mbsfmu.formulations.double_step import DoubleStep
from mbsfmu.formulations.formulation import Formulation
from mbsfmu.initialization.closing_loops import loops_at
from mbsfmu.initialization.initialization import Initialization
from mbsfmu.integration.error_measure import LARGE_ERROR, NOT_ESTIMATED, ErrorEstimate
from mbsfmu.integration.implicit import ImplicitSolver
from mbsfmu.integration.solver import Solver, Statistics, untouched
from mbsfmu.io.checkpoints import Checkpoint, CheckpointFile, RunError, RunInterrupted
from mbsfmu.io.signals import AnySignal
from mbsfmu.io.trajectory import full_name
from mbsfmu.model.machine import Machine, data_remarks
from mbsfmu.modelling.variables import Causality, Variability, Variable, with_unit
from mbsfmu.simulation.error_check import FIRST_SHARE, SecondRun
from mbsfmu.simulation.input_values import InputValues
from mbsfmu.simulation.run_loop import Interpreter, RankWatch, Recording, RunLoop, Runner
from mbsfmu.simulation.run_options import RunKeywords, RunOptions
from mbsfmu.simulation.run_result import Result
from mbsfmu.simulation.saved_state import CheckedRun, SavedState, StateFormat, call_in_words
from mbsfmu.simulation.variable_table import (
    Dependencies,
    ExposedVariables,
    RecordedDependencies,
    VariableTable,
    check_value,
)
from mbsfmu.simulation.watches import CardanWatch, ConditionWatch, EnergyWatch, roughness
from mbsfmu.stepping.iteration import NewtonTolerances
from mbsfmu.stepping.state import State, fingerprint
from mbsfmu.systems.concatenated_system import CoupledSystem
from mbsfmu.systems.system import LARGE, LOST, Code, System, scale_of_arm, starts
from mbsfmu.tracing.kept_traces import Traces
from mbsfmu.tracing.workspace import Floats


class VariableAccess:
    """Reads and sets variables of a simulation.

    Parameters
    ----------
    owner
        Name of the simulation.
    table
        Its variables.
    by_system
        Names of variables by `system.variable`.
    run_loop
        Where it is.
    energy_watch
        Looks at what is read.
    started
        Returns the state, and finds the start where there is none yet.
    """

    def __init__(
        self,
        owner: str,
        table: VariableTable,
        by_system: Mapping[str, str],
        run_loop: RunLoop,
        energy_watch: EnergyWatch,
        started: Callable[[], State],
    ) -> None:
        self._owner = owner
        self._by_system = by_system
        self._run_loop = run_loop
        self._energy_watch = energy_watch
        self._started = started
        self._variable_by_name = {variable.name: variable for variable in table.ordered}
        kinds = ("continuous", "parameters", "settings", "calculated", "timing", "estimates")
        self._places = {
            variable.name: (kind, index) for kind in kinds for index, variable in enumerate(getattr(table, kind))
        }

    def variable(self, name: str) -> Variable:
        """Return the variable of a name.

        Raises
        ------
        InputError
            When there is no such variable.
        """
        return self._variable_by_name[self._full_name(name)]

    def _full_name(self, name: str) -> str:
        """Return the full name of a variable; errors as for `variable`."""
        return full_name(name, self._places, "variable", f" in {self._owner}", self._by_system)

    def _place(self, name: str) -> tuple[str, int]:
        """Return the group of a variable and its index in it."""
        return self._places[self._full_name(name)]

    def get(self, name: str) -> float:
        """Return the present value of a variable; errors as for `Simulation.get`."""
        run_loop, (kind, index) = self._run_loop, self._place(name)
        if kind in ("continuous", "calculated"):
            self._started()
        if kind == "continuous":
            anew = not run_loop.is_read
            row = run_loop.readings()
            if anew and run_loop.stepped:
                self.follow_energy()  # looked at anyway
            return float(row[index])
        if kind == "settings":
            return run_loop.solver.step
        if kind == "timing":
            return run_loop.next_event
        if kind == "estimates":
            solver, state = run_loop.solver, run_loop.state
            record = solver.error_record
            return 0.0 if record is None or state is None else record.share(state, solver.step)
        return float((run_loop.calculated if kind == "calculated" else run_loop.parameters)[index])

    def set(self, name: str, value: float) -> None:
        """Set a variable; errors as for `Simulation.set`."""
        number = self.check(name, value)
        run_loop, (kind, index) = self._run_loop, self._place(name)
        if kind == "continuous":
            if not (run_loop.inputs.held[index] and number == run_loop.inputs.values[index]):
                run_loop.touch()
            run_loop.inputs.set(index, number)
            run_loop.forget_readings()
            if run_loop.inputs.decides_start(index) and not run_loop.stepped:
                run_loop.restart_run(run_loop.parameters)
        elif kind == "settings":
            run_loop.solver.step = number
        elif number != run_loop.parameters[index]:
            self._set_parameter(index, number)

    def _set_parameter(self, index: int, number: float) -> None:
        run_loop = self._run_loop
        parameters = run_loop.parameters.copy()
        parameters[index] = number
        if not run_loop.stepped:
            run_loop.restart_run(parameters)
            return
        if run_loop.contradiction is None:
            self._energy_watch.shift(run_loop.readings(), -1.0)
        run_loop.change(parameters)
        if run_loop.contradiction is None:
            self._energy_watch.shift(run_loop.readings(), 1.0)

    def check(self, name: str, value: float) -> float:
        """Return a value as a float if it may be set now; errors as for `Simulation.check`."""
        variable = self.variable(name)
        if not variable.settable:
            start = f"{variable.name}_start"
            told = f"; its value at the start is {start}" if start in self._places else ""
            raise InputError(f"{name} is computed and cannot be set{told}")
        number = check_value(variable, value)
        fixed = variable.causality is not Causality.INPUT and variable.variability is not Variability.TUNABLE
        if fixed and self._run_loop.stepped and number != self.get(name):
            raise InputError(f"{name} is a parameter that counts at initialization; it cannot be set after it")
        return number

    def follow_energy(self) -> None:
        """Check the present energies, without effect on the next step."""
        row = self._run_loop.readings_before_events()
        self._energy_watch.follow(np.array([self._run_loop.time]), row[np.newaxis])


logger = logging.getLogger(__name__)

INEXACT_REACTIONS = 1e-6
"""Relative error of reactions above which elimination is less accurate than the default tolerance."""
ROWS_OPTION = "--output-step, in Python output_step,"
"""What sets the interval of the rows of runs in process."""
_TOLERANCE = 1e-6  # told to importers of FMUs that have none


class Simulation:
    """A running system.

    Parameters and start values are set before the first step; then inputs are set and steps are made. An input with a
    signal follows it until it is set manually.

    Parameters
    ----------
    name
        Name of the model.
    initialization
        Finds the start of the system.
    solver
        Advances its states.
    inputs
        The inputs, and the signals that they follow.
    description
        One line on the model.
    stop_time
        Default end of a run in s.
    identity
        What the simulation computes, in a word: saved states of others are refused.
    origin, exposed
        Where the model comes from; which variables are shown, and which are outputs.
    machine
        What the system was made of, which its results keep; None where nobody said.
    check_error
        Whether `run` makes every run once more, to tell its error.

    Attributes
    ----------
    initialization, solver, formulation, functions
        What the simulation is made of; the functions are the formulation's.
    run_loop
        Where the run is.
    runner
        Makes the steps.
    rank_watch
        Tells where the loop equations lose rank.
    energy_watch
        Tells where the energy drifts.
    cardan_watch
        Tells where angles that loads act along are not defined.
    condition_watch
        Tells where end stops are reached, oil cavitates, and what else its parts have to say.
    made_tolerances
        Relative and absolute tolerance that it was made with, shape (2,), whatever was set since.
    identity, origin, exposed, machine, check_error
        As given.
    """

    def __init__(
        self,
        name: str,
        initialization: Initialization,
        solver: Solver,
        inputs: InputValues,
        *,
        description: str = "",
        stop_time: float = 10.0,
        identity: str = "",
        origin: Origin = Origin(),  # noqa: B008 - it is frozen
        exposed: ExposedVariables = ExposedVariables(),  # noqa: B008 - it is frozen
        machine: Machine | None = None,
        check_error: bool = False,
    ) -> None:
        self.name = name
        self.check_error = check_error
        self.machine = machine
        self.identity = identity
        self.origin = origin
        self.exposed = exposed
        self.description = description
        self.stop_time = stop_time
        self.initialization = initialization
        self.solver = solver
        self.formulation = solver.formulation
        self.functions = solver.formulation.functions
        has_events = bool(inputs.signals or self.functions.system.discrete)
        table = VariableTable.of(self.functions, initialization, solver.step, inputs.starting(), has_events)
        self._table = table.showing(exposed)
        names = [variable.name for variable in self._table.continuous]
        self.energy_watch = EnergyWatch(self.functions.system.name, names, solver.remedy, initialization.energy_scales)
        self.cardan_watch = CardanWatch(initialization.system.parts, names)
        parameters = self.functions.system.parameters
        self.condition_watch = ConditionWatch(name, machine, self._table.continuous, parameters, exposed.readable)
        self._format = StateFormat(self.functions, len(self._table.calculated), self.energy_watch.size, identity)
        rank = initialization.watched_equations(self.functions)
        self.rank_watch = RankWatch(
            self.functions,
            rank,
            scale_of_arm(initialization.lever_arm),
            initialization.loops.near,
            solver.passes_change_points,
        )
        self.run_loop = RunLoop(solver, inputs, self.rank_watch, len(self._table.calculated))
        self.runner: Runner = Interpreter()
        self.made_tolerances = solver.tolerances
        self._values = VariableAccess(
            name, self._table, exposed.readable, self.run_loop, self.energy_watch, self._started
        )
        self._warned_undriven = self._reactions_doubted = False
        self.reset()

    def __repr__(self) -> str:
        return f"<Simulation: {self.name}, {self.formulation.name}, {self.solver.name}, at t = {self.time:g} s>"

    # -- description ----------------------------------------------------------------------------------------

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All exposed variables: inputs, outputs, parameters, calculated parameters, then the rest."""
        return self._table.visible

    @property
    def continuous(self) -> tuple[Variable, ...]:
        """Varying variables, in the order of recorded rows."""
        return self._table.continuous

    @property
    def time(self) -> float:
        """Present time in s."""
        return self.run_loop.time

    @property
    def step_size(self) -> float:
        """Largest internal step in s."""
        return self.solver.step

    @property
    def tolerance(self) -> float:
        """Relative tolerance of an adaptive solver; 1e-6 for others, which have none."""
        return float(self.solver.tolerances[0]) or _TOLERANCE

    def set_tolerance(self, relative: float) -> None:
        """Change the relative tolerance, and the absolute one in proportion; without effect on equal steps.

        Raises
        ------
        InputError
            When it is not positive.
        """
        relative = Variable("the tolerance").number(relative)
        if not (relative > 0 and math.isfinite(relative)):
            raise InputError(f"the tolerance is {relative:g}; it must be positive and finite")
        if np.any(self.made_tolerances):
            self.solver.tolerances = self.made_tolerances * (relative / self.made_tolerances[0])

    @property
    def statistics(self) -> Statistics:
        """Run statistics since initialization."""
        return self.solver.statistics

    @property
    def error(self) -> ErrorEstimate:
        """Error of the run since initialization, as estimated by its steps; that of a second run is in results."""
        record, state = self.solver.error_record, self.run_loop.state
        if record is None or state is None:
            return self.solver.not_estimated
        return record.estimate(state.error_record, self.step_size)

    @property
    def independent(self) -> tuple[str, ...]:
        """Names of the present independent coordinates; all without a partition."""
        coordinates = self.functions.system.coordinates
        partition = self._started().partition
        chosen = range(len(coordinates)) if partition is None else partition.independent
        return tuple(coordinates[index].name for index in chosen)

    @cached_property
    def _depends(self) -> Dependencies | RecordedDependencies:
        if self.functions.in_loops and not self.initialization.balanced_parts:
            return RecordedDependencies(self.functions, self._table)
        return Dependencies(self.functions, self.initialization, self._table)

    @property
    def dependencies(self) -> dict[str, tuple[str, ...]]:
        """Inputs on which each variable depends directly while stepping."""
        return self._depends.while_stepping

    @property
    def initial_dependencies(self) -> Mapping[str, tuple[str, ...] | None]:
        """Parameters and inputs on which each variable depends after initialization; None for all."""
        return self._depends.at_start

    @property
    def signals(self) -> Mapping[int, AnySignal]:
        """Signals by the index of the input that follows them."""
        return self.run_loop.inputs.signals

    @property
    def undriven(self) -> tuple[str, ...]:
        """Names of the inputs that follow no signal and were not set."""
        return self.run_loop.inputs.undriven

    # -- life cycle -----------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Reset the simulation: start values, no state."""
        self.solver.step = starts(self._table.settings)[0]
        self.solver.tolerances = self.made_tolerances
        self.run_loop.reset()

    def initialize(self, time: float = 0.0) -> None:
        """Compute the consistent state at the start time in s.

        Raises
        ------
        InputError
            When the mechanism cannot be assembled with the parameters that are set, or accelerates without bounds, or
            the rate of an input was set that follows a signal.
        """
        time = time_in_s(time, "start time")
        check_experiment(time, None)
        self.run_loop.inputs.check_rates()
        start = self.initialization.run(self.run_loop.parameters, self.run_loop.inputs_at_start(time))
        self.initialization.warn_changes(start)
        self.run_loop.begin(time, start)
        begun = self.run_loop.present
        self.initialization.warn_unbalanced(start, begun.velocities, begun.accelerations)
        self._warn_of_reactions()
        self.energy_watch.begin()
        self.condition_watch.begin()
        for count in self.formulation.iterations.values():
            count.clear()
        self.solver.statistics = Statistics(iterations=self.formulation.iterations)

    def step(self, time: float, step: float) -> None:
        """Advance from a time by a step in s; longer steps than the internal one are divided.

        Raises
        ------
        InputError
            When the step is not positive, lost in the resolution of time or too long, does not begin at the
            present time, or parameters that were set since the last one contradict each other.
        SimulationError
            When the equations cannot be solved; the simulation stays where the step began.
        """
        time, step = time_in_s(time, "time"), time_in_s(step, "step")
        check_step(time, step, self.step_size)
        self._started()
        if not abs(time - self.time) <= tolerance(step, time, self.time):
            raise InputError(f"the step begins at t = {time:.12g} s, but the simulation is at {self.time:.12g} s")
        run_loop, before = self.run_loop, self.run_loop.place
        run_loop.check(time + step)
        if not self.energy_watch.begun:
            self._values.follow_energy()
        run_loop.stepped = True
        try:
            self.runner.run(run_loop, Recording(np.array([run_loop.time, time + step])))
        except SimulationError:
            run_loop.go_to(before)
            raise
        run_loop.state = untouched(run_loop.present)
        run_loop.inputs.advance(time + step)
        if self.energy_watch.due():
            self._values.follow_energy()
        if self.condition_watch.conditions:
            self.condition_watch.follow_step(self.time, run_loop.readings(), run_loop.parameters)

    def run(
        self,
        stop: float | None = None,
        *,
        output_step: float | None = None,
        progress: Callable[[float], None] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Result:
        """Initialize, run to the stop time and return all varying variables.

        Parameters
        ----------
        stop
            End time in s; the model's own by default.
        output_step
            Interval of the result in s; the internal step by default, or a multiple that keeps a million rows at most.
        progress
            Called with the share that is done.
        checkpoint
            Where the run is saved on its way. If there is a checkpoint of the same call, the run goes on from there.
            Steps of solvers that choose them end between the parts of such a run, 256 at most.

        Raises
        ------
        InputError
            When a time is not positive, a step longer than the run, the result larger than the memory, the
            mechanism cannot be assembled, or a checkpoint is of another call.
        WriteError
            When a checkpoint cannot be written.
        RunError
            When a step fails; its `result` has what was recorded until then.
        RunInterrupted
            When somebody ends it; the same.
        """
        stop = time_in_s(self.stop_time if stop is None else stop, "stop time")
        names = [variable.name for variable in self.continuous]
        columns = len(names)
        output_step = time_in_s(self.output_step(stop) if output_step is None else output_step, "output step")
        check_run(stop, output_step, self.step_size, 1 + columns * (2 if self.check_error else 1))
        self.run_loop.sampler.check(stop)
        called = self._called(stop, output_step)
        self.initialize()
        begin = clock.perf_counter()
        share = FIRST_SHARE if self.check_error else 1.0
        tell = None if progress is None else lambda done: progress(share * done)
        with short_memory_in_words(self.name, ROWS_OPTION):
            recording = Recording(counted(0.0, stop, output_step), columns, tell)
        recording.take_first(self.run_loop.readings())
        second = SecondRun(self.run_loop, self.energy_watch, self.runner, self.continuous) if self.check_error else None
        checked = None if checkpoint is None else self._checked(checkpoint, called, recording)
        earlier = 0.0 if checked is None else checked.seconds
        self.run_loop.stepped = True
        self.functions.traces.keep()
        self.warn_undriven()
        failure: SimulationError | None = None
        seconds = 0.0
        try:
            try:
                self._make(recording, checked)
            except SimulationError as error:
                failure = error
            finally:
                seconds = earlier + clock.perf_counter() - begin
            self._warn_of_reactions()
            error = self.error if second is None else second.estimate(recording, progress)
        except KeyboardInterrupt:
            raise RunInterrupted(self._result(recording, seconds, self.error)) from None
        result = self._result(recording, seconds, error)
        if failure is not None:
            raise RunError(f"{failure}{self.cardan_watch.cause(recording.recorded[1])}", result) from failure
        return result

    def output_step(self, stop: float) -> float:
        """Return the interval in s of the rows of a run to a stop time in s, where none is asked for; warns of few."""
        columns = (1 + len(self.continuous)) * (2 if self.check_error else 1)
        return default_interval(self.name, 0.0, stop, self.solver.output_step(stop), columns, ROWS_OPTION)

    def _called(self, stop: float, output_step: float) -> dict[str, str]:
        """Return a call of `run` in words, with what was set before."""
        inputs, solver = self.run_loop.inputs, self.solver
        values = {
            "parameters": self.run_loop.parameters,
            "inputs": inputs.values,
            "held": inputs.held,
            "steps": np.array([solver.step, *solver.tolerances]),
        }
        return call_in_words(self.name, self.identity, values, stop, output_step)

    def _checked(self, checkpoint: Checkpoint, call: Mapping[str, str], recording: Recording) -> CheckedRun:
        """Return the run that begins with checkpoints, brought to the last one."""

        def save() -> bytes:
            self.run_loop.inputs.advance(self.time)
            return self.save()

        checked = CheckedRun(CheckpointFile(checkpoint, call), save, self.restore)
        checked.go_on(recording, self.statistics)
        return checked

    def _make(self, recording: Recording, checked: CheckedRun | None) -> None:
        """Make the steps of a run."""
        if checked is None:
            self.runner.run(self.run_loop, recording)
            return
        interim = 0.0
        for part in checked.parts(recording, self.statistics):
            self.runner.run(self.run_loop, part)
            interim += self.runner.interim_seconds
        self.runner.interim_seconds = interim

    def _result(self, recording: Recording, seconds: float, error: ErrorEstimate) -> Result:
        """Return the recorded run of a duration in s with its error; warn of problems."""
        taken = seconds, self.runner.interim_seconds
        return self.result_of(*recording.recorded, taken, self.statistics, error, self.run_loop.parameters)

    def result_of(
        self,
        times: Floats,
        rows: Floats,
        taken: tuple[float, float],
        statistics: Statistics,
        error: ErrorEstimate,
        parameters: Floats,
    ) -> Result:
        """Return the result of a run of this system; warn of problems.

        Parameters
        ----------
        times, rows
            Times in s, shape (k,), and the values of `continuous` there, shape (k, number of them).
        taken
            Time on the clock in s, and the part of it in code that is not optimized.
        statistics, error
            What it cost, and its error.
        parameters
            The values that the parameters of the system had.
        """
        variables = self.continuous
        self.energy_watch.follow(times, rows)
        self.cardan_watch.follow(times, rows)
        if told := error.warning(self.solver.more_accurate):
            logger.warning("%s: %s", self.name, told)
        if error == NOT_ESTIMATED and not np.any(self.solver.tolerances):
            self._warn_of_coarse_steps(times, rows)
        result = Result(
            times,
            rows,
            [variable.name for variable in variables],
            [variable.unit for variable in variables],
            {variable.name: variable.description for variable in variables},
            model=self.name,
            formulation=self.formulation.name,
            solver=self.solver.name,
            step=self.step_size,
            wall_seconds=taken[0],
            interim_seconds=taken[1],
            statistics=statistics,
            machine=self.machine_as_run(parameters),
            qualified=self.exposed.qualified,
            driving=self.exposed.driving,
            error=error,
        )
        for sentence in self.implausible_numbers(parameters):
            logger.warning("%s", sentence)
        self.condition_watch.follow(times, rows, parameters)
        return result

    def implausible_numbers(self, parameters: Floats) -> list[str]:
        """Return sentences on parameters of a run that are hardly meant, but for those that the data cause."""
        machine = self.machine_as_run(parameters)
        if machine is None or self.machine is None or np.all(parameters == starts(self.functions.system.parameters)):
            return []
        known = set(data_remarks(self.machine))
        return [sentence for sentence in data_remarks(machine) if sentence not in known]

    def _warn_of_coarse_steps(self, times: Floats, rows: Floats) -> None:
        """Warn of accelerations that steps without an error estimate do not resolve."""
        found = roughness(self.continuous, times, rows, self.step_size)
        if found is not None and found.share > LARGE_ERROR:
            logger.warning(
                "%s: steps of %.3g s hardly resolve the motion: %s bends from step to step, and its error is roughly "
                "%s of its range: %s; --check-error, in Python check_error=True, tells the error",
                *(self.name, self.step_size, found.variable),
                f"{100.0 * found.share:.2g} %" if found.share < 0.5 else "the whole",
                self.solver.more_accurate,
            )

    def machine_as_run(self, parameters: Floats | None = None) -> Machine | None:
        """Return the machine of a run with its parameters; by default those of the present run."""
        if self.machine is None:
            return None
        names, given = self.exposed.qualified, self.functions.system.parameters
        own = self.run_loop.parameters if parameters is None else parameters
        values = zip(given, own.tolist(), strict=True)
        return self.machine.with_values({names[variable.name]: value for variable, value in values})

    def _warn_of_reactions(self) -> None:
        """Warn once of inexact accelerations and reactions, from elimination that loses digits."""
        if self._reactions_doubted:
            return
        self.formulation.load(self.run_loop.present)
        error = self.formulation.reaction_error()
        if not error <= INEXACT_REACTIONS:
            self._reactions_doubted = True
            system, parameters = self.functions.system, self.run_loop.parameters
            cause, others = "its loops are next to singular in one direction", "double-step or dca-alm"
            if system.inertia_spread(parameters) > LOST:
                mass, body = system.lightest_body(parameters)
                cause, others = f"body '{body}', of {mass:.3g} kg, is so light next to others", "double-step or penalty"
            logger.warning(
                "%s at t = %.6g s: %s finds accelerations and reactions with %s, as %s; take the formulation %s",
                *(self.name, self.time, self.formulation.name),
                *("an unknown error" if math.isnan(error) else f"a relative error of {error:.1e} only", cause, others),
            )

    def check_inertias(self) -> None:
        """Warn of inexact accelerations and reactions where very unequal inertias may be their cause."""
        if self.functions.system.inertia_spread(self.run_loop.parameters) > LOST:
            self.initialize()

    def warn_undriven(self, driven: Collection[str] = ()) -> None:
        """Warn once of inputs that were probably forgotten.

        Parameters
        ----------
        driven
            Names of inputs that somebody else drives.
        """
        forgotten = [each for each in self.run_loop.inputs.forgotten(self.exposed.qualified) if each not in driven]
        stays = {name: with_unit(self.get(name), self._values.variable(name)) for name in forgotten}
        told = ", ".join(f"{name} (stays {value})" for name, value in stays.items())
        if told and not self._warned_undriven:
            logger.warning("nothing drives %s: connect it, give it a signal, or set it before the run", told)
        self._warned_undriven = True

    def _started(self) -> State:
        if self.run_loop.state is None:
            self.initialize(self.time)
        return self.run_loop.present

    # -- values ---------------------------------------------------------------------------------------------

    def get(self, name: str) -> float:
        """Return the present value of a variable.

        A variable is found by its name, by `system.variable`, or by any unique trailing part of its name.

        Raises
        ------
        InputError
            When there is no such variable, or parameters contradict each other.
        """
        return self._values.get(name)

    def variable(self, name: str) -> Variable:
        """Return the description of a variable, by a name as `get` takes it.

        Raises
        ------
        InputError
            When there is no such variable.
        """
        return self._values.variable(name)

    def set(self, name: str, value: float | str) -> None:
        """Set an input or a tunable parameter, or before the first step any parameter, by a name as `get` takes it.

        Parameters
        ----------
        name
            Name of the variable.
        value
            In the unit of the variable, or a text with a unit of its own, as `200 bar`.

        Raises
        ------
        InputError
            When there is no such variable, when it cannot be set now, or when the value is not allowed.
        """
        self._values.set(name, self.number(name, value))

    def number(self, name: str, value: float | str) -> float:
        """Return a value in the unit of a variable, converted where it is a text with a unit of its own.

        Raises
        ------
        InputError
            When there is no such variable, or the value is no such number; the sentence names the variable.
        """
        return value if isinstance(value, float) else self.variable(name).number(value, name)

    def check(self, name: str, value: float) -> float:
        """Return a value as a float if `set` would accept it now; the present value of a parameter is always accepted.

        Raises
        ------
        InputError
            As `set`.
        """
        return self._values.check(name, value)

    # -- saved states ---------------------------------------------------------------------------------------

    def save(self) -> bytes:
        """Return the complete state, to continue exactly from now."""
        return self._format.pack(SavedState.of(self.run_loop, self.energy_watch))

    def restore(self, saved: bytes) -> None:
        """Restore a state of `save`.

        Raises
        ------
        InputError
            When it was not saved by a simulation of the same model and formulation, or has been changed since.
        """
        self._format.unpack(saved).put_back(self.run_loop, self.energy_watch)


# -- construction of simulations from options --------------------------------------------------------------------------

STEP = 1e-3
"""Default internal step in s."""
WEAK = 1e-3
"""Relative singular value below which residuals of locked loops matter."""
_LOGGER = logging.getLogger(__name__)


def make_simulation(
    system: System,
    *,
    name: str,
    signals: Mapping[str, AnySignal],
    options: RunOptions | None = None,
    description: str = "",
    stop_time: float = 10.0,
    content: object = None,
    origin: Origin = Origin(),  # noqa: B008 - it is frozen
    traces: Traces | None = None,
    exposed: ExposedVariables = ExposedVariables(),  # noqa: B008 - it is frozen
    machine: Machine | None = None,
    start: Collection[str] = (),
    **given: Unpack[RunKeywords],
) -> Simulation:
    """Return a simulation of a system.

    Parameters
    ----------
    system
        The system, in absolute coordinates where the formulation takes these.
    name, description, stop_time
        Of the model.
    signals
        Signals by the input's name.
    options, given
        Options, and those of them that are given by name.
    origin
        Where the model comes from.
    content
        What the system was made from: it identifies the simulation, together with all that decides its steps.
    traces
        Has what was traced of the system before.
    exposed
        Which variables are shown, and which are outputs.
    machine
        What the system was made of, for pictures of its results.
    start
        Inputs among others that were given a value to start with, as `system.variable`: nobody has forgotten them.

    Raises
    ------
    InputError
        When an option is refused, or the system cannot be assembled.
    """
    chosen = RunOptions.of(options, given).completed()
    rule = chosen.method[1]
    step = STEP if chosen.step is None else chosen.step
    system = CoupledSystem.of(system)
    inputs = InputValues(system.inputs, signals, system.connected, start)
    qualified = system.qualified()
    inputs.check_rates([each.name for each in system.inputs if qualified.get(each.name, each.name) in start])
    initialization = Initialization(system, traces, starts(inputs.starting()))
    initialization.warn_unused_starts()
    solver = _made_solver(system, initialization, chosen, step)
    if isinstance(solver, ImplicitSolver):
        solver.warn_round_off()
    # Step and tolerances are in saved states: what differs in them alone takes each other's. Nor do checks matter.
    decisive = chosen.content("step", "relative_tolerance", "absolute_tolerance", "check_error")
    made_from = (content, system.inputs, system.parameters, fingerprint(rule), sorted(signals.items()))
    return Simulation(
        name,
        initialization,
        solver,
        inputs,
        description=description,
        stop_time=stop_time,
        identity=content_key(made_from, decisive),
        origin=origin,
        exposed=replace(exposed, qualified=qualified, driving=system.driving()),
        machine=machine,
        check_error=bool(chosen.check_error),
    )


def _made_solver(system: System, initialization: Initialization, chosen: RunOptions, step: float) -> Solver:
    """Return the solver of completed options with its formulation, for steps of a size in s."""
    kind, rule = chosen.method
    limits = chosen.tolerances or NewtonTolerances()
    steps, own = chosen.kind, chosen.own
    if initialization.locked and (own.form is Code.STRAIGHT or len(initialization.system.coordinates) <= LARGE):
        # Without independent coordinates its steps are statics: nothing is integrated that could drift.
        system, steps, own = initialization.system, DoubleStep, DoubleStep.Options()
    formulation = steps.of(initialization, system, limits, rule, own, step, kind.kind)
    _warn_unrolled_code(system, formulation)
    _warn_motionless(system.name, initialization, formulation)
    return kind.of(chosen.chosen_solver, formulation, step, **{each: getattr(chosen, each) for each in kind.options})


def _warn_unrolled_code(system: System, formulation: Formulation) -> None:
    """Warn of the long preparation of unrolled code for a large system."""
    count = len(system.start_system.coordinates)
    if not formulation.functions.in_loops and count > LARGE:
        _LOGGER.warning(
            "%s: the code of %s is unrolled here: with %d coordinates tracing and compiling it takes minutes, growing "
            "as the square of their number (a chain of 200 took five, one of 1024 hours and 15 GB); that of dca, hdca "
            "and dca-alm is in loops where no loop of connections is solved at every instant",
            *(system.name, formulation.name, count),
        )


def _warn_motionless(name: str, initialization: Initialization, formulation: Formulation) -> None:
    """Warn of motionless parts: all bodies fixed, or loops without freedom."""
    start, locked = initialization.system, initialization.loops.locked
    if not start.coordinates and start.reactions:
        _LOGGER.warning("%s: no body moves: all joints are fixed, and every variable of motion stays as it is", name)
    elif initialization.locked:
        statics = formulation.name == DoubleStep.name
        _LOGGER.warning(
            "%s: no body moves: no freedom is left by %s, with as many independent equations as there are joint "
            "coordinates, %d; a joint too many, or an axis in the wrong direction, does that; %s",
            name,
            loops_at(start, locked.rows),
            len(start.coordinates),
            "accelerations are zero, and reactions those of statics by the formulation double-step"
            if statics
            else "with the formulation double-step accelerations are exactly zero",
        )
    elif locked.firmness < WEAK and not formulation.holds_locked_loops:
        _LOGGER.warning(
            "%s: no freedom is left by %s, but next to none is taken: the least singular value of the equations is "
            "%.2g of the largest, and with %s what they hold may creep, with reactions that are far off; take the "
            "formulation double-step",
            *(name, loops_at(start, locked.rows), locked.firmness, formulation.name),
        )
