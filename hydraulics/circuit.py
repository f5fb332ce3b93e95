"""A circuit: oil, and components joined at nodes."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Discriminator, Tag, model_validator

from hydraulics.components import (
    AnyComponent,
    Cylinder,
    DirectionalValve,
    Hose,
    Name,
    PressureSource,
    Tank,
    Throttle,
    Volume,
    ports,
)
from hydraulics.data import Data, DataError
from hydraulics.fluid import NonNegative, Oil
from hydraulics.frozen import FrozenMap


class Balanced(Data):
    """An initial pressure at which a cylinder carries its initial load; see `balanced`."""

    cylinder: Name


def balanced(cylinder: str) -> Balanced:
    """Ask for the initial pressure at which a cylinder carries its initial load, friction left aside.

    One chamber of the cylinder needs a pressure as a number; the other one, and nodes that are joined to it,
    can be balanced: p₂ = (F + p₃ A₃) / A₂ [Jaiswal2021, sect. 5].
    """
    return Balanced(cylinder=cylinder)


def _kind(pressure: Any) -> str:
    """Tell a pressure as a number from one that balances, so that errors speak of the one that was meant."""
    return "balanced" if isinstance(pressure, (Balanced, dict)) else "pressure"


InitialPressure = Annotated[
    Annotated[NonNegative, Tag("pressure")] | Annotated[Balanced, Tag("balanced")], Discriminator(_kind)
]


class Circuit(Data):
    """A hydraulic circuit. A node is held at a pressure by a source, or is a volume of oil.

    Attributes
    ----------
    oil
        The oil.
    components
        The components; nodes are the names at their ports.
    initial_pressures
        For each node with a volume, the pressure at the start in Pa, or `balanced(cylinder)`.

    Raises
    ------
    DataError
        When the components do not make a circuit; the message is one sentence.
    """

    oil: Oil
    components: tuple[AnyComponent, ...]
    initial_pressures: FrozenMap[Name, InitialPressure] = {}

    @property
    def source_nodes(self) -> dict[str, PressureSource | Tank]:
        """Nodes that a source holds at a pressure."""
        return {each.node: each for each in self.components if isinstance(each, (PressureSource, Tank))}

    @property
    def volume_nodes(self) -> tuple[str, ...]:
        """Nodes whose pressure is a state, in the order in which the components name them."""
        nodes = [node for component in self.components for node in ports(component)]
        return tuple(node for node in dict.fromkeys(nodes) if node not in self.source_nodes)

    @property
    def cylinders(self) -> tuple[Cylinder, ...]:
        """The cylinders."""
        return tuple(each for each in self.components if isinstance(each, Cylinder))

    @model_validator(mode="after")
    def _is_circuit(self) -> Self:
        self._check_names()
        self._check_nodes()
        self._check_initial_pressures()
        return self

    def _check_names(self) -> None:
        if not self.components:
            raise DataError("a circuit needs at least one component")
        names = [component.name for component in self.components]
        for name in names:
            if names.count(name) > 1:
                raise DataError(f"the name '{name}' is given to more than one component")
            if name == "oil":
                raise DataError("the name 'oil' stands for the fluid and cannot be a component's")
            if name in self.volume_nodes:
                raise DataError(f"the name '{name}' is given to a component and to a node")

    def _check_nodes(self) -> None:
        held: set[str] = set()
        for component in self.components:
            if isinstance(component, (PressureSource, Tank)):
                if component.node in held:
                    raise DataError(f"node '{component.node}' is held at a pressure by more than one source")
                held.add(component.node)
            elif isinstance(component, (Hose, Volume, Cylinder)):
                for node in ports(component):
                    if node in self.source_nodes:
                        raise DataError(
                            f"{component.type} '{component.name}': node '{node}' is held at a pressure by "
                            f"'{self.source_nodes[node].name}' and has no volume of its own"
                        )
        filled = {each.node for each in self.components if isinstance(each, (Hose, Volume))}
        for component in self.components:
            for node in ports(component):
                if node not in filled and node not in held:
                    raise DataError(
                        f"node '{node}' of {component.type} '{component.name}' has no volume: "
                        "attach a hose or a volume to it, or a source"
                    )
            if isinstance(component, (Throttle, DirectionalValve)) and len(set(ports(component))) < len(
                ports(component)
            ):
                raise DataError(f"{component.type} '{component.name}' has two ports at the same node")

    def _check_initial_pressures(self) -> None:
        nodes = self.volume_nodes
        for node in self.initial_pressures:
            if node not in nodes:
                raise DataError(
                    f"initial_pressures: there is no volume at a node '{node}'; there are volumes at {', '.join(nodes)}"
                )
        cylinders = {cylinder.name: cylinder for cylinder in self.cylinders}
        for node in nodes:
            if node not in self.initial_pressures:
                raise DataError(f"initial_pressures: the pressure at node '{node}' is missing")
            pressure = self.initial_pressures[node]
            if not isinstance(pressure, Balanced):
                continue
            if pressure.cylinder not in cylinders:
                raise DataError(
                    f"initial_pressures: node '{node}' is to balance '{pressure.cylinder}', "
                    f"which is no cylinder; cylinders are {', '.join(cylinders) or 'none'}"
                )
            cylinder = cylinders[pressure.cylinder]
            numbers = [
                chamber
                for chamber in (cylinder.piston, cylinder.rod)
                if not isinstance(self.initial_pressures.get(chamber), (Balanced, type(None)))
            ]
            if len(numbers) != 1:
                raise DataError(
                    f"initial_pressures: to balance cylinder '{cylinder.name}', one of its nodes "
                    f"'{cylinder.piston}' and '{cylinder.rod}' must have a number and the other one not"
                )
