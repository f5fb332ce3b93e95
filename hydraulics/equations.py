"""The equations of a circuit as pure functions of its states, inputs and parameters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hydraulics.circuit import Balanced, Circuit
from hydraulics.components import Cylinder, DirectionalValve, Hose, PressureSource, Tank, Throttle, Volume
from hydraulics.cylinder import areas, end_stop_force, friction
from hydraulics.flow import orifice_flow, throttle_coefficient
from hydraulics.fluid import Array, effective_bulk_modulus
from hydraulics.parameters import initial_length, list_parameters
from hydraulics.quantity import Quantity, Values

PRESSURE_NOMINAL = 1e6
"""Usual magnitude of a pressure in Pa."""
SPOOL_NOMINAL = 10.0
"""Usual magnitude of a spool position in V."""


def _stack(elements: list[Array]) -> Array:
    """Stack scalars; there are none in a circuit whose nodes are all held by sources."""
    return np.stack(elements) if elements else np.zeros(0)


class CircuitEquations:
    """Pressure rates, spool rates, forces and flows of a circuit.

    The functions take arrays of numbers or of symbols: they do not branch on values.

    Parameters
    ----------
    circuit
        The circuit.

    Attributes
    ----------
    states
        Pressures of the nodes with a volume, and spool positions.
    inputs
        Commands of valves, lengths and velocities of cylinders.
    outputs
        Forces, pressures in chambers, flows and powers.
    parameters
        Every physical number of the components.
    """

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._valves = [each for each in circuit.components if isinstance(each, DirectionalValve)]
        self._throttles = [each for each in circuit.components if isinstance(each, Throttle)]
        self._sources = [each for each in circuit.components if isinstance(each, (PressureSource, Tank))]
        self.parameters = list_parameters(circuit)
        self.states = tuple(self._list_states())
        self.inputs = tuple(self._list_inputs())
        self.outputs = tuple(self._list_outputs())

    def _list_states(self) -> Iterator[Quantity]:
        for node in self._circuit.volume_nodes:
            yield Quantity(f"{node}.pressure", "Pa", nominal=PRESSURE_NOMINAL, description="pressure")
        for valve in self._valves:
            yield Quantity(f"{valve.name}.spool", "V", nominal=SPOOL_NOMINAL, description="spool position")

    def _list_inputs(self) -> Iterator[Quantity]:
        for valve in self._valves:
            yield Quantity(f"{valve.name}.command", "V", 0.0, description="command; saturates at its limit")
        for cylinder in self._circuit.cylinders:
            yield Quantity(f"{cylinder.name}.length", "m", initial_length(cylinder), 0.0, description="end to end")
            yield Quantity(f"{cylinder.name}.velocity", "m/s", 0.0, description="rate of the length")

    def _list_outputs(self) -> Iterator[Quantity]:
        for cylinder in self._circuit.cylinders:
            for name, unit, description in (
                ("force", "N", "force that pushes the ends apart"),
                ("pressure_piston", "Pa", "pressure on the piston's side"),
                ("pressure_rod", "Pa", "pressure on the rod's side"),
                ("friction", "N", "friction, against the velocity"),
                ("power", "W", "power given to the mechanism"),
            ):
                yield Quantity(f"{cylinder.name}.{name}", unit, description=description)
        for throttle in self._throttles:
            yield Quantity(f"{throttle.name}.flow", "m3/s", description="flow from inlet to outlet")
        for valve in self._valves:
            yield Quantity(f"{valve.name}.flow_a", "m3/s", description="flow out of port a")
            yield Quantity(f"{valve.name}.flow_b", "m3/s", description="flow out of port b")
        for source in self._sources:
            yield Quantity(f"{source.name}.flow", "m3/s", description="flow into the circuit")
            yield Quantity(f"{source.name}.power", "W", description="power into the circuit")

    # -- functions ------------------------------------------------------------------------------------------

    def rates(self, states: Array, inputs: Array, parameters: Array) -> Array:
        """Return the rates of the states in Pa/s and V/s [Jaiswal2021, eqs. 22 and 27], shape (k,)."""
        values = self._values(states, inputs, parameters)
        inflows = self._inflows(values)
        pressures = [
            self._bulk_modulus(node, values) / self._volume(node, values) * inflows[node]
            for node in self._circuit.volume_nodes
        ]
        spools = []
        for valve in self._valves:
            limit = values[f"{valve.name}.command_limit"]
            command = np.maximum(np.minimum(values[f"{valve.name}.command"], limit), -limit)
            spools.append((command - values[f"{valve.name}.spool"]) / values[f"{valve.name}.time_constant"])
        return _stack([*pressures, *spools])

    def evaluate_outputs(self, states: Array, inputs: Array, parameters: Array) -> Array:
        """Return the outputs, shape (number of outputs,)."""
        values = self._values(states, inputs, parameters)
        inflows = self._inflows(values)
        outputs: list[Array] = []
        for cylinder in self._circuit.cylinders:
            force, lost = self._force(cylinder, values)
            pressures = [self._pressure(node, values) for node in (cylinder.piston, cylinder.rod)]
            outputs += [force, *pressures, lost, force * values[f"{cylinder.name}.velocity"]]
        outputs += [self._throttle_flow(throttle, values) for throttle in self._throttles]
        for valve in self._valves:
            edges = self._edge_flows(valve, values)
            outputs += [edges["supply_a"] - edges["a_tank"], edges["supply_b"] - edges["b_tank"]]
        for source in self._sources:
            flow = -inflows[source.node]
            outputs += [flow, flow * values[f"{source.name}.pressure"]]
        return _stack(outputs)

    def initial_states(self, parameters: Array) -> Array:
        """Return the states at the start in Pa and V, shape (k,)."""
        values = Values((self.parameters, parameters))
        pressures = [self._initial_pressure(node, values) for node in self._circuit.volume_nodes]
        return _stack([*pressures, *(values[f"{valve.name}.initial_spool"] for valve in self._valves)])

    @property
    def orderings(self) -> tuple[tuple[int, int], ...]:
        """Pairs of parameters' indices, the second of which must be greater: rods are thinner than their pistons."""
        names = [parameter.name for parameter in self.parameters]
        return tuple(
            (names.index(f"{cylinder.name}.rod_diameter"), names.index(f"{cylinder.name}.piston_diameter"))
            for cylinder in self._circuit.cylinders
        )

    # -- parts ----------------------------------------------------------------------------------------------

    def _values(self, states: Array, inputs: Array, parameters: Array) -> Values:
        return Values((self.states, states), (self.inputs, inputs), (self.parameters, parameters))

    def _pressure(self, node: str, values: Values) -> Array:
        source = self._circuit.source_nodes.get(node)
        return values[f"{node if source is None else source.name}.pressure"]

    def _inflows(self, values: Values) -> dict[str, Array]:
        """Sum up the flows into each node in m³/s."""
        nodes = (*self._circuit.volume_nodes, *self._circuit.source_nodes)
        inflows: dict[str, Array] = {node: np.asarray(0.0) for node in nodes}
        for throttle in self._throttles:
            flow = self._throttle_flow(throttle, values)
            inflows[throttle.inlet] = inflows[throttle.inlet] - flow
            inflows[throttle.outlet] = inflows[throttle.outlet] + flow
        for valve in self._valves:
            for edge, flow in self._edge_flows(valve, values).items():
                origin, _, destination = edge.partition("_")
                inflows[getattr(valve, origin)] = inflows[getattr(valve, origin)] - flow
                inflows[getattr(valve, destination)] = inflows[getattr(valve, destination)] + flow
        for cylinder in self._circuit.cylinders:
            # The moving piston makes room on one side and takes it on the other [eq. 28].
            piston, rod = self._areas(cylinder, values)
            velocity = values[f"{cylinder.name}.velocity"]
            inflows[cylinder.piston] = inflows[cylinder.piston] - piston * velocity
            inflows[cylinder.rod] = inflows[cylinder.rod] + rod * velocity
        return inflows

    def _throttle_flow(self, throttle: Throttle, values: Values) -> Array:
        coefficient = throttle_coefficient(
            values[f"{throttle.name}.discharge_coefficient"],
            values[f"{throttle.name}.orifice_diameter"],
            values["oil.density"],
        )
        drop = self._pressure(throttle.inlet, values) - self._pressure(throttle.outlet, values)
        return orifice_flow(coefficient, drop, values[f"{throttle.name}.laminar_pressure"])

    def _edge_flows(self, valve: DirectionalValve, values: Values) -> dict[str, Array]:
        """Return the flow through each control edge in m³/s, named origin_destination."""
        spool, dead_band = values[f"{valve.name}.spool"], values[f"{valve.name}.dead_band"]
        opening = {
            "supply_a": np.maximum(spool - dead_band, 0.0),
            "b_tank": np.maximum(spool - dead_band, 0.0),
            "supply_b": np.maximum(-spool - dead_band, 0.0),
            "a_tank": np.maximum(-spool - dead_band, 0.0),
        }
        flows = {}
        for edge, volts in opening.items():
            origin, _, destination = edge.partition("_")
            drop = self._pressure(getattr(valve, origin), values) - self._pressure(getattr(valve, destination), values)
            coefficient = values[f"{valve.name}.flow_coefficient"] * volts
            flows[edge] = orifice_flow(coefficient, drop, values[f"{valve.name}.laminar_pressure"])
        return flows

    def _areas(self, cylinder: Cylinder, values: Values) -> tuple[Array | float, Array | float]:
        return areas(values[f"{cylinder.name}.piston_diameter"], values[f"{cylinder.name}.rod_diameter"])

    def _chamber(self, cylinder: Cylinder, node: str, values: Values) -> Array:
        """Return the volume of a chamber in m³ [eqs. 42 and 43]; beyond the end stops it stays empty.

        Eq. 43 as printed shrinks the piston's chamber when the cylinder extends, against eq. 44; with
        l₂ = l₂₀ + |s| − s₀ and l₂₀ = s₀ − l, the chamber is as long as the cylinder is beyond fully
        retracted.
        """
        piston, rod = self._areas(cylinder, values)
        extended = values[f"{cylinder.name}.length"] - values[f"{cylinder.name}.retracted_length"]
        piston_side: Array = piston * np.maximum(extended, 0.0)
        rod_side: Array = rod * np.maximum(values[f"{cylinder.name}.stroke"] - extended, 0.0)
        return piston_side if node == cylinder.piston else rod_side

    def _elastic(self, node: str, values: Values) -> list[tuple[Array, Array]]:
        """List volume and wall modulus of the hoses and chambers of a node."""
        parts = []
        for component in self._circuit.components:
            if isinstance(component, Hose) and component.node == node:
                volume = values[f"{component.name}.volume"]
            elif isinstance(component, Cylinder) and node in (component.piston, component.rod):
                volume = self._chamber(component, node, values)
            else:
                continue
            parts.append((volume, values[f"{component.name}.bulk_modulus"]))
        return parts

    def _volume(self, node: str, values: Values) -> Array:
        """Return the volume of a node in m³ [eq. 42]."""
        rigid = [
            values[f"{component.name}.volume"]
            for component in self._circuit.components
            if isinstance(component, Volume) and component.node == node
        ]
        volume: Array = np.sum(np.stack([volume for volume, _ in self._elastic(node, values)] + rigid))
        return volume

    def _bulk_modulus(self, node: str, values: Values) -> Array | float:
        oil, volume = values["oil.bulk_modulus"], self._volume(node, values)
        return effective_bulk_modulus(oil, volume, self._elastic(node, values))

    def _force(self, cylinder: Cylinder, values: Values) -> tuple[Array, Array]:
        """Return the cylinder's force [eq. 29] and the friction in it, in N."""
        name = cylinder.name
        piston, rod = self._areas(cylinder, values)
        velocity = values[f"{name}.velocity"]
        lost = friction(
            velocity,
            viscous=values[f"{name}.viscous_friction"],
            coulomb=values[f"{name}.coulomb_friction"],
            static=values[f"{name}.static_friction"],
            stribeck_velocity=values[f"{name}.stribeck_velocity"],
            smoothing_velocity=values[f"{name}.smoothing_velocity"],
        )
        stop = end_stop_force(
            values[f"{name}.length"] - values[f"{name}.retracted_length"],
            values[f"{name}.stroke"],
            velocity,
            values[f"{name}.stop_stiffness"],
            values[f"{name}.stop_damping"],
        )
        pressures = self._pressure(cylinder.piston, values) * piston - self._pressure(cylinder.rod, values) * rod
        return pressures - lost + stop, lost

    def _initial_pressure(self, node: str, values: Values) -> Array:
        pressure = self._circuit.initial_pressures[node]
        if not isinstance(pressure, Balanced):
            return values[f"{node}.initial_pressure"]
        cylinder = next(each for each in self._circuit.cylinders if each.name == pressure.cylinder)
        piston, rod = self._areas(cylinder, values)
        load = values[f"{cylinder.name}.initial_load"]
        if isinstance(self._circuit.initial_pressures[cylinder.piston], Balanced):
            return (load + values[f"{cylinder.rod}.initial_pressure"] * rod) / piston
        return (values[f"{cylinder.piston}.initial_pressure"] * piston - load) / rod
