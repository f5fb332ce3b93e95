"""What there is to say of a machine: of its data, and conditions on the variables of its runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from mbsfmu.io.signals import AnySignal
from mbsfmu.model.coupled import ModelData
from mbsfmu.model.machine import Machine
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.plausibility import TURN, angle_in_degrees, joint_angle
from mbsfmu.model.system_kinds import kind_of
from mbsfmu.modelling import Condition, Data

_LOGGER = logging.getLogger(__name__)


def data_remarks(machine: Machine) -> Iterator[str]:
    """Yield a sentence on each number of a machine that is hardly meant."""
    for name, data in machine.systems.items():
        prefix = f"{name}."
        numbers = {
            full.removeprefix(prefix): value for full, value in machine.values.items() if full.startswith(prefix)
        }
        for sentence in kind_of(data).diagnostics(data, numbers):
            yield f"{name}: {sentence}"
    yield from _setpoints(machine)


def model_remarks(model: ModelData) -> Iterator[str]:
    """Yield the `data_remarks` on a model with its start values."""
    yield from data_remarks(Machine.of(model).with_values(model.start))


def log_model_remarks(model: ModelData) -> None:
    """Warn of numbers in a model's data that are hardly meant."""
    for sentence in model_remarks(model):
        _LOGGER.warning("%s", sentence)


def _setpoints(machine: Machine) -> Iterator[str]:
    """Yield a sentence on each set point of a joint's angle that is probably in degrees.

    A joint that a cylinder or stops keep within a turn has no set point beyond it; that of another joint begins within
    a turn of where the joint starts.
    """
    sources = {target: source for source, target in machine.connections}
    for name, data in machine.systems.items():
        if getattr(data, "measured_unit", None) != "rad":
            continue
        system, coordinate = machine.split(sources.get(f"{name}.measured", ""))
        mechanism = machine.systems.get(system)
        measured = joint_angle(mechanism, coordinate) if isinstance(mechanism, Mechanism) else None
        if measured is None:
            continue
        start, is_limited = measured
        values = _given_values(machine, sources, f"{name}.setpoint")
        worst = max(values, key=abs, default=0.0)
        if abs(worst) > TURN and (is_limited or abs(values[0] - start) > TURN):
            yield angle_in_degrees(f"{name}: a set point of {system}.{coordinate}", worst)


def _given_values(machine: Machine, sources: Mapping[str, str], reference: str) -> list[float]:
    """Return the values that a signal, a table or a start gives an input, the first one first; else none."""
    if (signal := machine.signals.get(reference)) is not None:
        return _values_of(signal)
    system, _ = machine.split(sources.get(reference, ""))
    return (
        _entries_of(machine.systems[system])
        if system in machine.systems
        else [value for name, value in machine.values.items() if name == reference]
    )


def _values_of(signal: AnySignal) -> list[float]:
    """Return the values of a signal at its times, and in between where it may be larger."""
    times = [time for time in signal.events if abs(time) < float("inf")] or [0.0]
    last = max(times)
    inner = [last * share / 32.0 for share in range(33)]
    return [signal.after(0.0), *(each(time) for time in (*times, *inner) for each in (signal.before, signal.after))]


def _entries_of(data: Data) -> list[float]:
    """Return the entries of a table block; of other blocks none."""
    points, rows = getattr(data, "points", ()), getattr(data, "values", ())
    return [*(float(point[-1]) for point in points), *(float(value) for row in rows for value in row)]


def conditions_of(machine: Machine) -> Iterator[Condition]:
    """Yield the conditions of all systems, on `system.variable`; connected inputs have the names of their sources."""
    sources = {target: source for source, target in machine.connections}
    for name, data in machine.systems.items():
        for condition in kind_of(data).conditions(data):
            yield condition.of(name).renamed(lambda reference: sources.get(reference, reference))
