"""Interactive coupled runs: step, read, change."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.files import WriteError
from mbsfmu.cosim.control.richardson_control import make_controller
from mbsfmu.cosim.control.run_statistics import RunStatistics
from mbsfmu.cosim.coupling.algorithms import make_algorithm
from mbsfmu.cosim.coupling.coupled_steps import Stepping
from mbsfmu.cosim.coupling.coupling_data import CouplingData, DrivenInputs, Signal, Texts
from mbsfmu.cosim.coupling.graph import (
    Connection,
    CoupledJoint,
    SystemGraph,
    behind_connectors,
    check_connections,
    connect_elements,
    undriven_inputs,
)
from mbsfmu.cosim.coupling.power_bonds import find_bonds
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.cosim.joints.joined_models import JointIntegration, check_rates
from mbsfmu.cosim.joints.joint_closing import ROWS, JointClosing, joint_rates
from mbsfmu.cosim.joints.joint_equations import BoundJoint, are_exchanged, bind, unloaded
from mbsfmu.cosim.runs import preparation
from mbsfmu.cosim.runs.coupled_run_loop import (
    ControlledRunLoop,
    CoupledRunLoop,
    FixedRunLoop,
    Pacer,
    RunSetup,
    check_until,
)
from mbsfmu.cosim.runs.coupling_options import TIME_LIMIT, CouplingKeywords, CouplingOptions
from mbsfmu.cosim.runs.load_fmus import Drawable, by_instance, instantiate, load_graph
from mbsfmu.cosim.runs.preparation import report_crossed, report_notes, report_undriven
from mbsfmu.cosim.runs.run_recorder import (
    CosimulationError,
    CosimulationInterrupted,
    CosimulationResult,
    Record,
    Thinning,
    all_columns,
    chosen_columns,
    residual_notes,
    unrecorded,
)
from mbsfmu.cosim.runs.saved_runs import all_changes, call_in_words, check_serialization, put_all_back
from mbsfmu.cosim.runs.scenario import Scenario, Table, check_settable, read_scenario
from mbsfmu.io.checkpoints import PARTS, Checkpoint, CheckpointFile, read_saved, write_saved
from mbsfmu.io.formats import format_of
from mbsfmu.io.signals import in_unit

_VALUE = {"Real": float, "Integer": int, "Enumeration": int, "Boolean": bool}


class Cosimulation:
    """A run of coupled FMUs, which are loaded and initialized inside `with`.

    ::

        with Cosimulation("four-bar.ssp", step=1e-3, stop=2.0) as run:
            while not run.done:
                run.step()
                if run["mechanism.cylinder.length"] > 1.7:
                    run["circuit.valve.command"] = 0.0
            result = run.result()

    Parameters
    ----------
    source, options, connections, parameters, inputs, scenario, bonds, joints, output, progress, resume, checkpoint
        As for `cosimulate`.
    given
        As for `cosimulate`.

    Raises
    ------
    InputError
        At once or where `with` begins, when the call or a file is wrong, an option has no effect, or an FMU cannot do
        what is asked.
    SimulationError
        Where `with` begins, when an FMU fails before the first step, or the start has no solution.
    """

    def __init__(
        self,
        source: str | Path | Sequence[str | Path],
        *,
        options: CouplingOptions | None = None,
        connections: Sequence[str | tuple[str, str] | Connection] = (),
        parameters: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Signal] | None = None,
        scenario: str | os.PathLike[str] | Table | None = None,
        bonds: Sequence[str] = (),
        joints: Sequence[str | CoupledJoint] = (),
        output: str | os.PathLike[str] | None = None,
        progress: Callable[[float], None] | None = None,
        resume: str | os.PathLike[str] | None = None,
        checkpoint: Checkpoint | None = None,
        **given: Unpack[CouplingKeywords],
    ) -> None:
        beside = (
            *("connections", "parameters", "inputs", "scenario", "bonds", "joints"),
            *("output", "progress", "resume", "checkpoint"),
        )
        self.options = CouplingOptions.of(options, given, beside)
        if checkpoint is not None and output is None:
            raise InputError("a checkpoint needs an output: the rows of the run are kept in its file")
        if output is not None:
            format_of(output)
        self._source, self._progress, self._here = source, progress, Path.cwd()  # which an FMU may leave
        self._output, self._resume = (None if each is None else self._here / each for each in (output, resume))
        self._checkpoint = checkpoint
        self._connections = tuple(map(Connection.of, connections))
        self._joints = tuple(CoupledJoint.parse(each) if isinstance(each, str) else each for each in joints)
        self._parameters, self._inputs = dict(parameters or {}), dict(inputs or {})
        self._scenario = read_scenario(scenario or {})
        self._bonds = tuple(bonds)
        self._stack = ExitStack()
        self._saves: CheckpointFile | None = None
        self._run_loop: CoupledRunLoop | None = None
        self._ended = self._failed = False

    # -- begin and end --------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(os.chdir, self._here)
            self._prepare(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with self._stack:
                self._finish()
        except KeyboardInterrupt:
            raise CosimulationInterrupted(self.result()) from None

    def _load(self, stack: ExitStack) -> tuple[SystemGraph, dict[str, Instance]]:
        """Return the system graph and its FMUs."""
        chosen = self.options
        graph = load_graph(self._source, stack, strict=chosen.strict)
        graph = replace(
            graph,
            connections=(*graph.connections, *self._connections),
            joints=(*graph.joints, *self._joints),
        )
        if graph.joints and chosen.linear_correction:
            raise InputError("a linear correction has no effect with joints; it has with connections alone")
        if chosen.start_time is not None:
            graph = replace(graph, start=chosen.start_time)
        instances = stack.enter_context(
            instantiate(
                graph,
                isolated=chosen.isolate or (),
                limit=chosen.time_limit or TIME_LIMIT,
                exchanged=chosen.model_exchange or (),
                solver=chosen.unit_solver,
                placed=chosen.place,
                scheduler=chosen.scheduler,
                parameters=self._parameters,
            )
        )
        graph = connect_elements(graph, instances)
        check_connections(graph, instances)
        for instance in instances.values():
            shown = [each for each in graph.outputs if each.end[0] == instance.name]
            instance.unread = unrecorded(instance, instance.wide, chosen.record, shown)
        return graph, instances

    def _prepare(self, stack: ExitStack) -> None:
        """Load the FMUs, and bring them to their start, or to where a saved run is."""
        chosen = self.options
        graph, instances = self._graph, self._instances = self._load(stack)
        if self._checkpoint is not None:
            check_serialization(instances)
        settings = chosen.settings(instances)
        followed = {
            (name, variable): in_unit(signal, instances[name].units[variable], f"{name}.{variable}")
            for (name, variable), signal in by_instance(behind_connectors(self._inputs, graph), instances).items()
        }
        driven_by_others = {*followed, *(connection.target for connection in graph.connections)}
        joints = bind(graph.joints, instances, driven_by_others, chosen.algorithm, chosen.control)
        exchanged = are_exchanged(joints)
        rates = preparation.whole_rates(chosen.rates, instances)
        if exchanged:
            check_rates(joints, rates)
        else:
            rates = joint_rates(joints, rates)
        stop, step = preparation.experiment(graph, instances, chosen.stop, chosen.step)
        tolerances = preparation.tolerances(chosen, step)
        preparation.check_control(chosen.control, instances)
        driven = DrivenInputs({**followed, **unloaded(joints)}, instances, graph.connections, step)
        loads = {load for joint in joints for load in joint.loads}
        self._taken = {*driven.targets, *driven_by_others, *loads}
        scenario = Scenario(self._scenario, graph, instances, self._taken, graph.start, step)
        given = {**self._starts(followed, joints), **scenario.start}
        values = {**graph.parameters, **given}
        texts = Texts(instances, graph.connections)
        rows = max(settings.extrapolation.rows, ROWS if joints and not exchanged else 1)
        exchange = preparation.initialize(
            instances, graph.connections, values, given, driven, texts, rates, rows, graph.start, stop,
            chosen.unit_tolerance,
        )  # fmt: skip
        self.statistics = RunStatistics(
            chosen.algorithm, str(chosen.extrapolation), chosen.control, step, texts=texts.changes
        )
        with_joints = JointIntegration if exchanged else JointClosing
        self._algorithm = with_joints(exchange, settings, joints) if joints else make_algorithm(exchange, settings)
        stack.callback(self._algorithm.close)
        self._warn_undriven_and_crossed({*values, *driven.targets, *loads, *scenario.variables})
        self._drawable = Drawable.of(graph, instances, values, {*followed, *scenario.variables})
        parts = self._parts(driven, scenario, texts, stop, step)
        stack.callback(self._record.close)
        controller = make_controller(
            chosen.control, parts.stepping, tolerances, parts.history, self.statistics, graph.start, stop
        )
        run_loop = FixedRunLoop(parts, step) if controller is None else ControlledRunLoop(parts, step, controller)
        self._pacer = None if chosen.pace is None else Pacer(chosen.pace, self.statistics)
        # In words only where they are asked for: every FMU file is read for them.
        self._call = partial(call_in_words, chosen, graph, step, stop, given, followed, self._scenario)
        with self._guarded(run_loop):
            if self._checkpoint is not None:
                self._saves = CheckpointFile(self._checkpoint, self._call())
            content = self._saved_before()
            if content is None:
                run_loop.begin()
            else:
                put_all_back(self._instances, self._changing(run_loop), content)
                self._record.go_on()
        self._run_loop = run_loop

    def _starts(
        self, followed: Collection[tuple[str, str]], joints: Sequence[BoundJoint]
    ) -> dict[tuple[str, str], Any]:
        """Return parameters and start values by (instance, variable); inputs that follow signals have none."""
        starts = by_instance(behind_connectors(self._parameters, self._graph), self._instances)
        preparation.check_starts(starts, followed, {load: joint.joint for joint in joints for load in joint.loads})
        return starts

    def _saved_before(self) -> dict[str, Any] | None:
        """Return where the run is in its last checkpoint, or in the file to resume; None at its start."""
        content = None if self._saves is None else self._saves.read()
        if content is None and self._resume is not None:
            content = read_saved(self._resume, self._call())
        return content

    def _parts(self, driven: DrivenInputs, scenario: Scenario, texts: Texts, stop: float, step: float) -> RunSetup:
        """Return the parts of the run with its record; times in s."""
        chosen, graph, exchange = self.options, self._graph, self._algorithm.exchange
        settings = self._algorithm.settings
        report_notes(
            self.statistics, exchange, self._algorithm.iterates, settings.extrapolation, settings.linear_correction
        )
        history = self._algorithm.history()
        bonds = find_bonds(exchange, exchange.connections, self._bonds, self.statistics.warn)
        everything = all_columns(exchange, bonds, graph.outputs, graph.joints)
        columns = chosen_columns(everything, chosen.record, self._instances)
        grid, in_memory = (graph.start, stop, step), self._output is None
        interval = preparation.row_interval(chosen, grid, 1 + len(columns), in_memory)
        preparation.check_size(chosen, grid, interval, len(columns) if in_memory else None)
        width = len(exchange.names) + len(self._algorithm.reactions)
        thinning = Thinning(graph.start, chosen.record_every, interval)
        self._record = Record(columns, bonds, width, thinning, self._output)
        return RunSetup(
            stepping=Stepping(self._algorithm, bonds, history),
            history=history,
            record=self._record,
            statistics=self.statistics,
            driven=driven,
            scenario=scenario,
            texts=texts,
            start=graph.start,
            stop=stop,
            progress=self._progress,
        )

    def _warn_undriven_and_crossed(self, known: set[tuple[str, str]]) -> None:
        """Warn of probably wrong connections."""
        graph, instances = self._graph, self._instances
        self.statistics.undriven = undriven_inputs(graph, instances, known)
        report_undriven(self.statistics, graph.connections, known)
        report_crossed(self.statistics, graph.connections, instances)

    # -- going on -------------------------------------------------------------------------------------------------

    def _running(self) -> CoupledRunLoop:
        if self._run_loop is None:
            raise InputError("the FMUs are not loaded: a run goes on inside `with Cosimulation(…) as run`")
        if self._ended:
            raise InputError(f"the run has ended at t = {self.time:.9g} s; it does not go on")
        return self._run_loop

    @contextmanager
    def _guarded(self, run_loop: CoupledRunLoop) -> Iterator[None]:
        """Attach the recorded rows to errors of steps; complete the record at the end of the run."""
        begin = clock.perf_counter()
        try:
            yield
            self.statistics.wall_seconds += clock.perf_counter() - begin
            if run_loop.done:
                self._finish()
        except (SimulationError, WriteError) as error:
            self._failed = True
            self.statistics.wall_seconds += clock.perf_counter() - begin
            raise CosimulationError(str(error), self._kept()) from error
        except KeyboardInterrupt:
            self._failed = True
            self.statistics.wall_seconds += clock.perf_counter() - begin
            raise CosimulationInterrupted(self._kept()) from None

    def _kept(self) -> CosimulationResult:
        """Return the record of a run that ended early."""
        try:
            self._finish()
        except WriteError as error:
            self.statistics.notes.append(str(error))
        return self.result()

    def _finish(self) -> None:
        if not self._ended and hasattr(self, "_record"):
            self._ended = True
            self._record.finish()

    def end(self) -> None:
        """End the run at its present time with a complete record."""
        self._running()
        self._finish()

    def step(self) -> float:
        """Make one communication step and return the time in s that it led to; a controlled one may take tries.

        Raises
        ------
        InputError
            When the run has ended.
        CosimulationError
            When an FMU fails, an iteration does not converge, an output is not finite or a row cannot be written.
        """
        run_loop = self._running()
        with self._guarded(run_loop):
            run_loop.make_step(self._pacer)
        return run_loop.time

    def run(self, until: float | None = None) -> CosimulationResult:
        """Go on to the first communication point that is not before a time in s, to the end by default.

        Raises
        ------
        InputError
            When the time is before where the run is, or after its end; when the run has ended.
        CosimulationError
            As for `step`.
        """
        run_loop = self._running()
        if until is not None:
            check_until(until, run_loop)
        for end in self._parts_until(run_loop, until):
            with self._guarded(run_loop):
                run_loop.run(end, self._pacer)
            if self._saves is not None and self._saves.is_due and not run_loop.done:
                with self._guarded(run_loop):
                    self._record.write()
                    self._saves.write(run_loop.time, self._all_changes(run_loop))
        return self.result()

    def _parts_until(self, run_loop: CoupledRunLoop, until: float | None) -> Iterator[float | None]:
        """Yield the ends in s of the parts of a run that are left; None is the end of the run."""
        start, stop = run_loop.parts.start, run_loop.parts.stop
        for part in range(1, PARTS) if self._saves is not None else ():
            end = start + (stop - start) * part / PARTS
            if run_loop.time < end < (stop if until is None else until) and not run_loop.done:
                yield end
        if not run_loop.done:
            yield until

    def _all_changes(self, run_loop: CoupledRunLoop) -> dict[str, Any]:
        return all_changes(self._instances, self._changing(run_loop))

    # -- in another process -----------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the run where it is to a file, from which the same call goes on with `resume`, in another process too.

        Signals must be given again, as they were; FMUs in processes of their own, threads and pace may be others.
        Where rows go to a file, that one is gone on with.

        Raises
        ------
        InputError
            When it is not loaded or has failed, or an FMU cannot save its state for another process.
        SimulationError
            When an FMU refuses.
        WriteError
            When the file cannot be written.
        """
        if self._run_loop is None:
            self._running()
        if self._failed or self._run_loop is None or self._run_loop.over:
            raise InputError(f"the run has ended at t = {self.time:.9g} s before its time; it cannot be saved")
        self._record.flush()
        write_saved(self._here / path, self._call(), self._all_changes(self._run_loop))

    def _changing(self, run_loop: CoupledRunLoop) -> dict[str, Any]:
        """Return all objects with changing state, except the FMUs."""
        parts = run_loop.parts
        return {
            "run_loop": run_loop,
            "algorithm": self._algorithm,
            "history": parts.history,
            "record": self._record,
            "statistics": self.statistics,
            "scenario": parts.scenario,
            "texts": parts.texts,
        }

    # -- where it is --------------------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Present time of the run in s."""
        if self._run_loop is None:
            return self._graph.start
        return self._record.time if self._ended else self._run_loop.time

    @property
    def stop(self) -> float:
        """Stop time of the run in s, inside `with`."""
        return self._running().parts.stop

    @property
    def done(self) -> bool:
        """Whether the run is at its end."""
        return self._ended or (self._run_loop is not None and self._run_loop.done)

    @property
    def coupling(self) -> CouplingData:
        """The instances with the connections and signals that drive them, inside `with`."""
        if self._run_loop is None:
            self._running()
        return self._algorithm.exchange

    @property
    def joints(self) -> tuple[CoupledJoint, ...]:
        """The joints between the FMUs, inside `with`."""
        self._running()
        return self._graph.joints

    def result(self) -> CosimulationResult:
        """Return the recorded result with its cost."""
        self._record.flush()
        self.statistics.iterations, self.statistics.rollbacks = self._algorithm.sweeps, self._algorithm.rollbacks
        self.statistics.unit_steps = {name: instance.steps for name, instance in self._instances.items()}
        counts = {name: instance.events for name, instance in self._instances.items()}
        self.statistics.unit_events = {name: count for name, count in counts.items() if count is not None}
        made = self._record.result(self.statistics, self._drawable)
        if self._ended and not self._warned:
            self._warned = True
            for sentence in [*residual_notes(made), *(self._run_loop.notes() if self._run_loop else [])]:
                self.statistics.warn(sentence)
        return made

    _warned = False

    # -- values ---------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> float | int | bool | str:
        """Return the value of `unit.variable`, or of a connector of the system, where the run is.

        Raises
        ------
        InputError
            When there is no such variable.
        """
        if self._run_loop is None:
            self._running()
        way = {each.name: each for each in self._graph.outputs}.get(name)
        reference = name if way is None else ".".join(way.end)
        ((unit, variable),) = by_instance({reference: None}, self._instances)
        instance = self._instances[unit]
        kind = instance.kinds[variable]
        if kind == "String":
            return instance.read_text(variable)
        value = instance.port([variable]).read().item(0)
        return _VALUE[kind](value if way is None else way.map(value))

    def __setitem__(self, name: str, value: Any) -> None:
        """Set an input or tunable parameter where the run is; see `set`."""
        self.set({name: value})

    def set(self, values: Mapping[str, Any]) -> None:
        """Set inputs that nothing drives and tunable parameters, by `unit.variable` or connectors, from now on.

        Raises
        ------
        InputError
            When a variable is not there, cannot be set now, or the value is none of its type.
        SimulationError
            When an FMU refuses.
        """
        run_loop = self._running()
        found = by_instance(behind_connectors(values, self._graph), self._instances)
        check_settable(found, self._instances, self._taken, run_loop.time)
        run_loop.set(found)
