"""Ensembles: many machines of one model, which differ in numbers and inputs, run at once."""

from __future__ import annotations

import logging
import os
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.analysis.sensitivities import parameter_places
from mbsfmu.base.errors import InputError
from mbsfmu.base.repeated_warnings import KeptWarnings, alike, how_many
from mbsfmu.base.times import check_run, counted, default_interval, short_memory_in_words, time_in_s
from mbsfmu.integration.error_measure import ErrorEstimate
from mbsfmu.integration.solver import Statistics
from mbsfmu.io.signals import AnySignal
from mbsfmu.io.tables import optional
from mbsfmu.modelling.data import Data, DataError
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.native.compiled import count, count_places
from mbsfmu.native.ensemble_library import EnsembleLibrary, MachineData, MachineRuns, OpenMachines, ensemble_library
from mbsfmu.simulation.input_values import InputValues
from mbsfmu.simulation.run_result import EnsembleResult, Result
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.watches import CardanWatch, EnergyWatch
from mbsfmu.system_model.ensemble_simulation import (
    EnsembleSimulation,
    Values,
    check_values,
    input_place,
    machine_name,
    named_values,
    value_array,
)
from mbsfmu.systems.system import starts as start_values
from mbsfmu.tracing.workspace import Floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mbsfmu.system_model.ensemble_simulation import Transition
    from mbsfmu.system_model.vector_env import Bounds, EnsembleVectorEnv


Driving = Values | AnySignal | Sequence[AnySignal]
"""What drives an input: numbers, a signal for all machines, or one for each."""
_TOLD = 3  # sentences of machines that the log has; the result has all
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class MachineRun:
    """What a single run of a machine gives that comes to its end.

    Attributes
    ----------
    result
        All variables with the statistics of the run.
    warnings
        What was told of it.
    """

    result: Result
    warnings: tuple[str, ...]


class Ensemble:
    """Machines of one model that differ in parameters, start values and inputs; made by `CoupledModel.ensemble`.

    Parameters
    ----------
    simulation
        A simulation of the model by double-step and the trapezoidal rule or a Rosenbrock method.
    key
        What its equations follow from; None where nobody knows.
    parameters, inputs, starts, lanes, errors
        As for `CoupledModel.ensemble`.
    library
        Its compiled code for runs; found or made at the first run by default.

    Attributes
    ----------
    machines
        How many there are.
    """

    def __init__(
        self,
        simulation: Simulation,
        key: object,
        parameters: Mapping[str, Values],
        inputs: Mapping[str, Driving],
        starts: Mapping[str, Values],
        lanes: int | None,
        *,
        errors: bool | None = None,
        library: EnsembleLibrary | None = None,
    ) -> None:
        self._simulation = simulation
        self._key, self._lanes = key, lanes
        estimated = simulation.solver.error_record is not None
        self._errors = estimated if errors is None else errors
        self._errors_of_started = bool(errors)
        self._libraries: dict[bool, EnsembleLibrary] = {} if library is None else {self._errors: library}
        named = named_values(simulation, parameters, starts)
        driven = {name: value for name, value in inputs.items() if _is_signal(value)}
        held = {name: value for name, value in inputs.items() if name not in driven}
        numbers = {name: value_array(simulation, name, value) for name, value in {**named, **held}.items()}
        lengths = {name: len(value) for name, value in numbers.items() if value.ndim}
        lengths |= {name: len(value) for name, value in driven.items() if isinstance(value, Sequence)}
        self.machines = _common_length(lengths)
        self._names = [simulation.variable(name).name for name in numbers]
        self._numbers = {
            own: np.broadcast_to(values, (self.machines,)).copy()
            for own, values in zip(self._names, numbers.values(), strict=True)
        }
        self._places = parameter_places(simulation, list(named)) if named else []
        self._held = [input_place(name, simulation) for name in held]
        self._driven = [input_place(name, simulation) for name in driven]
        for name, values in self._numbers.items():
            check_values(simulation.variable(name), values, np.arange(self.machines))
        self._signals = self._followed(driven)

    def __repr__(self) -> str:
        varied = ", ".join(self._numbers) or "nothing"
        return f"<Ensemble: {self.machines} machines of {self._simulation.name}, {varied} varied>"

    @property
    def _inputs(self) -> Sequence[Variable]:
        return self._simulation.functions.system.inputs

    def _followed(self, driven: Mapping[str, Any]) -> list[Mapping[int, AnySignal]]:
        """Return the signals that inputs follow, of each machine, or one for all."""
        inputs, names = self._inputs, [self._inputs[place].name for place in self._driven]
        own = dict(self._simulation.signals)
        for place in self._driven:
            rate = place + 1
            while inputs[rate - 1].rated:  # the signal of a rate follows from that of what it is the rate of
                own.pop(rate, None)
                rate += 1
        others = {inputs[place].name: signal for place, signal in own.items()}
        several = any(isinstance(value, Sequence) for value in driven.values())

        def of_machine(machine: int) -> Mapping[int, AnySignal]:
            chosen = (value[machine] if isinstance(value, Sequence) else value for value in driven.values())
            try:
                return InputValues(inputs, {**others, **dict(zip(names, chosen, strict=True))}).signals
            except DataError as error:
                raise InputError(f"machine {machine}: {error}") from None

        if not driven:
            return [self._simulation.signals]
        return [of_machine(machine) for machine in range(self.machines if several else 1)]

    def run(
        self,
        stop: float | None = None,
        *,
        output_step: float | None = None,
        outputs: Sequence[str] = (),
        workers: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> EnsembleResult:
        """Run all machines to the stop time; those that fail end, and the others go on.

        Parameters
        ----------
        stop
            End time in s; the model's own by default.
        output_step
            Interval of the result in s; the internal step by default, or a multiple that a quarter of the memory holds.
        outputs
            Patterns such as `cylinder.*` of what is recorded; all outputs by default. Coordinates, velocities,
            accelerations, states, inputs and reactions that are no outputs can be named, too.
        workers
            Threads that share the machines; one a processor by default.
        progress
            Called with the share that is done.

        Raises
        ------
        InputError
            When a time or a name is wrong, the result is larger than the memory, there is no C compiler, or a function
            of the model cannot be written for several machines at once.
        KeyboardInterrupt
            When somebody ends it.
        """
        simulation = self._simulation
        stop = time_in_s(simulation.stop_time if stop is None else stop, "stop time")
        shown = self._columns(outputs)
        columns = list(dict.fromkeys([*shown, *self._watched]))
        if output_step is None:
            numbers = self.machines * len(columns)
            output_step = default_interval(simulation.name, 0.0, stop, simulation.step_size, numbers, "output_step")
        output_step = time_in_s(output_step, "output step")
        check_run(stop, output_step, simulation.step_size, self.machines * len(columns))
        threads = _threads(workers)
        library = self._compiled(errors=self._errors)
        simulation.warn_undriven([self._inputs[place].name for place in (*self._held, *self._driven)])
        begin = clock.perf_counter()
        times = counted(0.0, stop, output_step)
        with short_memory_in_words(simulation.name, "output_step"):
            runs = library.run(self._data(), times, columns, threads, progress)
        return self._result(runs, times, columns, len(shown), clock.perf_counter() - begin)

    def start(self, outputs: Sequence[str] = (), *, workers: int | None = None) -> EnsembleSimulation:
        """Start all machines, to go on as they are asked to, with inputs that are set between.

        Parameters
        ----------
        outputs, workers
            As for `run`.

        Raises
        ------
        InputError
            As for `run`.
        MemoryError
            When there is not enough of it; all machines are in memory at once.
        """
        return self._started(self._columns(outputs), workers)

    def _started(self, columns: Sequence[int], workers: int | None) -> EnsembleSimulation:
        """Return started machines, of which some columns are recorded."""
        errors = self._errors_of_started
        threads, library = _threads(workers), self._compiled(errors=errors)
        machines = OpenMachines(library, self._data(), columns, threads)
        return EnsembleSimulation(self._simulation, machines, columns, self._numbers, errors=errors)

    def vector_env(
        self,
        actions: Bounds,
        observations: Sequence[str],
        reward: Callable[[Transition], Floats],
        *,
        interval: float,
        time_limit: float,
        terminated: Callable[[Transition], NDArray[np.bool_]] | None = None,
        draw: Callable[[np.random.Generator, int], Mapping[str, Values]] | None = None,
        others: Sequence[str] = (),
        failure_reward: float = 0.0,
        autoreset: str = "NextStep",
        workers: int | None = None,
    ) -> EnsembleVectorEnv:
        """Return a learning environment of Gymnasium, in which each machine makes episodes of its own.

        Parameters
        ----------
        actions
            Inputs by name, which have the bounds of the model, or a mapping to least and greatest values.
        observations
            Patterns such as `cylinder.*` of outputs, as for `run`.
        reward
            Rewards of a step, shape (n,), from its `Transition`.
        interval
            Time in s over which actions are held.
        time_limit
            Time in s after which episodes are truncated; a multiple of `interval`.
        terminated
            Which machines have come to an end of their own, shape (n,), from the step's `Transition`; none by default.
        draw
            Values of parameters for new episodes by name, start values such as `boom.angle_start` among them: called
            with a random generator and how many machines start.
        others
            Further outputs that `reward` and `terminated` read.
        failure_reward
            Reward of a step in which a machine fails, which terminates its episode.
        autoreset
            When machines start again that have ended: in the `NextStep`, in the `SameStep`, or `Disabled`, which leaves
            it to `reset`.
        workers
            As for `run`.

        Raises
        ------
        InputError
            When Gymnasium is not installed, an argument is wrong, or a machine cannot start; else as for `start`.
        """
        optional("gymnasium", "a learning environment", "learning")
        from mbsfmu.system_model.vector_env import EnsembleVectorEnv, action_bounds, episode_steps  # noqa: PLC0415

        bounds, episode = action_bounds(actions, self._simulation), episode_steps(interval, time_limit)
        observed = self._columns(observations) if observations else []
        if not observed:
            raise InputError("nothing is observed; name one output at least")
        further = self._columns(others) if others else []
        machines = self._started(list(dict.fromkeys([*observed, *further])), workers)
        return EnsembleVectorEnv(
            machines,
            bounds,
            len(observed),
            reward,
            terminated,
            draw,
            interval=interval,
            episode=episode,
            failure_reward=failure_reward,
            autoreset=autoreset,
        )

    def _compiled(self, *, errors: bool) -> EnsembleLibrary:
        """Return the compiled code, for this ensemble and others of the same model and options; errors as for `run`."""
        if errors not in self._libraries:
            self._libraries[errors] = ensemble_library(self._simulation, self._key, self._lanes, errors=errors)
        return self._libraries[errors]

    def single_runs(self, stop: float | None = None) -> Iterator[MachineRun | None]:
        """Run all machines in one thread, and yield what a single run of each would give, in their order.

        Of machines that fail there is None: a single run tells why.

        Parameters
        ----------
        stop
            End time in s; the model's own by default.

        Raises
        ------
        InputError
            As for `run`.
        """
        simulation = self._simulation
        stop = time_in_s(simulation.stop_time if stop is None else stop, "stop time")
        output_step = simulation.output_step(stop)
        columns = range(len(simulation.continuous))
        check_run(stop, output_step, simulation.step_size, self.machines * len(columns))
        library, data = self._compiled(errors=self._errors), self._data()
        begin = clock.perf_counter()
        times = counted(0.0, stop, output_step)
        runs = library.run(data, times, columns, 1)
        seconds = (clock.perf_counter() - begin) / self.machines
        driven = [self._inputs[place].name for place in (*self._held, *self._driven)]
        for machine in range(self.machines):
            if machine in runs.failures:
                yield None
                continue
            with KeptWarnings() as told:
                simulation.warn_undriven(driven)
                for sentence in (each for number, each in runs.warnings if number == machine):
                    _LOGGER.warning("%s", sentence)
                simulation.energy_watch.begin()
                result = simulation.result_of(
                    times,
                    runs.rows[machine],
                    (seconds, 0.0),
                    self._statistics(runs, machine),
                    self._error(runs, machine),
                    data.parameters[machine],
                )
            yield MachineRun(result, tuple(told.sentences))

    @staticmethod
    def _statistics(runs: MachineRuns, machine: int) -> Statistics:
        statistics = Statistics()
        count(statistics, count_places(), runs.counts[machine])
        return statistics

    def _error(self, runs: MachineRuns, machine: int) -> ErrorEstimate:
        solver = self._simulation.solver
        record = solver.error_record if self._errors else None
        return solver.not_estimated if record is None else record.estimate(runs.records[machine], solver.step)

    def _columns(self, outputs: Sequence[str]) -> list[int]:
        continuous = self._simulation.continuous
        if outputs:
            return chosen_places(outputs, continuous, "output", self._simulation)
        named = {each.name for each in self._simulation.variables if each.causality is Causality.OUTPUT}
        return [place for place, each in enumerate(continuous) if each.name in named]

    @property
    def _watched(self) -> list[int]:
        """Indices of variables that show unreliable runs."""
        simulation = self._simulation
        watches = simulation.cardan_watch, simulation.energy_watch, simulation.condition_watch
        return sorted({column for watch in watches for column in watch.columns})

    def _data(self) -> MachineData:
        simulation = self._simulation
        parameters = np.tile(start_values(simulation.functions.system.parameters), (self.machines, 1))
        inputs = np.tile(start_values(self._inputs), (self.machines, 1))
        held = np.zeros(len(self._inputs), dtype=np.intc)
        held[self._held] = 1
        arrays = list(self._numbers.values())
        for place, values in zip(self._places, arrays, strict=False):
            parameters[:, place] = values
        for place, values in zip(self._held, arrays[len(self._places) :], strict=True):
            inputs[:, place] = values
        return MachineData(parameters, inputs, held, self._signals, simulation.step_size)

    def _result(
        self, runs: MachineRuns, times: Floats, columns: Sequence[int], shown: int, seconds: float
    ) -> EnsembleResult:
        """Return the results of the runs, with the first columns exposed; warn of problems."""
        simulation = self._simulation
        vectors = self._libraries[self._errors].vectors
        recorded = [simulation.continuous[column] for column in columns]
        failures, warnings = self._diagnostics(runs, times, columns)
        if len(failures) > _TOLD:
            _LOGGER.warning("of %d machines, %d failed; the first are listed", self.machines, len(failures))
        for sentence in list(failures.values())[:_TOLD]:
            _LOGGER.warning("%s", sentence)
        for sentence, machines in alike(warnings):
            many = how_many(machines, self.machines, "machines")
            _LOGGER.warning("%s%s: %s", many, self._machine(machines[0]), sentence)
        by_machine: dict[int, list[str]] = {}
        for machine, sentence in warnings:
            by_machine.setdefault(machine, []).append(f"{self._machine(machine)}: {sentence}")
        return EnsembleResult(
            times,
            runs.rows[:, :, :shown],
            recorded[:shown],
            simulation.exposed.readable,
            model=simulation.name,
            parameters=self._numbers,
            parameter_units={name: simulation.variable(name).unit for name in self._numbers},
            failures=failures,
            warnings=by_machine,
            reached=np.append(times, np.nan)[runs.done - 1],
            errors=[self._error(runs, machine) for machine in range(self.machines)],
            steps=runs.counts[:, count_places()["steps"]][:, 0],
            scalar_steps=runs.alone,
            lanes=vectors.lanes,
            vector_mathematics=vectors.mathematics,
            wall_seconds=seconds,
        )

    def _diagnostics(
        self, runs: MachineRuns, times: Floats, columns: Sequence[int]
    ) -> tuple[dict[int, str], list[tuple[int, str]]]:
        """Return failures of machines by their numbers, and warnings with the numbers of theirs, in their order."""
        simulation = self._simulation
        names = [simulation.continuous[column].name for column in columns]
        watch = CardanWatch(simulation.initialization.system.parts, names)
        scales, remedy = simulation.initialization.energy_scales, simulation.solver.remedy
        energies = EnergyWatch(simulation.functions.system.name, names, remedy, scales)
        failures = {
            machine: f"{self._machine(machine)}: {why}{watch.cause(runs.rows[machine, : runs.done[machine]])}"
            for machine, why in runs.failures.items()
        }
        warnings = list(runs.warnings)
        for machine in range(self.machines):
            error = self._error(runs, machine).warning(simulation.solver.more_accurate)
            warnings += [(machine, error)] * bool(error)
        parameters = self._data().parameters
        extremes = {int(find(values)) for values in self._numbers.values() for find in (np.argmin, np.argmax)}
        for machine in sorted(extremes):
            warnings += [(machine, sentence) for sentence in simulation.implausible_numbers(parameters[machine])]
        for machine in np.flatnonzero(runs.done > 0).tolist():
            come, rows = times[: runs.done[machine]], runs.rows[machine, : runs.done[machine]]
            energies.begin()
            remarks = simulation.condition_watch.remarks(come, rows, parameters[machine], columns)
            sentences = (remark.sentence for remark in remarks if remark.doubtful)
            found = (*energies.diagnostics(come, rows), *watch.diagnostics(come, rows), *sentences)
            warnings += [(machine, sentence) for sentence in found]
        return failures, sorted(warnings)

    def _machine(self, machine: int) -> str:
        return machine_name(self._simulation, self._numbers, machine)


def _threads(workers: int | None) -> int:
    """Return how many threads are wanted; one a processor by default."""
    if workers is not None and workers < 1:
        raise InputError(f"workers = {workers} must be at least 1")
    return workers or os.cpu_count() or 1


def _is_signal(value: Any) -> bool:
    """Return whether the source of an input is a signal, or one for each machine."""
    first = value[0] if isinstance(value, Sequence) and len(value) else value
    return isinstance(first, Data)


def _common_length(lengths: Mapping[str, int]) -> int:
    """Return the number of machines from the values given for each."""
    if not lengths:
        raise InputError("nothing is given for each machine; give an array of a parameter, an input or a start value")
    first = next(iter(lengths))
    for name, length in lengths.items():
        if length != lengths[first]:
            raise InputError(
                f"{name} is given for {length} machines and {first} for {lengths[first]}; all arrays must have one "
                "length"
            )
    return lengths[first]
