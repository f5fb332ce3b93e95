"""A circuit: oil, and components connected at nodes."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Discriminator, Tag, model_validator

from hydraulics.component import AnyComponent, Component, HydraulicActuator, PortKind, Stage
from hydraulics.fluid import Oil
from mbsfmu.modelling.data import Data, DataError, Name
from mbsfmu.modelling.fields import Measured, NonNegative
from mbsfmu.modelling.frozen import FrozenMap
from mbsfmu.modelling.structure import Role

RESERVED = {"oil": "the fluid", "hydraulic_energy": "the energies of the circuit"}
"""Names that components cannot have, and what these names are used for."""


class Balanced(Data):
    """Initial pressure at which an actuator carries its initial load; see `balanced`."""

    actuator: Name


def balanced(actuator: str) -> Balanced:
    """Return an initial pressure at which a cylinder or motor carries its initial load without friction.

    One of two chambers needs a pressure as a number. The other one, and nodes connected to it without a valve, can be
    balanced: p₂ = (F + p₃ A₃) / A₂ [Jaiswal2021, sect. 5]. An actuator with one chamber can always be balanced.
    """
    return Balanced(actuator=actuator)


def _kind(pressure: Any) -> str:
    """Return the type of an initial pressure for validation: a number, or `Balanced`."""
    return "balanced" if isinstance(pressure, (Balanced, dict)) else "pressure"


InitialPressure = Annotated[
    Annotated[NonNegative, Tag("pressure")] | Annotated[Balanced, Tag("balanced")], Discriminator(_kind)
]


class Circuit(Data):
    """A hydraulic circuit. A node is either held at a pressure by a source, or has a volume of oil.

    Attributes
    ----------
    oil
        The oil.
    components
        The components; nodes are the names at their ports.
    initial_pressures
        For each node with a volume, the pressure at the start in Pa, or `balanced(actuator)`.

    Raises
    ------
    DataError
        When the components do not make a circuit; the message is one sentence.
    """

    oil: Oil
    components: tuple[AnyComponent, ...]
    initial_pressures: Annotated[FrozenMap[Name, InitialPressure], Role.PARAMETER, Measured("Pa")] = {}

    @property
    def source_nodes(self) -> dict[str, Component]:
        """Nodes held at a pressure by a source."""
        return {node: each for each in self.components for node in each.nodes(PortKind.HELD)}

    @property
    def volume_nodes(self) -> tuple[str, ...]:
        """Nodes whose pressure is a state, in the order of the components."""
        held = self.source_nodes
        nodes = dict.fromkeys(node for component in self.components for node in component.nodes())
        return tuple(node for node in nodes if node not in held)

    @property
    def actuators(self) -> tuple[HydraulicActuator, ...]:
        """Components that exchange motion and force with a mechanism."""
        return tuple(each for each in self.components if isinstance(each, HydraulicActuator) and each.moved)

    @property
    def balanced_actuators(self) -> frozenset[str]:
        """Names of the actuators whose loads determine initial pressures."""
        return frozenset(each.actuator for each in self.initial_pressures.values() if isinstance(each, Balanced))

    def balanced_port(self, actuator: HydraulicActuator) -> str:
        """Return the port of an actuator whose initial pressure balances its load.

        Raises
        ------
        DataError
            If not exactly one port is balanced.
        """
        ports, pressures, held = actuator.ports(), self.initial_pressures, self.source_nodes
        loaded = {port: ports[port] for port in actuator.loaded_ports()}
        left = [
            port
            for port, node in loaded.items()
            if node not in held and isinstance(pressures.get(node), (Balanced, type(None)))
        ]
        if len(left) != 1:
            nodes = " and ".join(f"'{node}'" for node in loaded.values())
            wanted = (
                f"its node {nodes} must have no number"
                if len(loaded) == 1
                else f"one of its nodes {nodes} must have a number and the other one not"
            )
            raise DataError(f"initial_pressures: to balance {actuator.type} '{actuator.name}', {wanted}")
        return left[0]

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
            if name in RESERVED:
                raise DataError(f"the name '{name}' stands for {RESERVED[name]} and cannot be a component's")
            if name in self.volume_nodes:
                raise DataError(f"the name '{name}' is given to a component and to a node")

    def _check_nodes(self) -> None:
        held: dict[str, Component] = {}
        for component in self.components:
            for node in component.nodes(PortKind.HELD):
                if node in held:
                    raise DataError(f"node '{node}' is held at a pressure by more than one source")
                held[node] = component
        filled = {node for component in self.components for node in component.nodes(PortKind.FILLED)}
        for component in self.components:
            thing = f"{component.type} '{component.name}'"
            for node in component.nodes(PortKind.FILLED, PortKind.CHAMBER):
                if node in held:
                    raise DataError(
                        f"{thing}: node '{node}' is held at a pressure by '{held[node].name}' "
                        "and has no volume of its own"
                    )
            for node in component.nodes():
                if node not in filled and node not in held:
                    raise DataError(f"node '{node}' of {thing} has no volume{self._missing_volume(node)}")
            through = component.nodes(PortKind.THROUGH)
            if len(set(through)) < len(through):
                raise DataError(f"{thing} has two ports at the same node")

    def _missing_volume(self, node: str) -> str:
        """Return the message on a node without a volume."""
        for each in self.components:
            if node in each.nodes(PortKind.CHAMBER):
                return (
                    f" that is always there, for the chamber of {each.type} '{each.name}' may close: attach a hose or "
                    "a volume to it, such as that of its line"
                )
        return ": attach a hose or a volume to it, or a source"

    def _in_touch(self, node: str) -> set[str]:
        """Return the volume nodes connected to a node by lines and throttles, not through sources or valves."""
        joints = [set(each.nodes(PortKind.THROUGH)) for each in self.components if each.stage is Stage.LINE]
        found, volumes = {node}, set(self.volume_nodes)
        while more := {other for joint in joints if joint & found for other in joint & volumes} - found:
            found |= more
        return found

    def _check_initial_pressures(self) -> None:
        nodes = self.volume_nodes
        for node in self.initial_pressures:
            if node not in nodes:
                known = f"volumes at {', '.join(nodes)}" if nodes else "none"
                raise DataError(f"initial_pressures: there is no volume at a node '{node}'; there are {known}")
        actuators = {actuator.name: actuator for actuator in self.actuators}
        for node in nodes:
            if node not in self.initial_pressures:
                raise DataError(f"initial_pressures: the pressure at node '{node}' is missing")
            pressure = self.initial_pressures[node]
            if not isinstance(pressure, Balanced):
                continue
            if pressure.actuator not in actuators:
                raise DataError(
                    f"initial_pressures: node '{node}' is to balance '{pressure.actuator}', "
                    f"which is no actuator; actuators are {', '.join(actuators) or 'none'}"
                )
            actuator = actuators[pressure.actuator]
            balancing = actuator.ports()[self.balanced_port(actuator)]
            if node not in self._in_touch(balancing):
                raise DataError(
                    f"initial_pressures: node '{node}' is to balance {actuator.type} '{actuator.name}', but no line "
                    f"joins it to the chamber at '{balancing}'; behind a valve or a source a pressure is one of its own"
                )
