"""The equations of a circuit as pure functions of its states, inputs and parameters."""

from __future__ import annotations

from collections.abc import Iterator
from sys import float_info

import numpy as np

from hydraulics.circuit import Balanced, Circuit
from hydraulics.components import Cylinder, DirectionalValve, Hose, PressureSource, Tank, Throttle, Volume
from hydraulics.cylinder import areas, end_stop_force, friction
from hydraulics.flow import orifice_flow, throttle_coefficient
from hydraulics.fluid import ISOTHERMAL, Array, Mixture, capacity
from hydraulics.parameters import initial_length, list_parameters
from hydraulics.quantity import Quantity, Values

PRESSURE_NOMINAL = 1e6
"""Usual magnitude of a pressure in Pa."""
SPOOL_NOMINAL = 10.0
"""Usual magnitude of a spool position in V."""
ROUND_OFF = 1e-6
"""Share of its stroke by which a cylinder may begin beyond it."""
_TORN = "pressure of oil without air, which bears tension as no real oil does"
"""What the pressure is where the oil has no air."""


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
        Compressions of the nodes with a volume, or pressures where the oil has no air; and spool positions.
    inputs
        Commands of valves, lengths and velocities of cylinders.
    outputs
        Forces, pressures in chambers, flows and powers.
    limited
        Pressures, and lengths of cylinders, which must lie within limits at the start.
    parameters
        Every physical number of the components.
    """

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._valves = [each for each in circuit.components if isinstance(each, DirectionalValve)]
        self._throttles = [each for each in circuit.components if isinstance(each, Throttle)]
        self._sources = [each for each in circuit.components if isinstance(each, (PressureSource, Tank))]
        self._has_air = circuit.oil.air_content > 0.0
        self._pressures = tuple(
            Quantity(
                f"{node}.pressure",
                "Pa",
                minimum=circuit.oil.vapour_pressure,
                nominal=PRESSURE_NOMINAL,
                description="pressure" if self._has_air else _TORN,
            )
            for node in circuit.volume_nodes
        )
        self._gas_pressures = tuple(Quantity(f"{node}.gas_pressure", "Pa") for node in circuit.volume_nodes)
        self.parameters = list_parameters(circuit)
        self.states = tuple(self._list_states())
        self.inputs = tuple(self._list_inputs())
        self.outputs = tuple(self._list_outputs())
        lengths = (Quantity(f"{cylinder.name}.length", "m") for cylinder in circuit.cylinders)
        held = (Quantity(f"{source.name}.pressure", "Pa") for source in self._sources if self._has_air)
        self.limited = (*self._pressures, *held, *lengths)

    def _list_states(self) -> Iterator[Quantity]:
        if self._has_air:
            for node in self._circuit.volume_nodes:
                meaning = "pressure that oil without air would have; below zero where oil is missing"
                yield Quantity(f"{node}.compression", "Pa", nominal=PRESSURE_NOMINAL, description=meaning)
        else:
            yield from self._pressures
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
            yield Quantity(
                f"{throttle.name}.flow", "m3/s", description="flow from inlet to outlet, by the volume upstream"
            )
        for valve in self._valves:
            yield Quantity(f"{valve.name}.flow_a", "m3/s", description="flow out of port a, by the volume upstream")
            yield Quantity(f"{valve.name}.flow_b", "m3/s", description="flow out of port b, by the volume upstream")
        for source in self._sources:
            yield Quantity(
                f"{source.name}.flow", "m3/s", description="flow into the circuit, by the volume at the source"
            )
            yield Quantity(f"{source.name}.power", "W", description="power into the circuit")
        if self._has_air:
            yield from self._pressures

    # -- functions ------------------------------------------------------------------------------------------

    def rates(self, states: Array, inputs: Array, parameters: Array) -> Array:
        """Return the rates of the states in Pa/s and V/s [Jaiswal2021, eqs. 22 and 27], shape (k,).

        What one node gives of oil with its air, others get; see `hydraulics.fluid`.
        """
        values = self._values(states, inputs, parameters)
        inflows = self._inflows(values)
        fluids = [
            inflows[node] * self._slope(node, values) / self._capacity(node, values)
            for node in self._circuit.volume_nodes
        ]
        spools = []
        for valve in self._valves:
            limit = values[f"{valve.name}.command_limit"]
            command = np.maximum(np.minimum(values[f"{valve.name}.command"], limit), -limit)
            spools.append((command - values[f"{valve.name}.spool"]) / values[f"{valve.name}.time_constant"])
        return _stack([*fluids, *spools])

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
            outputs += self._valve_flows(valve, values)
        for source in self._sources:
            flow = -inflows[source.node]
            outputs += [flow, flow * values[f"{source.name}.pressure"]]
        if self._has_air:
            outputs += [values[pressure.name] for pressure in self._pressures]
        return _stack(outputs)

    def initial_states(self, parameters: Array) -> Array:
        """Return the states at the start in Pa and V, shape (k,)."""
        values = Values((self.parameters, parameters))
        pressures = self._initial_pressures(values)
        if self._has_air:
            oil, vapour = self._oil(values), values["oil.vapour_pressure"]
            pressures = [oil.compression(pressure - vapour) for pressure in pressures]
        return _stack([*pressures, *(values[f"{valve.name}.initial_spool"] for valve in self._valves)])

    def start_limits(self, inputs: Array, parameters: Array) -> Array:
        """Return what each of `limited` is at the start, what it must exceed and may be at most, shape (3 k,).

        Pressures, where the oil has air those of sources too, must exceed the vapour pressure; cylinders begin
        within their stroke, but for round-off.
        """
        values = Values((self.inputs, inputs), (self.parameters, parameters))
        vapour = values["oil.vapour_pressure"] if self._has_air else np.asarray(self._circuit.oil.vapour_pressure)
        limits: list[Array] = []
        held = [values[f"{source.name}.pressure"] for source in self._sources if self._has_air]
        for pressure in (*self._initial_pressures(values), *held):
            limits += [pressure, vapour, np.asarray(float_info.max)]
        for cylinder in self._circuit.cylinders:
            stroke = values[f"{cylinder.name}.stroke"]
            shortest, slack = values[f"{cylinder.name}.retracted_length"], ROUND_OFF * stroke
            limits += [values[f"{cylinder.name}.length"], shortest - slack, shortest + stroke + slack]
        return _stack(limits)

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
        groups = (self.states, states), (self.inputs, inputs), (self.parameters, parameters)
        if not self._has_air:
            return Values(*groups)
        given = Values(*groups)
        oil = self._oil(given)
        gas = _stack([oil.gas_pressure(states[index]) for index in range(len(self._pressures))])
        return Values(*groups, (self._gas_pressures, gas), (self._pressures, given["oil.vapour_pressure"] + gas))

    def _oil(self, values: Values) -> Mixture:
        isothermal = self._circuit.oil.polytropic_index == ISOTHERMAL
        index = None if isothermal else values["oil.polytropic_index"]
        return Mixture(values["oil.bulk_modulus"], values["oil.air_content"], index)

    def _slope(self, node: str, values: Values) -> Array | float:
        """Return the derivative of the state by the pressure."""
        return self._oil(values).slope(values[f"{node}.gas_pressure"]) if self._has_air else 1.0

    def _pressure(self, node: str, values: Values) -> Array:
        source = self._circuit.source_nodes.get(node)
        return values[f"{node if source is None else source.name}.pressure"]

    def _relative_volume(self, node: str, values: Values) -> Array:
        """Return the volume of oil with its air at a node's pressure by that of the oil alone."""
        if node in self._circuit.source_nodes:
            gas_pressure = self._pressure(node, values) - values["oil.vapour_pressure"]
        else:
            gas_pressure = values[f"{node}.gas_pressure"]
        return self._oil(values).relative_volume(gas_pressure)

    def _inflows(self, values: Values) -> dict[str, Array]:
        """Sum up the flows into each node in m³/s, as volumes at the node's pressure."""
        nodes = (*self._circuit.volume_nodes, *self._circuit.source_nodes)
        inflows: dict[str, Array] = {node: np.asarray(0.0) for node in nodes}
        volumes = {node: self._relative_volume(node, values) for node in nodes} if self._has_air else {}
        for flow, origin, target in self._streams(values):
            leaving = arriving = flow
            if self._has_air:
                # Upstream the quotient is exactly one. It jumps at no flow only, so that the product does not.
                upstream = np.where(flow > 0.0, volumes[origin], volumes[target])
                leaving, arriving = (flow * (volumes[node] / upstream) for node in (origin, target))
            inflows[origin] = inflows[origin] - leaving
            inflows[target] = inflows[target] + arriving
        for cylinder in self._circuit.cylinders:
            # The moving piston makes room on one side and takes it on the other [eq. 28].
            piston, rod = self._areas(cylinder, values)
            velocity = values[f"{cylinder.name}.velocity"]
            inflows[cylinder.piston] = inflows[cylinder.piston] - piston * velocity
            inflows[cylinder.rod] = inflows[cylinder.rod] + rod * velocity
        return inflows

    def _streams(self, values: Values) -> Iterator[tuple[Array, str, str]]:
        """Yield the flow through each orifice in m³/s by the volume upstream, and the nodes between which it counts."""
        for throttle in self._throttles:
            yield self._throttle_flow(throttle, values), throttle.inlet, throttle.outlet
        for valve in self._valves:
            supplies_a = values[f"{valve.name}.spool"] > 0.0
            out_of_a, out_of_b = self._valve_flows(valve, values)
            yield np.where(supplies_a, out_of_a, 0.0), valve.supply, valve.a
            yield np.where(supplies_a, 0.0, out_of_a), valve.tank, valve.a
            yield np.where(supplies_a, 0.0, out_of_b), valve.supply, valve.b
            yield np.where(supplies_a, out_of_b, 0.0), valve.tank, valve.b

    def _throttle_flow(self, throttle: Throttle, values: Values) -> Array:
        coefficient = throttle_coefficient(
            values[f"{throttle.name}.discharge_coefficient"],
            values[f"{throttle.name}.orifice_diameter"],
            values["oil.density"],
        )
        drop = self._pressure(throttle.inlet, values) - self._pressure(throttle.outlet, values)
        return orifice_flow(coefficient, drop, values[f"{throttle.name}.laminar_pressure"])

    def _valve_flows(self, valve: DirectionalValve, values: Values) -> list[Array]:
        """Return the flows out of the ports a and b in m³/s; of each port's two edges at most one is open."""
        spool, dead_band = values[f"{valve.name}.spool"], values[f"{valve.name}.dead_band"]
        opening = np.maximum(spool - dead_band, 0.0) - np.maximum(-spool - dead_band, 0.0)
        coefficient = values[f"{valve.name}.flow_coefficient"] * opening
        supply, tank, at_a, at_b = (self._pressure(n, values) for n in (valve.supply, valve.tank, valve.a, valve.b))
        laminar = values[f"{valve.name}.laminar_pressure"]
        out_of_a = orifice_flow(coefficient, np.where(spool > 0.0, supply - at_a, at_a - tank), laminar)
        into_b = orifice_flow(coefficient, np.where(spool > 0.0, at_b - tank, supply - at_b), laminar)
        return [out_of_a, -into_b]

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

    def _capacity(self, node: str, values: Values) -> Array | float:
        """Return dV/dp of a node in m³/Pa."""
        if self._has_air:
            compliance = self._oil(values).compliance(values[f"{node}.gas_pressure"])
        else:
            compliance = 1.0 / values["oil.bulk_modulus"]
        return capacity(compliance, self._volume(node, values), self._elastic(node, values))

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

    def _initial_pressures(self, values: Values) -> list[Array]:
        return [self._initial_pressure(node, values) for node in self._circuit.volume_nodes]

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
