"""State of a circuit in one evaluation: contexts of components, flows into nodes, energies."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from hydraulics.component import Space
from hydraulics.component_context import ComponentContext
from hydraulics.conservation import CONSERVATIONS, NodeChange, Push, wall_energy
from hydraulics.fluid import ISOTHERMAL, Fluid, Mixture
from hydraulics.located_component import LocatedCircuit, LocatedComponent
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.quantity import NamedValues


class FlowPath(NamedTuple):
    """A flow from node to node.

    Attributes
    ----------
    origin, target
        The nodes.
    amount
        In m³/s of the conserved measure, which is the same at both ends.
    """

    origin: str
    target: str
    amount: Array


class CircuitState:
    """A circuit with numbers or symbols for its states, inputs and parameters.

    Parameters
    ----------
    circuit
        The circuit with the places of its components.
    values
        States, inputs, parameters and discrete states by name, and the pressures computed from states.

    Attributes
    ----------
    upstream
        The components, actuators first.
    volume_nodes, held_nodes
        Nodes with a volume, and nodes held by sources.
    conservation
        What flows conserve.
    """

    def __init__(self, circuit: LocatedCircuit, values: NamedValues) -> None:
        self.values = values
        self.upstream = circuit.upstream
        self._circuit = circuit
        self.volume_nodes, self.held_nodes = circuit.volume_nodes, circuit.held_nodes
        self.conservation = CONSERVATIONS[circuit.oil.conserves]

    # -- what components see --------------------------------------------------------------------------------

    def moment(self, located: LocatedComponent) -> ComponentContext:
        """Return the evaluation context of a component."""
        return located.context(self.values, self.pressure, self.oil)

    def output_context(self, located: LocatedComponent) -> ComponentContext:
        """Return the evaluation context of a component's outputs, which may depend on node inflows."""
        return located.context(self.values, self.pressure, self.oil, lambda node: self.inflows[node])

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
        return self._held_pressure(node) if node in self._circuit.sources else self.values[f"{node}.pressure"]

    def _held_pressure(self, node: str) -> Array:
        source = self._circuit.sources[node]
        return source.held_pressure(node, self.moment(source))

    def gas_pressure(self, node: str) -> Array:
        """Return the gas pressure of a node in Pa: its pressure minus the vapour pressure."""
        if self.oil.mixture is not None and node not in self._circuit.sources:
            return self.values[f"{node}.gas_pressure"]
        return self.pressure(node) - self.oil.vapour_pressure

    # -- flows ----------------------------------------------------------------------------------------------

    @cached_property
    def measures(self) -> dict[str, Array | None]:
        """Volume of the conserved measure of flow at each node; None if it is independent of pressure."""
        nodes = (*self.volume_nodes, *self.held_nodes)
        return {node: self.conservation.flowing_volume(self.oil, self.gas_pressure(node)) for node in nodes}

    @cached_property
    def streams(self) -> tuple[FlowPath, ...]:
        """The flows of all components."""
        measures, streams = self.measures, list[FlowPath]()
        reciprocals = {node: None if measure is None else 1.0 / measure for node, measure in measures.items()}
        for located in self.upstream:
            for flow, *ends in located.component.flows(self.moment(located)):
                origin, target = (located.node("flows", end) for end in ends)
                streams.append(FlowPath(origin, target, _amount(flow, reciprocals[origin], reciprocals[target])))
        return tuple(streams)

    @cached_property
    def pushes(self) -> tuple[Push, ...]:
        """The displacements by moving walls of all components."""
        pushes: list[Push] = []
        for located in self.upstream:
            now = self.moment(located)
            for port, displaced in located.component.displacements(now).items():
                node = located.node("displacements", port)
                spaces = tuple(space for space in located.component.volumes(now) if space.port == port)
                growth = self.conservation.growth(now.pressure(port), located.walls(port, spaces))
                pushes.append(Push(located.name, node, displaced, growth, spaces))
        return tuple(pushes)

    @cached_property
    def intakes(self) -> dict[str, Array]:
        """Inflow into each node in m³/s, in the conserved measure, less what components take into their own storage."""
        intakes: dict[str, Array] = {node: np.asarray(0.0) for node in (*self.volume_nodes, *self.held_nodes)}
        for origin, target, amount in self.streams:
            intakes[origin] = intakes[origin] - amount
            intakes[target] = intakes[target] + amount
        for located in self.upstream:
            for port, uptake in located.component.uptakes(self.moment(located)).items():
                node = located.node("uptakes", port)
                intakes[node] = intakes[node] - uptake
        return intakes

    @cached_property
    def inflows(self) -> dict[str, Array]:
        """Inflow and displacement into each node, in m³/s at the density of the node."""
        inflows = {
            node: intake if (measure := self.measures[node]) is None else intake * measure
            for node, intake in self.intakes.items()
        }
        for push in self.pushes:
            inflows[push.node] = inflows[push.node] + push.growth * push.displaced
        return inflows

    # -- volumes --------------------------------------------------------------------------------------------

    @cached_property
    def spaces(self) -> dict[str, list[Space]]:
        """The volumes of each node."""
        spaces: dict[str, list[Space]] = {node: [] for node in self.volume_nodes}
        for located in self._circuit.components:
            for space in located.component.volumes(self.moment(located)):
                spaces[located.node("volumes", space.port)].append(space)
        return spaces

    def pressure_rate(self, node: str) -> Array:
        """Return the derivative of the pressure of a volume node in Pa/s [Jaiswal2021, eq. 22]."""
        compliance = self.oil.compliance_at(self.gas_pressure(node))
        return self.inflows[node] / self.conservation.capacity(compliance, self.pressure(node), self.spaces[node])

    # -- energy ---------------------------------------------------------------------------------------------

    def carried_energy(self, node: str) -> Array:
        """Return the energy that flows carry at a node in J/m³ of the conserved measure."""
        return self.conservation.carried_energy(self.oil, self.pressure(node), self.gas_pressure(node))

    def brought_energy(self, node: str) -> Array:
        """Return the energy of oil from outside in J/m³ at the density of the node."""
        carried, measure = self.carried_energy(node), self.measures[node]
        return carried if measure is None else carried / measure

    def stored_power(self, node: str) -> Array:
        """Return the derivative in W of the energy in oil and walls of a volume node."""
        pushes = [push for push in self.pushes if push.node == node]
        pressures, spaces = (self.pressure(node), self.gas_pressure(node)), self.spaces[node]
        change = NodeChange(*pressures, spaces, self.intakes[node], pushes, self.pressure_rate(node))
        return self.conservation.stored_power(self.oil, change)

    def stored_energy(self, node: str) -> Array:
        """Return the energy in oil and walls of a volume node in J."""
        pressure = self.pressure(node)
        held, walls = self.conservation.held(pressure, self.spaces[node])
        density = self.conservation.energy_density(self.oil, pressure, self.gas_pressure(node))
        return held * density + walls * wall_energy(pressure)


class StartingSnapshot(CircuitState):
    """A circuit at the start, where states and inputs may still be unknown."""

    def pressure(self, node: str) -> Array:
        """Return the initial pressure at a node in Pa, against vacuum."""
        if node in self._circuit.sources:
            return self._held_pressure(node)
        if (balanced := self._circuit.balanced.get(node)) is None:
            return self.values[f"{node}.initial_pressure"]
        return balanced.pressure(self.moment(balanced.actuator))


def _amount(flow: Array, at_origin: Array | None, at_target: Array | None) -> Array:
    """Return a flow in the conserved measure in m³/s.

    Parameters
    ----------
    flow
        In m³/s at the upstream density.
    at_origin, at_target
        Conserved measure per m³ at both ends; None if it is one.
    """
    if at_origin is None or at_target is None:
        return flow
    onward = np.maximum(flow, 0.0)
    return onward * at_origin + (flow - onward) * at_target
