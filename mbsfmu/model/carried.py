"""Machine data inside an FMU: used for animations and messages, never for computation."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mbsfmu.model.coupled import ModelData
from mbsfmu.model.machine import Machine
from mbsfmu.modelling import DataError

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
