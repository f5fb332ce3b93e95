"""Machine data of coupled FMUs for animations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.graph import SystemGraph
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.modelling.measured_numbers import number_in

if TYPE_CHECKING:
    from mbsfmu.model.carried import Ends
    from mbsfmu.model.machine import Machine


@dataclass(frozen=True)
class Drawable:
    """Data for an animation of a coupled run.

    Attributes
    ----------
    texts
        What FMUs carry along, by name; nothing of those of others.
    connections
        Source and target of each connection.
    given, driven
        Values that were set at the start, and what somebody drives, as (unit, variable).
    """

    texts: Mapping[str, str]
    connections: tuple[tuple[Ends, Ends], ...]
    given: Mapping[Ends, Any]
    driven: frozenset[Ends]

    @classmethod
    def of(
        cls, graph: SystemGraph, units: Mapping[str, Instance], given: Mapping[Ends, Any], driven: Collection[Ends]
    ) -> Drawable:
        """Return the data of loaded FMUs."""
        texts = {name: unit.carried for name, unit in units.items() if unit.carried is not None}
        numbers = {ends: _number(units[ends[0]], ends[1], value) for ends, value in given.items()}
        return cls(texts, tuple((each.source, each.target) for each in graph.connections), numbers, frozenset(driven))

    def machine(self) -> Machine:
        """Return the machine that the FMUs are.

        Raises
        ------
        InputError
            When no FMU says what it is, or one has parts that are not loaded.
        """
        from mbsfmu.model.carried import machine_of_fmus  # noqa: PLC0415 - few runs are looked at

        found = machine_of_fmus(self.texts, self.connections, self.given, self.driven)
        if found is None:
            raise InputError("no FMU carries along what its bodies look like, as those of this toolkit do")
        return found


def _number(unit: Instance, variable: str, value: Any) -> Any:
    """Return a value that was set, in the unit of its variable where it is the text of a number."""
    if not isinstance(value, str) or unit.kinds.get(variable) != "Real":
        return value
    return number_in(value, unit.units[variable])
