"""Runs coupled units."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from mbsfmu.cosim.algorithms import make_algorithm
from mbsfmu.cosim.control import Controller, Tolerances, make_controller
from mbsfmu.cosim.coupling import Algorithm, names_of
from mbsfmu.cosim.driven import DrivenInputs, Signal
from mbsfmu.cosim.energy import find_bonds
from mbsfmu.cosim.exchange import Exchange
from mbsfmu.cosim.exposed import add_outputs, behind_connectors
from mbsfmu.cosim.graph import Connection, SystemGraph, check_connections, connect_elements, undriven_inputs
from mbsfmu.cosim.initialization import initialize_values
from mbsfmu.cosim.instance import Instance
from mbsfmu.cosim.loading import by_instance, instantiate, load_graph
from mbsfmu.cosim.notes import tell_crossed, tell_notes, tell_undriven
from mbsfmu.cosim.options import TOLERANCE, CouplingKeywords, CouplingOptions
from mbsfmu.cosim.result import (
    CosimulationError,
    CosimulationInterrupted,
    CosimulationResult,
    Facts,
    Record,
    residual_notes,
)
from mbsfmu.cosim.running import Course
from mbsfmu.cosim.stepping import Stepping
from mbsfmu.cosim.texts import Texts
from mbsfmu.data import meant
from mbsfmu.errors import InputError, SimulationError
from mbsfmu.times import check_span
from mbsfmu.variables import Causality

_SMALLEST, _LARGEST = 1e-3, 10.0  # of the first step, where bounds are not given


def cosimulate(
    source: str | Path | Sequence[str | Path],
    *,
    options: CouplingOptions | None = None,
    connections: Sequence[str | Connection] = (),
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Signal] | None = None,
    progress: Callable[[float], None] | None = None,
    **given: Unpack[CouplingKeywords],
) -> CosimulationResult:
    """Run coupled co-simulation units of FMI 2.0 and 3.0.

    Parameters
    ----------
    source
        An SSP file, a folder that holds one, or FMU files; the units of FMU files have the files' names.
    options, given
        Options, and those of them that are given by name; `CouplingOptions` says what they are.
    connections
        `a.y=b.u`, beside those of the package.
    parameters
        Start values by `unit.variable` or connector of the system, set before initialization.
    inputs
        Functions of time, or signals that know their events (`StepSignal`, `LinearSignal`), by `unit.variable` or
        connector of the system, for inputs that no connection drives. Steps end at events; anything with `events`,
        `before(time)` and `after(time)` has such. Where a plain function jumps is found by `error` control alone, and
        not if it jumps back within a quarter of a step. Held inputs take the value at the beginning of a step.
    progress
        Called with the share that is done.

    Raises
    ------
    InputError
        When the call or a file is wrong, an option has no effect, or a unit cannot do what is asked.
    SimulationError
        When a unit fails before the first step, or the start has no solution.
    CosimulationError
        When a unit fails, an iteration does not converge or an output is not finite; the message has unit, time
        and reason, `result` what was recorded.
    """
    chosen = CouplingOptions.of(options, given, ("connections", "parameters", "inputs", "progress"))
    rates = {} if chosen.rates is None else chosen.rates
    with _kept_while_closing() as kept, ExitStack() as stack:
        graph = load_graph(source, stack)
        parsed = tuple(Connection.parse(each) if isinstance(each, str) else each for each in connections)
        graph = replace(graph, connections=(*graph.connections, *parsed))
        instances = stack.enter_context(instantiate(graph))
        graph = connect_elements(graph, instances)
        check_connections(graph, instances)
        settings = chosen.settings(instances)
        _check_rates(rates, instances)
        end, macro = _experiment(graph, instances, chosen.stop, chosen.step)
        tolerances = _tolerances(chosen, macro)
        _check_control(chosen.control, instances)
        followed = by_instance(behind_connectors(inputs or {}, graph), instances)
        driven = DrivenInputs(followed, instances, graph.connections, macro)
        values = {**graph.parameters, **by_instance(behind_connectors(parameters or {}, graph), instances)}
        texts = Texts(instances, graph.connections)
        exchange = _initialize(
            instances,
            graph.connections,
            values,
            driven,
            texts,
            {name: int(rate) for name, rate in rates.items()},
            settings.extrapolation.rows,
            graph.start,
            end,
            chosen.unit_tolerance,
        )
        facts = Facts(chosen.algorithm, str(chosen.extrapolation), chosen.control, macro, texts=texts.changes)
        coupling = make_algorithm(exchange, settings)
        stack.callback(coupling.close)
        known = {*values, *followed}
        facts.undriven = undriven_inputs(graph, instances, known)
        tell_undriven(facts, graph.connections, known)
        tell_crossed(facts, graph.connections, instances)
        tell_notes(facts, exchange, coupling.iterates, settings.extrapolation)
        history = coupling.history()
        bonds = find_bonds(exchange, exchange.connections)
        record = Record(exchange, bonds, graph.start, history.now)
        stepping = Stepping(coupling, bonds)
        controller = make_controller(chosen.control, stepping, tolerances, history, facts, end - graph.start)
        course = Course(stepping, history, record, facts, driven, texts, graph.start, end, progress)
        kept.append(lambda: _result(record, facts, coupling, graph))
        return _run(course, controller, macro, facts, kept[0])


@contextmanager
def _kept_while_closing() -> Iterator[list[Callable[[], CosimulationResult]]]:
    """Hand on what was recorded where a run is interrupted outside its steps, as when its units are closed."""
    kept: list[Callable[[], CosimulationResult]] = []
    try:
        yield kept
    except CosimulationInterrupted:
        raise
    except KeyboardInterrupt:
        if not kept:
            raise
        raise CosimulationInterrupted(kept[0]()) from None


def _run(
    course: Course, controller: Controller | None, step: float, facts: Facts, recorded: Callable[[], CosimulationResult]
) -> CosimulationResult:
    """Make all steps and return what was recorded; a run that fails or is interrupted hands it on with its error."""
    begin = clock.perf_counter()

    def result() -> CosimulationResult:
        facts.wall_seconds = clock.perf_counter() - begin
        return recorded()

    try:
        if controller is None:
            course.run_fixed(step)
        else:
            course.run_controlled(controller, step)
    except SimulationError as error:
        raise CosimulationError(str(error), result()) from error
    except KeyboardInterrupt:
        raise CosimulationInterrupted(result()) from None
    return result()


def _result(record: Record, facts: Facts, coupling: Algorithm, graph: SystemGraph) -> CosimulationResult:
    """Return what was recorded until now, with what it has cost and the outputs of the whole system."""
    facts.iterations, facts.rollbacks = coupling.sweeps, coupling.rollbacks
    made = record.result(facts)
    for sentence in residual_notes(made):
        facts.tell(sentence)
    add_outputs(made, graph)
    return made


# -- checks -------------------------------------------------------------------------------------------------------


def _experiment(
    graph: SystemGraph, instances: Mapping[str, Instance], stop: float | None, step: float | None
) -> tuple[float, float]:
    """Return stop time and communication step in s: as called, else as package or units suggest."""
    defaults = [instance.default_experiment for instance in instances.values()]
    stops = [each for each, _ in defaults if each is not None]
    steps = [each for _, each in defaults if each is not None]
    stop = stop if stop is not None else graph.stop if graph.stop is not None else max(stops, default=None)
    suggested = min(steps, default=None) if step is None else None
    step = suggested if step is None else step
    for what, value, least in (("stop time", stop, graph.start), ("step", step, 0.0)):
        if value is None:
            raise InputError(f"no {what} is given, and no unit suggests one")
        if not (value > least and math.isfinite(value)):
            raise InputError(f"the {what} is {value:g} s; it must be greater than {least:g} s")
    assert stop is not None
    assert step is not None
    if suggested is not None:
        step = min(step, stop - graph.start)
    check_span(graph.start, stop, step)
    return stop, step


def _check_rates(rates: Mapping[str, float], instances: Mapping[str, Instance]) -> None:
    for name, rate in rates.items():
        if name not in instances:
            raise InputError(f"there is no unit '{name}' with a rate; {meant(name, instances)}")
        if rate < 1 or rate != int(rate):
            raise InputError(f"the rate of {name} is {rate:g}; it must be a whole number of at least 1")


def _tolerances(options: CouplingOptions, step: float) -> Tolerances:
    relative = TOLERANCE if options.tolerance is None else options.tolerance
    absolute = relative if options.absolute_tolerance is None else options.absolute_tolerance
    smallest, largest = options.smallest_step, options.largest_step
    smallest = _SMALLEST * step if smallest is None else smallest
    largest = _LARGEST * step if largest is None else largest
    if not 0.0 < smallest <= largest:
        raise InputError(f"the smallest step is {smallest:g} s and the largest {largest:g} s; 0 < smallest <= largest")
    return Tolerances(relative, absolute, smallest, largest)


def _check_control(control: str, instances: Mapping[str, Instance]) -> None:
    fixed = [name for name, instance in instances.items() if not instance.takes_any_step]
    if control != "fixed" and fixed:
        raise InputError(f"{names_of(fixed)} cannot take steps of different lengths; choose control fixed")


# -- making the parts ---------------------------------------------------------------------------------------------


def _initialize(
    instances: Mapping[str, Instance],
    connections: Sequence[Connection],
    parameters: Mapping[tuple[str, str], Any],
    driven: DrivenInputs,
    texts: Texts,
    rates: Mapping[str, int],
    rows: int,
    start: float,
    stop: float,
    unit_tolerance: float | None,
) -> Exchange:
    """Bring all instances into step mode; connections to parameters count for the start only."""
    for instance in instances.values():
        instance.setup(start, stop, unit_tolerance)
    for (name, variable), value in parameters.items():
        instances[name].set_start(variable, value)
    for instance in instances.values():
        instance.enter_initialization()
    initialize_values(Exchange(instances, connections, driven), start)
    texts.settle()
    for instance in instances.values():
        instance.exit_initialization()

    def lasts(connection: Connection) -> bool:
        instance, variable = connection.target
        return instances[instance].variables[variable].causality is Causality.INPUT

    return Exchange(instances, [each for each in connections if lasts(each)], driven, rates, rows)
