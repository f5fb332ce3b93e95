"""The exchange of values between instances: what each one takes, from where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mbsfmu.cosim.graph import Connection, value_map
from mbsfmu.cosim.instance import Floats, Instance, Port
from mbsfmu.variables import Variability


class Member:
    """An instance with the variables that it takes and gives.

    Parameters
    ----------
    instance
        The instance.
    entries
        Access to the inputs that are driven; it converts the values of their sources.
    outputs
        Names of the outputs that drive others or are recorded.
    source_of_entry
        For each entry, its place among the outputs of all members.
    first_output
        Place of the first output among the outputs of all members.
    """

    def __init__(
        self,
        instance: Instance,
        entries: Port,
        outputs: Sequence[str],
        source_of_entry: NDArray[np.intp],
        first_output: int,
    ) -> None:
        self.instance = instance
        self.entries = entries
        self.outputs = instance.port(outputs)
        self.source_of_entry = source_of_entry
        self.place = slice(first_output, first_output + len(outputs))
        self.applied = np.zeros(len(source_of_entry))
        """Mean value of each entry over the last step, in the unit of its source."""


class Exchange:
    """All members, and the vector of all their outputs.

    Parameters
    ----------
    instances
        Instances by name.
    connections
        Connections between outputs and inputs; those of texts are left to `Texts`.

    Attributes
    ----------
    members
        The members, in the order of the instances.
    names
        (instance, variable) of each element of the vector of outputs.
    continuous
        Whether each of them is a continuous Real variable; the others jump, and are not continued over a step.
    """

    def __init__(self, instances: Mapping[str, Instance], connections: Sequence[Connection]) -> None:
        connections = [each for each in connections if instances[each.source[0]].kinds[each.source[1]] != "String"]
        outputs: dict[str, list[str]] = {name: [] for name in instances}
        for name, instance in instances.items():
            driving = [each.source[1] for each in connections if each.source[0] == name]
            outs = [each.name for each in instance.variables.values() if each.causality == "output"]
            numeric = [each for each in outs if instance.kinds[each] != "String"]
            outputs[name] = list(dict.fromkeys([*numeric, *driving]))
        self.names = [(name, variable) for name, variables in outputs.items() for variable in variables]
        self.continuous = np.array([_is_continuous(instances[name], each) for name, each in self.names], dtype=bool)
        place = {name: index for index, name in enumerate(self.names)}
        self.members: list[Member] = []
        first = 0
        for name, instance in instances.items():
            taken = [each for each in connections if each.target[0] == name]
            sources = np.array([place[each.source] for each in taken], dtype=np.intp)
            maps = [value_map(each, instances) for each in taken]
            entries = instance.port(
                [each.target[1] for each in taken],
                np.array([each.factor for each in maps]),
                np.array([each.offset for each in maps]),
            )
            self.members.append(Member(instance, entries, outputs[name], sources, first))
            first += len(outputs[name])

    def read(self) -> Floats:
        """Return all outputs, shape (number of names,)."""
        values = np.empty(len(self.names))
        for member in self.members:
            values[member.place] = member.outputs.read()
        return values


def _is_continuous(instance: Instance, name: str) -> bool:
    return instance.kinds[name] == "Real" and instance.variables[name].variability is Variability.CONTINUOUS
