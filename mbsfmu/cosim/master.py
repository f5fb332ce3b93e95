"""Runs coupled units."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mbsfmu.cosim.algorithms import make_algorithm, make_settings
from mbsfmu.cosim.control import CONTROLS, Controller, Tolerances, make_controller
from mbsfmu.cosim.coupling import Algorithm, Settings, names_of
from mbsfmu.cosim.driven import DrivenInputs, Signal
from mbsfmu.cosim.effects import refuse_without_effect
from mbsfmu.cosim.energy import find_bonds
from mbsfmu.cosim.exchange import Exchange
from mbsfmu.cosim.exposed import add_outputs, behind_connectors
from mbsfmu.cosim.graph import Connection, SystemGraph, check_connections, undriven_inputs
from mbsfmu.cosim.initialization import initialize_values
from mbsfmu.cosim.instance import Instance
from mbsfmu.cosim.loading import by_instance, instantiate, load_graph
from mbsfmu.cosim.notes import tell_crossed, tell_notes, tell_undriven
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

_TOLERANCE = 1e-4
_SMALLEST, _LARGEST = 1e-3, 10.0  # of the first step, where bounds are not given


def cosimulate(
    source: str | Path | Sequence[str | Path],
    *,
    algorithm: str = Settings.algorithm,
    extrapolation: str = "zero",
    order: Sequence[str] | None = None,
    rates: Mapping[str, int] | None = None,
    step: float | None = None,
    stop: float | None = None,
    control: str = "fixed",
    tolerance: float | None = None,
    absolute_tolerance: float | None = None,
    unit_tolerance: float | None = None,
    smallest_step: float | None = None,
    largest_step: float | None = None,
    iteration_tolerance: float | None = None,
    maximum_iterations: int | None = None,
    relaxation: float | str | None = None,
    jacobian: str | None = None,
    energy_correction: bool = False,
    threads: int = 1,
    connections: Sequence[str | Connection] = (),
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Signal] | None = None,
    progress: Callable[[float], None] | None = None,
) -> CosimulationResult:
    """Run coupled FMI 2.0 co-simulation units.

    Parameters
    ----------
    source
        An SSP file, a folder that holds one, or FMU files; the units of FMU files have the files' names.
    algorithm
        `jacobi`: all units step with what is known at the beginning of a step; `gauss-seidel`: one after the other,
        later ones with the new outputs of earlier ones; `fixed-point` and `newton` repeat each step until inputs are
        what the outputs have become, and need units that save their states. `gauss-seidel` by default: it costs what
        `jacobi` does and leaves less residual energy, wherever units need not step at the same time.
    extrapolation
        How inputs run over a step: `zero` (held), `linear`, `quadratic`, or `derivatives` (straight, with the
        slopes that the units give). Iterated algorithms interpolate with the same degree. A unit that cannot
        interpolate holds the mean.
    order
        Names of the units in the order in which `gauss-seidel` and `fixed-point` step them; theirs by default.
    rates
        Number of steps that a unit makes in a communication step, by unit; inputs go on inside it.
    step, stop
        Communication step (the first one, where steps are controlled) and end in s; from the package or the units
        by default.
    control
        `fixed`; `error`: each step is made once as a whole and in two halves, and repeated where the error is too
        large; `energy`: from the residual power of the bonds; with `gauss-seidel` and `zero` it gains nothing over
        equal steps. Without saved states errors are estimated from the extrapolation and no step is repeated.
    tolerance, absolute_tolerance
        Of `error` the wanted error of outputs at the end of the run, of `energy` the residual power: as a share of
        their magnitude, and of their nominal value (1 W of powers); 1e-4 by default. The absolute one is the same as
        the relative one by default.
    unit_tolerance
        Relative tolerance of the units' own solvers; what each one suggests by default. Units with equal steps take no
        notice.
    smallest_step, largest_step
        Bounds of controlled steps in s; a thousandth and ten times `step` by default. Steps end where a unit tells its
        next event (a variable `next_event` in s, as ours have). What happens inside another unit at rest, such as a
        jump of a signal of its own, is seen only where a step ends soon after: bound the steps by it.
    iteration_tolerance, maximum_iterations
        Of iterated algorithms: the largest last change as a share of a variable's magnitude or nominal value, and
        the number of sweeps after which a step fails; 1e-8 and 50 by default.
    relaxation
        Of `fixed-point`: the share of each change that is taken over, or `aitken`, the default.
    jacobian
        Of `newton`: `differences`, the default, or `directional` derivatives of the units where they give them.
    energy_correction
        Whether `jacobi` and `gauss-seidel` add to inputs what their integral missed in the step before.
    threads
        Number of threads that units step in at the same time, with `jacobi` and `newton`.
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
    given_options = {
        "order": order,
        "tolerance": tolerance,
        "absolute_tolerance": absolute_tolerance,
        "smallest_step": smallest_step,
        "largest_step": largest_step,
        "iteration_tolerance": iteration_tolerance,
        "maximum_iterations": maximum_iterations,
        "relaxation": relaxation,
        "jacobian": jacobian,
        "threads": threads,
    }
    refuse_without_effect(algorithm, control, given_options)
    with _kept_while_closing() as kept, ExitStack() as stack:
        graph = load_graph(source, stack)
        parsed = tuple(Connection.parse(each) if isinstance(each, str) else each for each in connections)
        graph = replace(graph, connections=(*graph.connections, *parsed))
        instances = stack.enter_context(instantiate(graph))
        check_connections(graph, instances)
        settings = make_settings(
            instances,
            algorithm=algorithm,
            extrapolation=extrapolation,
            order=order,
            iteration_tolerance=iteration_tolerance,
            maximum_iterations=maximum_iterations,
            relaxation=relaxation,
            jacobian=jacobian,
            energy_correction=energy_correction,
            threads=threads,
        )
        _check_rates(rates or {}, instances)
        _check_positive({"tolerance of the units": unit_tolerance})
        end, macro = _experiment(graph, instances, stop, step)
        tolerances = _tolerances(tolerance, absolute_tolerance, smallest_step, largest_step, macro)
        _check_control(control, instances)
        given = by_instance(behind_connectors(inputs or {}, graph), instances)
        driven = DrivenInputs(given, instances, graph.connections, macro)
        values = {**graph.parameters, **by_instance(behind_connectors(parameters or {}, graph), instances)}
        texts = Texts(instances, graph.connections)
        exchange = _initialize(
            instances,
            graph.connections,
            values,
            driven,
            texts,
            rates or {},
            settings.extrapolation.rows,
            graph.start,
            end,
            unit_tolerance,
        )
        facts = Facts(algorithm, extrapolation, control, macro, texts=texts.changes)
        coupling = make_algorithm(exchange, settings)
        stack.callback(coupling.close)
        facts.undriven = undriven_inputs(graph, instances, {*values, *given})
        tell_undriven(facts, graph.connections)
        tell_crossed(facts, graph.connections, instances)
        tell_notes(facts, exchange, coupling.iterates, settings.extrapolation)
        history = coupling.history()
        bonds = find_bonds(exchange, exchange.connections)
        record = Record(exchange, bonds, graph.start, history.now)
        stepping = Stepping(coupling, bonds)
        controller = make_controller(control, stepping, tolerances, history, facts, end - graph.start)
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


def _check_rates(rates: Mapping[str, int], instances: Mapping[str, Instance]) -> None:
    for name, rate in rates.items():
        if name not in instances:
            raise InputError(f"there is no unit '{name}' with a rate; {meant(name, instances)}")
        if rate < 1 or rate != int(rate):
            raise InputError(f"the rate of {name} is {rate:g}; it must be a whole number of at least 1")


def _tolerances(
    relative: float | None, absolute: float | None, smallest: float | None, largest: float | None, step: float
) -> Tolerances:
    relative = _TOLERANCE if relative is None else relative
    absolute = relative if absolute is None else absolute
    _check_positive({"tolerance": relative, "absolute tolerance": absolute})
    smallest = _SMALLEST * step if smallest is None else smallest
    largest = _LARGEST * step if largest is None else largest
    if not 0.0 < smallest <= largest:
        raise InputError(f"the smallest step is {smallest:g} s and the largest {largest:g} s; 0 < smallest <= largest")
    return Tolerances(relative, absolute, smallest, largest)


def _check_positive(tolerances: Mapping[str, float | None]) -> None:
    for what, value in tolerances.items():
        if value is not None and not (value > 0.0 and math.isfinite(value)):
            raise InputError(f"the {what} is {value:g}; it must be positive and finite")


def _check_control(control: str, instances: Mapping[str, Instance]) -> None:
    if control not in CONTROLS:
        raise InputError(f"there is no control '{control}'; {meant(control, CONTROLS)}")
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
