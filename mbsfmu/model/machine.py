"""Machine data of a run or inside an FMU, and what there is to say of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from mbsfmu.io.signals import AnySignal
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.model_data import TURN, AnySystem, ModelData, angle_in_degrees, joint_angle
from mbsfmu.model.system_kinds import kind_of
from mbsfmu.modelling import Condition, Data, DataError


@dataclass(frozen=True)
class Machine:
    """Systems as data, with their parameter values in a run.

    Attributes
    ----------
    name
        Name of the model, or of the one system that ran alone.
    systems
        Mechanisms, circuits and blocks by name.
    connections
        Pairs of `system.variable`, source and target.
    signals
        Signals by the input that follows them, as `system.variable`.
    values
        Values of parameters by `system.variable`; others are as in the data.
    """

    name: str
    systems: Mapping[str, AnySystem]
    connections: tuple[tuple[str, str], ...] = ()
    signals: Mapping[str, AnySignal] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, model: ModelData, system: str | None = None) -> Self:
        """Return the machine of a run of a model, or of one of its systems."""
        if system is None:
            return cls(model.name, model.systems, model.connections, model.signals)
        return cls(f"{model.name}.{system}", {system: model.systems[system]}, (), model.signals)

    def beside(self, other: Machine, names: Mapping[str, str]) -> Self:
        """Return this machine combined with another one, whose systems get new names."""

        def moved(reference: str) -> str:
            system, _, variable = reference.partition(".")
            return f"{names[system]}.{variable}"

        return replace(
            self,
            systems={**self.systems, **{names[name]: system for name, system in other.systems.items()}},
            connections=(*self.connections, *((moved(source), moved(target)) for source, target in other.connections)),
            signals={**self.signals, **{moved(name): signal for name, signal in other.signals.items()}},
            values={**self.values, **{moved(name): value for name, value in other.values.items()}},
        )

    def split(self, reference: str) -> tuple[str, str]:
        """Return the system, whose name may contain dots, and the variable of `system.variable`."""
        owners = [name for name in self.systems if reference.startswith(f"{name}.")]
        owner = max(owners, key=len, default=reference.partition(".")[0])
        return owner, reference[len(owner) + 1 :]

    def with_values(self, values: Mapping[str, float]) -> Self:
        """Return the same with other parameter values."""
        return replace(self, values=values)


_FORM = 1
"""Version of the file's content."""

Ends = tuple[str, str]
"""An FMU and one of its variables."""


@dataclass(frozen=True)
class Carried:
    """The machine of an FMU.

    Attributes
    ----------
    machine
        Its systems, with the values of parameters that it starts with.
    alone
        The one system that the FMU is, whose variables have no system in their names; None of a unit of the whole.
    """

    machine: Machine
    alone: str | None = None

    def text(self) -> str:
        """Return it as JSON."""
        machine = self.machine
        own = {name: each for name, each in machine.signals.items() if name.partition(".")[0] in machine.systems}
        model = ModelData(name="machine", systems=machine.systems, connections=machine.connections, signals=own)
        document = {"mbsfmu": _FORM, "alone": self.alone, "model": model.to_dict(), "values": dict(machine.values)}
        return json.dumps(document)

    @classmethod
    def read(cls, text: str) -> Carried | None:
        """Return the data written by `text`; None for a foreign file of the same name.

        Raises
        ------
        DataError
            When it has parts of a user's own that are not loaded.
        """
        try:
            document: Any = json.loads(text)
        except ValueError:
            return None
        if not isinstance(document, dict) or document.get("mbsfmu") != _FORM:
            return None
        model = ModelData.from_dict(document["model"])
        return cls(Machine.of(model).with_values(document["values"]), document["alone"])

    def systems(self, unit: str) -> dict[str, str]:
        """Return the names of its systems among those of several FMUs, by their own names."""
        return {name: unit if name == self.alone else f"{unit}.{name}" for name in self.machine.systems}


def followed_inside(text: str, inputs: Collection[str]) -> set[str]:
    """Return the inputs of an FMU that follow internal signals, from its machine data."""
    try:
        document: Any = json.loads(text)
        names = [name.partition(".") for name in document["model"]["signals"]]
    except (ValueError, KeyError, TypeError):
        return set()
    # In a unit of the whole a variable has its system in its name where another system has one of that name.
    full = {name for parts in names if (name := "".join(parts)) in inputs}
    return full | {variable for system, _, variable in names if f"{system}.{variable}" not in full}.intersection(inputs)


def joined(
    carried: Mapping[str, Carried],
    connections: Iterable[tuple[Ends, Ends]],
    given: Mapping[Ends, Any],
    driven: Collection[Ends],
) -> Machine:
    """Return the machine of coupled FMUs.

    Parameters
    ----------
    carried
        What those FMUs that know it carry along, by their names.
    connections
        Between units: source and target.
    given
        Values that start values and parameters were set to.
    driven
        What somebody else drives, so that it does not follow its own signal.
    """
    named = {unit: each.systems(unit) for unit, each in carried.items()}

    def inside(unit: str, variable: str) -> Iterator[str]:
        """Yield the possible names of an FMU variable."""
        yield f"{unit}.{variable}"
        yield from (f"{system}.{variable}" for system in named.get(unit, {}).values() if system != unit)

    wires = [(f"{source[0]}.{source[1]}", each) for source, target in connections for each in inside(*target)]
    theirs = {each for ends in driven for each in inside(*ends)} | {target for _, target in wires}
    machine = Machine(" and ".join(carried), {})
    for unit, each in carried.items():
        machine = machine.beside(each.machine, named[unit])
    signals = {name: signal for name, signal in machine.signals.items() if name not in theirs}
    document = {name: value for ends, value in given.items() for name in inside(*ends) if name in machine.values}
    return Machine(
        machine.name, machine.systems, (*machine.connections, *wires), signals, {**machine.values, **document}
    )


def machine_of_fmus(
    texts: Mapping[str, str],
    connections: Iterable[tuple[Ends, Ends]],
    given: Mapping[Ends, Any],
    driven: Collection[Ends],
) -> Machine | None:
    """Return the machine of coupled FMUs with machine data; None if none has any.

    Raises
    ------
    DataError
        When one has parts of a user's own that are not loaded.
    """
    carried: dict[str, Carried] = {}
    for unit, text in texts.items():
        try:
            found = Carried.read(text)
        except DataError as error:
            raise DataError(f"the unit '{unit}' cannot be drawn: {error}") from None
        if found is not None:
            carried[unit] = found
    return joined(carried, connections, given, driven) if carried else None


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
