"""A circuit at one moment: what components see of it, and what flows into its nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hydraulics.answers import node_at
from hydraulics.circuit import Balanced, Circuit
from hydraulics.component import Component, Space
from hydraulics.conservation import CONSERVATIONS
from hydraulics.data import DataError
from hydraulics.fluid import ISOTHERMAL, Array, Fluid, Mixture
from hydraulics.moment import Moment
from hydraulics.quantity import Values


class Stream(NamedTuple):
    """A flow of a component from node to node.

    Attributes
    ----------
    component
        The component.
    origin, target
        The nodes.
    leaving, arriving
        What leaves the one and arrives at the other, in m³/s by the volume there.
    """

    component: Component
    origin: str
    target: str
    leaving: Array
    arriving: Array


class Push(NamedTuple):
    """What moving walls of a component push out of a port.

    Attributes
    ----------
    component
        The component.
    node
        The node at the port.
    displaced
        In m³/s, by the volume at atmospheric pressure.
    growth
        w of the walls in which something moves.
    spaces
        The volumes of the component at the port.
    """

    component: Component
    node: str
    displaced: Array
    growth: Array | float
    spaces: tuple[Space, ...]


class Snapshot:
    """A circuit with numbers, or symbols, for all that it has at one moment.

    Parameters
    ----------
    circuit
        The circuit.
    values
        States, inputs and parameters by name, and what follows of pressures from states.

    Attributes
    ----------
    upstream
        The components, actuators first.
    """

    def __init__(self, circuit: Circuit, values: Values) -> None:
        self.values = values
        self.upstream = sorted(circuit.components, key=lambda each: -each.stage)
        self._circuit = circuit
        self._sources = circuit.source_nodes
        self._conservation = CONSERVATIONS[circuit.oil.conserves]

    # -- what components see --------------------------------------------------------------------------------

    def moment(self, component: Component) -> Moment:
        """Return what a component sees."""
        return self._seen(component)

    def telling_moment(self, component: Component) -> Moment:
        """Return what the outputs of a component see, which may depend on what flows into nodes."""
        return self._seen(component, lambda node: self.inflows[node])

    def _seen(self, component: Component, inflow: Callable[[str], Array] | None = None) -> Moment:
        owner = f"{component.type} '{component.name}'"
        later = [each.name for each in (*component.states(), *component.inputs())]
        ports = component.ports()
        return Moment(owner, component.name, self.values, ports, self.pressure, self.oil, later, inflow)

    # -- oil ------------------------------------------------------------------------------------------------

    @cached_property
    def oil(self) -> Fluid:
        """The oil."""
        data, values = self._circuit.oil, self.values
        if data.air_content == 0.0:
            return Fluid(values["oil.density"], values["oil.bulk_modulus"], data.vapour_pressure, None)
        index = None if data.polytropic_index == ISOTHERMAL else values["oil.polytropic_index"]
        mixture = Mixture(values["oil.bulk_modulus"], values["oil.air_content"], index)
        return Fluid(values["oil.density"], values["oil.bulk_modulus"], values["oil.vapour_pressure"], mixture)

    def pressure(self, node: str) -> Array:
        """Return the pressure at a node in Pa, against vacuum."""
        return self._held_pressure(node) if node in self._sources else self.values[f"{node}.pressure"]

    def _held_pressure(self, node: str) -> Array:
        source = self._sources[node]
        held = source.held_pressures(self.moment(source))
        port = next(port for port, each in source.ports().items() if each == node)
        return held[port]

    def gas_pressure(self, node: str) -> Array:
        """Return what is left of a node's pressure without that of vapour, in Pa."""
        if self.oil.mixture is not None and node not in self._sources:
            return self.values[f"{node}.gas_pressure"]
        return self.pressure(node) - self.oil.vapour_pressure

    # -- flows ----------------------------------------------------------------------------------------------

    @cached_property
    def streams(self) -> tuple[Stream, ...]:
        """The flows of all components."""
        nodes = (*self._circuit.volume_nodes, *self._sources)
        volumes = {node: self._conservation.flowing_volume(self.oil, self.gas_pressure(node)) for node in nodes}
        streams: list[Stream] = []
        for component in self.upstream:
            for flow, *ends in component.flows(self.moment(component)):
                origin, target = (node_at(component, "flows", end) for end in ends)
                leaving, arriving = _both_ends(flow, volumes[origin], volumes[target])
                streams.append(Stream(component, origin, target, leaving, arriving))
        return tuple(streams)

    @cached_property
    def pushes(self) -> tuple[Push, ...]:
        """What moving walls of all components push."""
        pushes: list[Push] = []
        for component in self.upstream:
            now = self.moment(component)
            for port, displaced in component.displacements(now).items():
                node = node_at(component, "displacements", port)
                spaces = tuple(space for space in component.volumes(now) if space.port == port)
                growth = self._conservation.growth(now.pressure(port), _moving_walls(component, port, spaces))
                pushes.append(Push(component, node, displaced, growth, spaces))
        return tuple(pushes)

    @cached_property
    def inflows(self) -> dict[str, Array]:
        """What flows into each node, as volumes at the node's pressure in m³/s."""
        nodes = (*self._circuit.volume_nodes, *self._sources)
        inflows: dict[str, Array] = {node: np.asarray(0.0) for node in nodes}
        for _, origin, target, leaving, arriving in self.streams:
            inflows[origin] = inflows[origin] - leaving
            inflows[target] = inflows[target] + arriving
        for push in self.pushes:
            inflows[push.node] = inflows[push.node] + push.growth * push.displaced
        return inflows

    # -- volumes --------------------------------------------------------------------------------------------

    @cached_property
    def spaces(self) -> dict[str, list[Space]]:
        """The volumes of each node."""
        spaces: dict[str, list[Space]] = {node: [] for node in self._circuit.volume_nodes}
        for component in self._circuit.components:
            for space in component.volumes(self.moment(component)):
                spaces[node_at(component, "volumes", space.port)].append(space)
        return spaces

    def capacity(self, node: str) -> Array:
        """Return dV/dp of a node in m³/Pa [Jaiswal2021, eq. 42]."""
        compliance = self.oil.compliance_at(self.gas_pressure(node))
        return self._conservation.capacity(compliance, self.pressure(node), self.spaces[node])


class StartingSnapshot(Snapshot):
    """A circuit where it starts, of which states, and inputs too, may not be known yet."""

    def pressure(self, node: str) -> Array:
        """Return the pressure at the start in Pa, against vacuum."""
        if node in self._sources:
            return self._held_pressure(node)
        pressure = self._circuit.initial_pressures[node]
        if not isinstance(pressure, Balanced):
            return self.values[f"{node}.initial_pressure"]
        actuator = self._circuit.actuator(pressure.actuator)
        return actuator.balanced_pressure(self._circuit.balanced_port(actuator), self.moment(actuator))


def _both_ends(flow: Array, at_origin: Array | None, at_target: Array | None) -> tuple[Array, Array]:
    """Return what leaves the origin of a flow and what arrives at its target, as volumes there in m³/s.

    Parameters
    ----------
    flow
        In m³/s, by the volume upstream.
    at_origin, at_target
        The volume that the same oil has at both ends, by any measure; None where it is the same.
    """
    if at_origin is None or at_target is None:
        return flow, flow
    # Upstream the quotient is exactly one. It jumps at no flow only, so that the product does not.
    upstream = np.where(flow > 0.0, at_origin, at_target)
    return flow * (at_origin / upstream), flow * (at_target / upstream)


def _moving_walls(component: Component, port: str, spaces: tuple[Space, ...]) -> Array | None:
    """Return the modulus in Pa of the walls between which something moves at a port; None where they are rigid.

    Raises
    ------
    DataError
        When there are several volumes, some with elastic walls: it is not said then which of them changes.
    """
    walls = [space.bulk_modulus for space in spaces]
    if len(walls) > 1 and any(each is not None for each in walls):
        raise DataError(
            f"{component.type} '{component.name}': something moves at port '{port}', where it has {len(walls)} "
            "volumes; which of them changes is not known, so leave it one there, and make the others hoses"
        )
    return walls[0] if walls else None
