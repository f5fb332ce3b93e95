"""Checks and preparation of a coupled run, with its messages on FMUs and connections."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mbsfmu.base.errors import InputError
from mbsfmu.base.times import check_grid, check_span, default_interval, warn_of_long_file
from mbsfmu.cosim.control.error_variables import CouplingTolerances
from mbsfmu.cosim.control.run_statistics import RunStatistics
from mbsfmu.cosim.coupling.consistent_start import guessed_inputs, initialize_values, is_loop, loop_names, sort_outputs
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData, DrivenInputs, Texts
from mbsfmu.cosim.coupling.extrapolation import Extrapolation, ends
from mbsfmu.cosim.coupling.graph import Connection, CoupledJoint, SystemGraph
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.cosim.fmus.fmu_instance import Instance, alike_messages
from mbsfmu.cosim.runs.coupling_options import TOLERANCE, CouplingOptions
from mbsfmu.modelling import closest_match
from mbsfmu.modelling.variables import Causality, forgotten_inputs

_SMALLEST, _LARGEST = 1e-3, 10.0  # of the first step, where bounds are not given


def experiment(
    graph: SystemGraph, instances: Mapping[str, Instance], stop: float | None, step: float | None
) -> tuple[float, float]:
    """Return stop time and communication step in s: as called, else as package or FMUs suggest."""
    defaults = [instance.default_experiment for instance in instances.values()]
    stops = [each for each, _ in defaults if each is not None]
    steps = [each for _, each in defaults if each is not None]
    stop = stop if stop is not None else graph.stop if graph.stop is not None else max(stops, default=None)
    suggested = min(steps, default=None) if step is None else None
    step = suggested if step is None else step
    for what, value, least in (("stop time", stop, graph.start), ("step", step, 0.0)):
        if value is None:
            raise InputError(f"no {what} is given, and no FMU suggests one")
        if not (value > least and math.isfinite(value)):
            raise InputError(f"the {what} is {value:g} s; it must be greater than {least:g} s")
    assert stop is not None
    assert step is not None
    if suggested is not None:
        step = min(step, stop - graph.start)
    check_span(graph.start, stop, step)
    return stop, step


def whole_rates(rates: Mapping[str, float] | None, instances: Mapping[str, Instance]) -> dict[str, int]:
    """Return numbers of steps in a communication step as whole ones.

    Raises
    ------
    InputError
        When one is none, or an FMU is not there.
    """
    for name, rate in (rates or {}).items():
        if name not in instances:
            raise InputError(f"there is no FMU '{name}' with a rate; {closest_match(name, instances)}")
        if rate < 1 or rate != int(rate):
            raise InputError(f"the rate of {name} is {rate:g}; it must be an integer of at least 1")
    return {name: int(rate) for name, rate in (rates or {}).items()}


def tolerances(options: CouplingOptions, step: float) -> CouplingTolerances:
    """Return the tolerances of step control, with the first step in s."""
    relative = TOLERANCE if options.tolerance is None else options.tolerance
    absolute = relative if options.absolute_tolerance is None else options.absolute_tolerance
    smallest, largest = options.smallest_step, options.largest_step
    smallest = _SMALLEST * step if smallest is None else smallest
    largest = _LARGEST * step if largest is None else largest
    if not 0.0 < smallest <= largest:
        raise InputError(f"the smallest step is {smallest:g} s and the largest {largest:g} s; 0 < smallest <= largest")
    return CouplingTolerances(relative, absolute, smallest, largest, options.absolute_tolerance is not None)


def check_control(control: str, instances: Mapping[str, Instance]) -> None:
    """Check that all FMUs take steps of different lengths where these are controlled."""
    fixed = [name for name, instance in instances.items() if not instance.takes_any_step]
    if control != "fixed" and fixed:
        raise InputError(f"{names_of(fixed)} cannot take steps of different lengths; choose control fixed")


def check_starts(
    starts: Collection[tuple[str, str]],
    followed: Collection[tuple[str, str]],
    loads: Mapping[tuple[str, str], CoupledJoint],
) -> None:
    """Check that start values are not those of inputs that signals or joints set from the start on.

    Parameters
    ----------
    starts
        What has a start value, as (instance, variable).
    followed
        Inputs that follow signals.
    loads
        Joints by the inputs that they drive.

    Raises
    ------
    InputError
        When one has no effect.
    """
    for end in starts:
        if end in loads:
            raise InputError(
                f"the start value of {'.'.join(end)} has no effect: the joint {loads[end]} drives it; a load beside "
                "the joint is another input of the FMU"
            )
        if end in followed:
            raise InputError(f"the start value of {'.'.join(end)} has no effect: a signal drives it from the start on")


def check_connected_starts(
    starts: Collection[tuple[str, str]], connections: Sequence[Connection], exchange: CouplingData
) -> None:
    """Check that start values are not those of inputs or parameters that connections set at the start.

    Start values of inputs in an algebraic loop that FMUs declare have an effect: its solution begins there; so have
    those of FMUs that are initialized before values of others reach them. An array may be given whole where connections
    drive some of its elements.

    Parameters
    ----------
    starts
        What the call gives a start value, as (instance, variable).
    connections, exchange
        All connections, and the instances with them.

    Raises
    ------
    InputError
        When one is.
    """
    at_once = {each.instance.name for each in exchange.members if not each.instance.has_initialization_mode}
    driven = {each.target: each for each in connections if each.target in starts and each.target[0] not in at_once}
    guessed = guessed_inputs(exchange) if driven else set()
    whole = {
        (member.instance.name, element)
        for member in exchange.members
        for elements in (member.instance.arrays.values() if driven else ())
        if any(
            (member.instance.name, each) in starts and (member.instance.name, each) not in driven for each in elements
        )
        for element in elements
    }
    for end, connection in driven.items():
        if end not in guessed | whole:
            raise InputError(
                f"{'.'.join(end)} cannot be given a start value: the connection {connection} drives it from the start "
                "on"
            )


def row_interval(
    options: CouplingOptions, grid: tuple[float, float, float], columns: int, in_memory: bool
) -> float | None:
    """Return the interval of rows in s, None for none; where none is asked for, memory keeps what plots can show.

    Parameters
    ----------
    options
        Of the run.
    grid
        Start, stop time and communication step in s.
    columns
        Numbers in a row.
    in_memory
        Whether rows stay in memory; a file that is written as the run goes on has all of them, which is told.
    """
    start, stop, step = grid
    if options.record_interval is not None or options.record_every > 1:
        return options.record_interval
    where = "the coupled run", start, stop, step, columns, "--record-interval, in Python record_interval,"
    if not in_memory:
        warn_of_long_file(*where)
        return None
    interval = default_interval(*where)
    return None if interval == step else interval


def check_size(
    options: CouplingOptions, grid: tuple[float, float, float], interval: float | None, columns: int | None
) -> None:
    """Check that a run with steps of one length has a possible number of them, and that its rows can be held.

    Parameters
    ----------
    options
        Of the run.
    grid
        Start, stop time and communication step in s.
    interval
        Of rows in s, at least; None for none.
    columns
        How many there are in memory beside the times; None where rows go to a file.
    """
    start, stop, step = grid
    check_span(start, stop, step)
    if options.control != "fixed":
        return
    check_grid(start, stop, step, 0)
    if columns is not None:
        row = max(step * options.record_every, interval or 0.0)
        check_grid(start, stop, min(row, stop - start), 1 + columns)


def initialize(
    instances: Mapping[str, Instance],
    connections: Sequence[Connection],
    parameters: Mapping[tuple[str, str], Any],
    given: Collection[tuple[str, str]],
    driven: DrivenInputs,
    texts: Texts,
    rates: Mapping[str, int],
    rows: int,
    start: float,
    stop: float,
    unit_tolerance: float | None,
) -> CouplingData:
    """Bring all instances into step mode; connections to parameters count for the start only.

    Errors as for `check_connected_starts`, of the parameters that are given by the call.
    """
    with alike_messages(len(instances)):
        for instance in instances.values():
            instance.setup(start, stop, unit_tolerance)
        for (name, variable), value in parameters.items():
            instances[name].set_start(variable, value)
        for instance in instances.values():
            instance.enter_initialization()
        exchange = CouplingData(instances, connections, driven)
        check_connected_starts(given, connections, exchange)
        initialize_values(exchange, start)
        texts.propagate()
        for instance in instances.values():
            instance.exit_initialization()

    def lasts(connection: Connection) -> bool:
        instance, variable = connection.target
        return instances[instance].variables[variable].causality is Causality.INPUT

    return CouplingData(instances, [each for each in connections if lasts(each)], driven, rates, rows)


logger = logging.getLogger(__name__)

_UNDRIVEN = ": each keeps its start value, or follows a signal inside its FMU"
_EFFORTS = ("N", "N.m")
_MOTIONS = ("m", "m/s", "rad", "rad/s")
_APART = 0.5  # of the larger of what an input was given and what its source has become
_GROWING = ", and may grow where inputs are extrapolated"


def report_undriven(
    statistics: RunStatistics, connections: Sequence[Connection], given: Collection[tuple[str, str]]
) -> None:
    """Warn of inputs without a connection; an FMU may have an internal signal for them.

    Of a component whose other variables are connected, such as a cylinder without its velocity, it mostly is one.

    Parameters
    ----------
    statistics
        Know what nobody drives, and take what is told.
    connections
        The connections.
    given
        Inputs and parameters that have a value or a signal, as unit and variable.
    """
    driven = {".".join(end) for end in (*given, *(each.target for each in connections))}
    undriven = forgotten_inputs(statistics.undriven, driven)
    components = {_component(".".join(end)) for each in connections for end in (each.source, each.target)}
    forgotten = [name for name in undriven if _component(name) in components]
    usual = [name for name in undriven if name not in forgotten]
    if forgotten:
        parts = names_of(sorted({_component(name) for name in forgotten}))
        statistics.warn(
            f"nothing drives {names_of(forgotten)}, though other variables of {parts} are connected{_UNDRIVEN}"
        )
    if usual:
        logger.info("nothing drives %s%s", names_of(usual), _UNDRIVEN)


def report_crossed(
    statistics: RunStatistics, connections: Sequence[Connection], instances: Mapping[str, Instance]
) -> None:
    """Warn of components whose efforts and motions are cross-connected, such as those of two cylinders.

    Component g pushes component t, but is moved by another one that is pushed by someone else. With FMUs of a stranger
    it may be meant, as in controllers that are coupled.

    Parameters
    ----------
    statistics
        Take what is told.
    connections
        The connections.
    instances
        The FMUs by name.
    """
    pushes: set[tuple[str, str]] = set()
    moved: dict[tuple[str, str], list[str]] = {}
    for each in connections:
        unit = instances[each.source[0]].variables[each.source[1]].unit
        source, target = (_component(".".join(end)) for end in (each.source, each.target))
        if unit in _EFFORTS:
            pushes.add((source, target))
        elif unit in _MOTIONS:
            moved.setdefault((target, source), []).append(str(each))
    pushed = {target for _, target in pushes}
    for (pusher, mover), lines in moved.items():
        own = [target for source, target in sorted(pushes) if source == pusher]
        if own and mover in pushed and mover not in own:
            statistics.warn(
                f"{pusher} pushes {names_of(own)}, but is moved by {mover}, which something else pushes: "
                f"{names_of(lines)}; are connections crossed?"
            )


def _component(name: str) -> str:
    """Return the FMU with the component that a variable belongs to: `circuit.cylinder` of `circuit.cylinder.force`."""
    return name.rpartition(".")[0]


def report_notes(
    statistics: RunStatistics, exchange: CouplingData, iterates: bool, extrapolation: Extrapolation, corrects: bool
) -> None:
    """Report the features that FMUs lack for the chosen algorithm; `corrects` tells of a linear correction."""
    extrapolates = extrapolation not in (Extrapolation.ZERO, Extrapolation.ADAPTIVE)
    if not iterates and not corrects:
        for group in _loops(exchange):
            statistics.warn(
                f"{loop_names(exchange, group)} make an algebraic loop: it was solved at the start, but goes "
                f"round with the delay of a step{_GROWING if extrapolates else ''}; fixed-point or newton "
                "solve it in every step, --linear-correction (linear_correction=True) without repeated ones"
            )
    if extrapolation is Extrapolation.DERIVATIVES:
        missing = exchange.find_rates()
        if missing:
            statistics.warn(f"{names_of(missing)} give no derivatives by time: slopes are taken from the last steps")
    if extrapolates:
        holding = [member for member in exchange.members if len(member.sources) and not member.instance.interpolates]
        if holding:
            names = names_of([member.instance.name for member in holding])
            statistics.notes.append(
                f"{names} cannot interpolate inputs, and holds their mean over each step"
                f"{'' if corrects else _order(holding)}"
            )
            logger.info("%s", statistics.notes[-1])


def _loops(exchange: CouplingData) -> Iterator[list[int]]:
    """Yield the algebraic loops, by the columns of their outputs."""
    dependencies = {member.instance.name: member.instance.dependencies for member in exchange.members}
    known = {name: {variable: needed or () for variable, needed in each.items()} for name, each in dependencies.items()}
    for group in sort_outputs(exchange, known):
        if is_loop(exchange, group, known):
            yield group


def loop_notes(exchange: CouplingData) -> list[str]:
    """Return messages on inconsistent algebraic loops: inputs differ from the resulting outputs.

    What goes round with a delay and a gain beyond one changes its sign or its size from step to step; what is solved,
    or settles, changes by what the step does.

    Parameters
    ----------
    exchange
        The members, after a step.
    """
    notes = []
    for group in _loops(exchange):
        apart = max(_distances(exchange, group), key=lambda each: each.share)
        if apart.share > _APART:
            notes.append(
                f"the algebraic loop of {loop_names(exchange, group)} has come apart: in the last step {apart.target} "
                f"ran to {apart.given:.3g}, and {apart.source} has become {apart.wanted:.3g}; what is exchanged once a "
                "step grows there, and the results are wrong: fixed-point or newton solve the loop in every step"
            )
    return notes


class _Distance(NamedTuple):
    """How far an input of a loop was from what its source has become, at the end of the last step."""

    share: float
    target: str
    source: str
    given: float
    wanted: float


def _distances(exchange: CouplingData, group: Collection[int]) -> Iterator[_Distance]:
    """Yield the distances of the inputs that outputs of a loop drive."""
    for member in exchange.members:
        name, reached = member.instance.name, ends(member.taken)
        for entry, source in enumerate(member.sources):
            if source in group:
                given = float(reached[entry])
                wanted = float(exchange.outputs[source] * member.factors[entry] + member.offsets[entry])
                share = abs(wanted - given) / max(abs(wanted), abs(given), sys.float_info.min)
                target = f"{name}.{member.entries.names[entry]}"
                yield _Distance(share, target, ".".join(exchange.names[source]), given, wanted)


def environment_notes(exchange: CouplingData) -> list[str]:
    """Return a message on FMUs that change the floating-point environment, if any."""
    names = [member.instance.name for member in exchange.members if member.instance.disturbs]
    if not names:
        return []
    return [
        f"{names_of(names)} changed how numbers are rounded, or what becomes of exceptions and denormal numbers "
        "(the floating-point environment); it was put back after the calls, so that other FMUs compute as ever"
    ]


def _order(holding: Sequence[CoupledInstance]) -> str:
    """Return the effect of constant inputs on which outputs depend directly, in words."""
    direct = [f"{member.instance.name}.{name}" for member in holding for name in sorted(member.direct)]
    return f"; {names_of(direct)} shows the mean too, so the coupling is of first order" if direct else ""
