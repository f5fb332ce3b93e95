"""String outputs: passed on at communication points, and recorded when they change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mbsfmu.base.errors import SimulationError
from mbsfmu.cosim.coupling.graph import Connection, is_text
from mbsfmu.cosim.fmus.fmu_instance import Instance


class Texts:
    """All String outputs of a system, and the connections between String variables.

    Text is not continued over a step: every algorithm hands it on at the communication points.

    Parameters
    ----------
    instances
        Instances by name.
    connections
        All connections; those of numbers are left out.

    Attributes
    ----------
    changes
        For each output by `instance.variable`, the times in s at which it changed, with the text from then on.
    """

    CHANGES: ClassVar = ("_until_now",)

    def __init__(self, instances: Mapping[str, Instance], connections: Sequence[Connection]) -> None:
        self._instances = instances
        self._connections = [each for each in connections if is_text(each, instances)]
        outputs = [
            (name, variable.name)
            for name, instance in instances.items()
            for variable in instance.variables.values()
            if variable.causality == "output" and instance.kinds[variable.name] == "String"
        ]
        self._sources = list(dict.fromkeys([*outputs, *(each.source for each in self._connections)]))
        self.changes: dict[str, list[tuple[float, str]]] = {".".join(source): [] for source in self._sources}

    @property
    def _until_now(self) -> dict[str, list[tuple[float, str]]]:
        return {name: list(each) for name, each in self.changes.items()}

    @_until_now.setter
    def _until_now(self, changes: Mapping[str, Sequence[Sequence[Any]]]) -> None:
        for name, each in changes.items():
            self.changes[name][:] = [(time, text) for time, text in each]

    def read(self) -> dict[tuple[str, str], str]:
        """Return the present text of each output."""
        return {(name, variable): self._instances[name].read_text(variable) for name, variable in self._sources}

    def hand_on(self, texts: Mapping[tuple[str, str], str]) -> None:
        """Set the connected inputs to the texts of `read`."""
        for each in self._connections:
            self._instances[each.target[0]].set_start(each.target[1], texts[each.source])

    def record(self, time: float, texts: Mapping[tuple[str, str], str]) -> None:
        """Record changes up to a time in s."""
        for source, text in texts.items():
            changes = self.changes[".".join(source)]
            if not changes or changes[-1][1] != text:
                changes.append((time, text))

    def propagate(self) -> None:
        """Pass texts on at the start until nothing changes.

        Raises
        ------
        SimulationError
            When texts go round and change without end.
        """
        texts = before = self.read()
        for _ in range(len(self._connections) + 1):
            self.hand_on(texts)
            before, texts = texts, self.read()
            if texts == before:
                return
        changing = ", ".join(".".join(source) for source, text in texts.items() if text != before[source])
        raise SimulationError(f"initialization does not converge: the texts of {changing} change without end")

    def pass_on(self, time: float) -> None:
        """Read, record and hand on at a communication point in s."""
        if self._sources:
            texts = self.read()
            self.record(time, texts)
            self.hand_on(texts)
