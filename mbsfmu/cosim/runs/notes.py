"""Messages on missing features of FMUs and on connections."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from mbsfmu.cosim.control.run_statistics import RunStatistics
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.direct_loops import is_loop, loop_names, sort_outputs
from mbsfmu.cosim.coupling.extrapolation import Extrapolation, ends
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.modelling.variables import forgotten_inputs

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
