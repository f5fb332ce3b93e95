"""A circuit: oil, and components connected at nodes; conditions on its runs, and implausible numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import Discriminator, Tag, model_validator

from hydraulics.boundaries import PressureSource, Tank
from hydraulics.component import AnyComponent, Component, HydraulicActuator, PortKind, Stage
from hydraulics.fluid import Oil
from hydraulics.pressure_valves import Check
from mbsfmu.modelling.conditions import Condition
from mbsfmu.modelling.data import Data, DataError, FrozenMap, Measured, Name, NonNegative
from mbsfmu.modelling.parameters import Role, parameter_fields
from mbsfmu.modelling.part import is_usual, unusual, unusual_numbers

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


CAVITATING = 1e4
"""Partial pressure of the air in Pa below which oil cavitates here: its bubbles are ten times as large as at
atmospheric pressure, and real oil releases dissolved air.
"""
PROOF = 2.0
"""Factor above the pressure of pumps and relief valves from which lines are in danger: hoses are tested at twice their
greatest working pressure [ISO 1402]. Overshoots of relief valves, some ten percent, stay below, and so does what a
cylinder with twice the area on its piston's side intensifies.
"""


def circuit_conditions(circuit: Circuit) -> Iterator[Condition]:
    """Yield conditions on the pressures of a circuit, and those of its components."""
    if circuit.oil.air_content > 0.0:
        yield from _cavitation(circuit)
    yield from _excess_pressure(circuit)
    for component in circuit.components:
        yield from (condition.of(component.name) for condition in component.conditions())


def _cavitation(circuit: Circuit) -> Iterator[Condition]:
    """Yield the condition of cavitation of each volume; without air such a pressure is below what it can be."""
    for node in circuit.volume_nodes:
        yield Condition(
            f"the oil at {node} cavitates",
            {f"{node}.pressure": -1.0, "oil.vapour_pressure": 1.0},
            -CAVITATING,
            lasts=True,
            extent=": its pressure falls to {value:.4g} Pa",
            advice="; real oil releases more air than the model has, and check valves from the tank keep a line filled",
            doubtful=True,
            numbers={"oil.vapour_pressure": circuit.oil.vapour_pressure},
        )


def _excess_pressure(circuit: Circuit) -> Iterator[Condition]:
    """Yield the condition of a pressure that no line withstands for each volume."""
    working = _working_pressure(circuit)
    if working is None:
        return
    component, rises, constant = working
    limit = f"pressure that {component.type} '{component.name}' allows"
    for node in circuit.volume_nodes:
        yield Condition(
            f"the pressure at {node} is above twice the {limit}",
            {f"{node}.pressure": 1.0, **{f"{component.name}.{name}": -PROOF * by for name, by in rises.items()}},
            PROOF * constant,
            lasts=True,
            extent=": it rises to {value:.4g} Pa",
            advice=", at which hoses are tested; a relief valve at that node limits what a load or a shut valve causes",
            doubtful=True,
            numbers={f"{component.name}.{name}": getattr(component, name) for name in rises},
        )


def _working_pressure(circuit: Circuit) -> tuple[Component, Mapping[str, float], float] | None:
    """Return the component that allows the highest pressure, and this as a linear function of its parameters.

    None where a pump has no limit that is known, or there are tanks alone.
    """
    reliefs = [each for each in circuit.components if isfinite(each.relieving_pressure(_numbers(each)))]
    limits: list[tuple[Component, Callable[[Mapping[str, float]], float]]] = []
    for component in circuit.components:
        highest = component.highest_pressure(_numbers(component))
        if isfinite(highest):
            limits.append((component, component.highest_pressure))
            continue
        reached = _reached(circuit, component.nodes(PortKind.THROUGH, PortKind.HELD))
        relieving = [each for each in reliefs if reached.intersection(each.nodes())]
        if not relieving:
            return None
        limits += [(each, each.relieving_pressure) for each in relieving]
    component, limit = max(limits, key=lambda each: each[1](_numbers(each[0])))
    numbers = _numbers(component)
    if not limit(numbers) > 0.0:
        return None
    least = limit(numbers)
    changes = {name: limit({**numbers, name: 2.0 * value}) - least for name, value in numbers.items() if value}
    rises = {name: change / numbers[name] for name, change in changes.items() if change}
    return component, rises, least - sum(by * numbers[name] for name, by in rises.items())


def _numbers(component: Component) -> dict[str, float]:
    """Return the parameters of a component in its data, but for tables and those that are not there."""
    values = {name: getattr(component, name) for name in parameter_fields(type(component))}
    return {name: float(value) for name, value in values.items() if isinstance(value, (int, float))}


def _reached(circuit: Circuit, nodes: tuple[str, ...]) -> set[str]:
    """Return the nodes joined with some by lines, restrictors and check valves, which no command shuts."""
    joints = [
        set(each.nodes(PortKind.THROUGH))
        for each in circuit.components
        if each.stage is Stage.LINE or isinstance(each, Check)
    ]
    found = set(nodes)
    while more := {node for joint in joints if joint & found for node in joint} - found:
        found |= more
    return found


USUAL_STARTS = 500.0, 1e9
"""Plausible range of initial pressures in Pa: least and most."""


def plausibility_warnings(circuit: Circuit, numbers: Mapping[str, float] = MappingProxyType({})) -> Iterator[str]:
    """Yield a warning for each implausible number of a circuit.

    Parameters
    ----------
    circuit
        The circuit.
    numbers
        Values by the names of its parameters that are not as in the data.
    """
    for component in circuit.components:
        yield from unusual_numbers(component, numbers)
    for node, given in circuit.initial_pressures.items():
        pressure = numbers.get(f"{node}.initial_pressure", given) if isinstance(given, float) else 0.0
        if pressure and not is_usual(pressure, USUAL_STARTS):
            yield unusual(f"initial_pressures: that of node '{node}'", pressure, "Pa", USUAL_STARTS)
    tanks = sorted((each for each in circuit.components if isinstance(each, Tank)), key=lambda each: each.pressure)
    for pump in circuit.components:
        if isinstance(pump, PressureSource) and tanks and pump.pressure < tanks[0].pressure:
            yield (
                f"{pump.type} '{pump.name}' has a pressure of {pump.pressure:g} Pa, below that of tank "
                f"'{tanks[0].name}', {tanks[0].pressure:g} Pa: oil flows into it; 1 bar is 1e5 Pa"
            )
