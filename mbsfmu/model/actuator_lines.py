"""Checks of actuator connections: effort and motion must belong to the same part of a mechanism.

A model with wrong connections would run with wrong results: friction and displaced flow depend on the velocity,
chambers and end stops on the length, and the work of the oil is force times velocity. An effort may additionally drive
further parts, such as those of a copy of the machine, which then work without oil.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from hydraulics import Circuit
from hydraulics.component import HydraulicActuator
from mbsfmu.io.signals import AnySignal
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.reference_types import ReferenceKind, references
from mbsfmu.model.system_kinds import ModelConnections
from mbsfmu.modelling import DataError

Connections = Sequence[tuple[str, str]]
Systems = Mapping[str, Any]
_AGREEMENT = 0.1
"""Relative tolerance between position and velocity signals, for coarsely sampled ones."""


def check_actuators(system: str, circuit: Circuit, given: ModelConnections) -> None:
    """Check that the actuators of a circuit have all connections, and to which part.

    Parameters
    ----------
    system, circuit
        The circuit, and its name in the model.
    given
        Connections and signals of the model.

    Raises
    ------
    DataError
        When a line is missing or goes elsewhere, or a velocity is not the rate of its length; the sentence names them.
    """
    systems, connections, signals = given.systems, given.connections, given.signals
    _check_unmoved(system, circuit, systems, connections)
    for actuator in circuit.actuators:
        name = f"{system}.{actuator.name}"
        thing = f"{actuator.type} '{name}'"
        effort, motion = f"{name}.{actuator.effort}", [f"{name}.{each}" for each in actuator.motion]
        _check_missing(thing, effort, motion, given)
        _check_crossed(thing, effort, motion, systems, connections)
        _check_load(name, actuator, actuator.name in circuit.balanced_actuators, systems, connections)
        if len(motion) == 2 and all(each in signals for each in motion):
            _check_rate(thing, motion, [signals[each] for each in motion], given.stop_time)


def _check_unmoved(system: str, circuit: Circuit, systems: Systems, connections: Connections) -> None:
    """Refuse a machine in which data prescribe an actuator's motion, and a differently moving mechanism its load."""
    for each in circuit.components:
        if not isinstance(each, HydraulicActuator) or each.moved:
            continue
        effort = f"{system}.{each.name}.{each.effort}"
        for source, target in connections:
            if source == effort and isinstance(systems[target.partition(".")[0]], Mechanism):
                raise DataError(
                    f"{each.type} '{system}.{each.name}' drives '{target}', but its data say how it moves; leave that "
                    f"out and connect its {' and its '.join(each.motion)}"
                )


def _check_missing(thing: str, effort: str, motion: Sequence[str], given: ModelConnections) -> None:
    """Refuse an actuator without its complete motion, or whose effort drives another part."""
    driven = given.driven
    missing = [each for each in motion if each not in driven]
    pushes = any(source == effort for source, _ in given.connections)
    if missing and (len(missing) < len(motion) or pushes):
        listed = " and ".join(f"'{each}'" for each in missing)
        words = [_last(each) for each in (effort, *motion)]
        raise DataError(
            f"nothing drives {listed}, though {thing} is part of a machine: "
            f"connect its {', its '.join(words[:-1])} and its {words[-1]}"
        )


def _check_crossed(thing: str, effort: str, motion: Sequence[str], systems: Systems, connections: Connections) -> None:
    """Refuse an actuator with motion of two parts, or of one that it does not drive."""
    sources = {target: source for source, target in connections}
    moved = {each: sources[each] for each in motion if each in sources}
    if not moved:
        return
    listed = " and ".join(f"its {_last(each)} from '{source}'" for each, source in moved.items())
    if len(moved) < len(motion):
        others = " and ".join(f"its {_last(each)}" for each in motion if each not in moved)
        raise DataError(f"{thing} has {listed}, but {others} from a signal; the motion must be of one thing")
    movers = {_owner(source) for source in moved.values()}
    if len(movers) > 1:
        raise DataError(f"{thing} has {listed}; the motion must be of one thing")
    pushed = [target for source, target in connections if source == effort]
    if pushed and not movers & {mover for target in pushed for mover in _moved_with(target, systems)}:
        drives = " and ".join(f"'{target}'" for target in pushed)
        raise DataError(f"{thing} drives {drives}, but has {listed}; what it drives must be what moves it")


def _check_load(
    name: str, actuator: HydraulicActuator, balanced: bool, systems: Systems, connections: Connections
) -> None:
    """Refuse an initial load of another part than the motion, or a missing one for balanced pressures."""
    sources = {target: source for source, target in connections}
    moving = next((sources[target] for each in actuator.motion if (target := f"{name}.{each}") in sources), None)
    if moving is None or actuator.load is None:
        return
    thing, mover, load = f"{actuator.type} '{name}'", _owner(moving), f"{name}.{actuator.load}"
    given = sources.get(load)
    if given is not None and mover not in _moved_with(given, systems):
        raise DataError(
            f"{thing} has its {actuator.load} from '{given}', but its motion from '{mover}'; both must be of one thing"
        )
    if given is None and balanced and getattr(actuator, actuator.load) == 0.0 and _is_held(mover, systems):
        raise DataError(
            f"nothing gives '{load}', with which the pressures of {thing} are balanced at the start: connect "
            f"'{mover}.static_{actuator.effort}' to it, or give it a value"
        )


def _is_held(mover: str, systems: Systems) -> bool:
    """Return whether a moving part is a force that computes its load of static equilibrium."""
    system, _, name = mover.partition(".")
    data = systems[system]
    return isinstance(data, Mechanism) and any(each.name == name and each.balancing for each in data.forces)


def _check_rate(thing: str, motion: Sequence[str], signals: Sequence[AnySignal], stop_time: float) -> None:
    """Refuse a velocity signal that is not the rate of the length signal."""
    place, rate = signals
    events = {each for signal in signals for each in signal.events if 0.0 < each <= stop_time}
    times = sorted({0.0, *(events or {stop_time})})  # behind the last one they may go on for ever, unused
    by_rate = list(
        accumulate(
            (0.5 * (rate.after(one) + rate.before(other)) * (other - one) for one, other in pairwise(times)),
            initial=0.0,
        )
    )
    by_place = [0.0, *(place.before(each) - place.after(0.0) for each in times[1:])]
    far = max(max(each) - min(each) for each in (by_place, by_rate))
    off, time, moved, driven = max(
        (abs(moved - driven), time, moved, driven)
        for time, moved, driven in zip(times[1:], by_place[1:], by_rate[1:], strict=True)
    )
    if off > _AGREEMENT * far:
        raise DataError(
            f"{thing} has moved by {moved:g} at t = {time:g} s by the signal of its {_last(motion[0])}, by {driven:g} "
            f"by that of its {_last(motion[1])}; the one must be the rate of the other"
        )


def _moved_with(reference: str, systems: Systems) -> set[str]:
    """Return the names that move with a variable's owner: itself, and for a joint effort the joint's body."""
    system, _, name = _owner(reference).partition(".")
    data, found = systems[system], {_owner(reference)}
    if isinstance(data, Mechanism):
        for force in data.forces:
            joints = references(force, ReferenceKind.JOINT)
            if force.name == name and joints and not references(force, ReferenceKind.POINT):
                body = data.topology.body_of_joint(joints[0].partition(".")[0])
                found |= set() if body is None else {f"{system}.{data.topology.bodies[body].name}"}
    return found


def _owner(reference: str) -> str:
    return reference.rpartition(".")[0]


def _last(reference: str) -> str:
    return reference.rpartition(".")[2]
