"""The equations of a circuit as pure functions of its states, inputs and parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from sys import float_info

import numpy as np

from hydraulics.answers import in_order, node_at, picked
from hydraulics.circuit import Balanced, Circuit
from hydraulics.component import Component, Space
from hydraulics.conservation import CONSERVATIONS, held_mass
from hydraulics.data import DataError
from hydraulics.fluid import ISOTHERMAL, Array, Fluid, Mixture
from hydraulics.moment import Moment
from hydraulics.parameters import oil_parameters, parameters_of
from hydraulics.quantity import Quantity, Values, belonging_to

PRESSURE_NOMINAL = 1e6
"""Usual magnitude of a pressure in Pa."""
_COMPRESSION = "pressure that oil without air would have; below zero where oil is missing"
_TORN = "pressure of oil without air, which bears tension as no real oil does"
"""What the pressure is where the oil has no air."""
_MASS = Quantity("oil.mass", "kg", description="mass of the oil in volumes, what sources and tanks hold left aside")


class CircuitEquations:
    """Pressure rates, and what the components have: rates of their states, forces, flows.

    What flows into a node, by the flows of the components, changes its pressure. The functions take arrays of numbers
    or of symbols: they do not branch on values.

    Parameters
    ----------
    circuit
        The circuit.

    Attributes
    ----------
    states
        Compressions of the nodes with a volume, or pressures where the oil has no air; and states of components.
    inputs, outputs
        Those of the components, pressures that are no states, and the mass of the oil.
    limited
        Pressures, and what else must lie within limits at the start.
    parameters
        Every physical number of the components.
    """

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self._downstream = sorted(circuit.components, key=lambda each: each.stage)
        self._upstream = sorted(circuit.components, key=lambda each: -each.stage)
        self._sources = circuit.source_nodes
        self._has_air = circuit.oil.air_content > 0.0
        self._conservation = CONSERVATIONS[circuit.oil.conserves]
        nodes = circuit.volume_nodes
        self._pressures = tuple(
            Quantity(
                f"{node}.pressure",
                "Pa",
                minimum=circuit.oil.vapour_pressure,
                nominal=PRESSURE_NOMINAL,
                description="pressure" if self._has_air else _TORN,
            )
            for node in nodes
        )
        self._gas_pressures = tuple(Quantity(f"{node}.gas_pressure", "Pa") for node in nodes)
        compressions = tuple(
            Quantity(f"{node}.compression", "Pa", nominal=PRESSURE_NOMINAL, description=_COMPRESSION) for node in nodes
        )
        starts = (
            Quantity(f"{node}.initial_pressure", "Pa", pressure, 0.0, description="pressure at the start")
            for node, pressure in circuit.initial_pressures.items()
            if not isinstance(pressure, Balanced)
        )
        own = (quantity for each in circuit.components for quantity in parameters_of(each, each.name))
        self.parameters = (*oil_parameters(circuit.oil), *own, *starts)
        self.states = (
            *(compressions if self._has_air else self._pressures),
            *(replace(state, start=None) for state in _named(self._downstream, lambda component: component.states())),
        )
        self.inputs = _named(self._downstream, lambda component: component.inputs())
        self.outputs = (
            *_named(self._upstream, lambda component: component.outputs()),
            *(self._pressures if self._has_air else ()),
            *((_MASS,) if nodes else ()),
        )
        held = (Quantity(f"{source.name}.pressure", "Pa") for source in self._sources.values() if self._has_air)
        self.limited = (*self._pressures, *held, *_named(self._downstream, lambda component: component.limited()))

    # -- functions ------------------------------------------------------------------------------------------

    def rates(self, states: Array, inputs: Array, parameters: Array) -> Array:
        """Return the rates of the states, of pressures in Pa/s [Jaiswal2021, eq. 22], shape (k,).

        What one node gives others get; see `hydraulics.conservation`.
        """
        values = self._values(states, inputs, parameters)
        inflows = self._inflows(values)
        spaces = self._spaces(values)
        fluids = [
            inflows[node] * self._slope(node, values) / self._capacity(node, spaces[node], values)
            for node in self._circuit.volume_nodes
        ]
        own: list[Array | float] = []
        for component in self._downstream:
            rates = component.rates(self._moment(component, values))
            own += in_order(component, "rates", component.states(), rates)
        return _stack([*fluids, *own])

    def evaluate_outputs(self, states: Array, inputs: Array, parameters: Array) -> Array:
        """Return the outputs, shape (number of outputs,)."""
        values = self._values(states, inputs, parameters)
        outputs: list[Array | float] = []
        inflows = cache(lambda: self._inflows(values))
        for component in self._upstream:
            now = self._moment(component, values, lambda node: inflows()[node])
            outputs += in_order(component, "evaluate_outputs", component.outputs(), component.evaluate_outputs(now))
        if self._has_air:
            outputs += [values[pressure.name] for pressure in self._pressures]
        if self._circuit.volume_nodes:
            outputs.append(self._mass(values))
        return _stack(outputs)

    def initial_states(self, parameters: Array) -> Array:
        """Return the states at the start, shape (k,)."""
        values = Values((self.parameters, parameters))
        pressures = self._initial_pressures(values)
        if (mixture := self._oil(values).mixture) is not None:
            vapour = values["oil.vapour_pressure"]
            pressures = [mixture.compression(pressure - vapour) for pressure in pressures]
        own: list[Array | float] = []
        for component in self._downstream:
            states = component.initial_states(self._first_moment(component, values))
            own += in_order(component, "initial_states", component.states(), states)
        return _stack([*pressures, *own])

    def start_limits(self, inputs: Array, parameters: Array) -> Array:
        """Return what each of `limited` is at the start, what it must exceed and may be at most, shape (3 k,).

        Pressures, where the oil has air those of sources too, must exceed the vapour pressure.
        """
        values = Values((self.inputs, inputs), (self.parameters, parameters))
        vapour = values["oil.vapour_pressure"] if self._has_air else np.asarray(self._circuit.oil.vapour_pressure)
        limits: list[Array | float] = []
        held = [self._pressure(node, values) for node in self._sources if self._has_air]
        for pressure in (*self._initial_pressures(values), *held):
            limits += [pressure, vapour, np.asarray(float_info.max)]
        for component in self._downstream:
            own = component.start_limits(self._first_moment(component, values))
            for limit in picked(component, "start_limits", component.limited(), own):
                limits += limit
        return _stack(limits)

    def start_advice(self, limited: int, parameters: Array) -> str:
        """Return what to do where one of `limited`, by its index, starts beyond limits; nothing where that is plain."""
        nodes = self._circuit.volume_nodes
        balance = self._circuit.initial_pressures[nodes[limited]] if limited < len(nodes) else None
        if not isinstance(balance, Balanced):
            return ""
        actuator = self._circuit.actuator(balance.cylinder)
        now = self._first_moment(actuator, Values((self.parameters, parameters)))
        return actuator.balance_advice(self._circuit.balanced_port(actuator), now)

    def answers(
        self, component: Component, states: Array, inputs: Array, parameters: Array
    ) -> dict[str, list[Array | float]]:
        """Return the numbers that each function of a component gives, by the function's name."""
        values = self._values(states, inputs, parameters)
        now = self._moment(component, values)
        spaces = list(component.volumes(now))
        inflows = cache(lambda: self._inflows(values))
        telling = self._moment(component, values, lambda node: inflows()[node])
        starting = self._first_moment(component, Values((self.parameters, parameters)))
        beginning = self._first_moment(component, Values((self.inputs, inputs), (self.parameters, parameters)))
        return {
            "flows": [flow.flow for flow in component.flows(now)],
            "displacements": list(component.displacements(now).values()),
            "volumes": [number for space in spaces for number in space[1:] if number is not None],
            "held_pressures": list(component.held_pressures(now).values()),
            "rates": list(component.rates(now).values()),
            "evaluate_outputs": list(component.evaluate_outputs(telling).values()),
            "initial_states": list(component.initial_states(starting).values()),
            "start_limits": [number for limit in component.start_limits(beginning).values() for number in limit],
        }

    def moving_volumes(
        self, component: Component, states: Array, inputs: Array, parameters: Array
    ) -> dict[str, tuple[Array, Array]]:
        """Return a component's volume at each of its ports in m³, and what it displaces out of there in m³/s."""
        now = self._moment(component, self._values(states, inputs, parameters))
        pushed = component.displacements(now)
        volumes: dict[str, Array] = {}
        for space in component.volumes(now):
            volumes[space.port] = volumes.get(space.port, np.asarray(0.0)) + space.volume
        return {port: (volume, pushed.get(port, np.asarray(0.0))) for port, volume in volumes.items()}

    @property
    def orderings(self) -> tuple[tuple[int, int], ...]:
        """Pairs of parameters' indices, the second of which must be greater."""
        names = [parameter.name for parameter in self.parameters]
        return tuple(
            (names.index(f"{component.name}.{smaller}"), names.index(f"{component.name}.{greater}"))
            for component in self._circuit.components
            for smaller, greater in component.orderings()
        )

    # -- what components see --------------------------------------------------------------------------------

    def _values(self, states: Array, inputs: Array, parameters: Array) -> Values:
        groups = (self.states, states), (self.inputs, inputs), (self.parameters, parameters)
        if not self._has_air:
            return Values(*groups)
        given = Values(*groups)
        mixture = self._mixture(given)
        gas = _stack([mixture.gas_pressure(states[index]) for index in range(len(self._pressures))])
        return Values(*groups, (self._gas_pressures, gas), (self._pressures, given["oil.vapour_pressure"] + gas))

    def _moment(self, component: Component, values: Values, inflow: Callable[[str], Array] | None = None) -> Moment:
        return self._seen(component, values, lambda node: self._pressure(node, values), inflow)

    def _first_moment(self, component: Component, values: Values) -> Moment:
        """Return what a component sees at the start."""
        return self._seen(component, values, lambda node: self._initial_pressure(node, values))

    def _seen(
        self,
        component: Component,
        values: Values,
        pressure: Callable[[str], Array],
        inflow: Callable[[str], Array] | None = None,
    ) -> Moment:
        owner = f"{component.type} '{component.name}'"
        later = [each.name for each in (*component.states(), *component.inputs())]
        return Moment(owner, component.name, values, component.ports(), pressure, self._oil(values), later, inflow)

    def _oil(self, values: Values) -> Fluid:
        mixture = self._mixture(values) if self._has_air else None
        vapour = values["oil.vapour_pressure"] if self._has_air else self._circuit.oil.vapour_pressure
        return Fluid(values["oil.density"], values["oil.bulk_modulus"], vapour, mixture)

    def _mixture(self, values: Values) -> Mixture:
        isothermal = self._circuit.oil.polytropic_index == ISOTHERMAL
        index = None if isothermal else values["oil.polytropic_index"]
        return Mixture(values["oil.bulk_modulus"], values["oil.air_content"], index)

    # -- nodes ----------------------------------------------------------------------------------------------

    def _slope(self, node: str, values: Values) -> Array | float:
        """Return the derivative of the state by the pressure."""
        return self._mixture(values).slope(values[f"{node}.gas_pressure"]) if self._has_air else 1.0

    def _pressure(self, node: str, values: Values) -> Array:
        if node not in self._sources:
            return values[f"{node}.pressure"]
        source = self._sources[node]
        held = source.held_pressures(self._moment(source, values))
        port = next(port for port, each in source.ports().items() if each == node)
        return held[port]

    def _gas_pressure(self, node: str, values: Values) -> Array:
        """Return what is left of a node's pressure without that of vapour, in Pa."""
        if self._has_air and node not in self._sources:
            return values[f"{node}.gas_pressure"]
        return self._pressure(node, values) - self._oil(values).vapour_pressure

    def _inflows(self, values: Values) -> dict[str, Array]:
        """Sum up the flows into each node in m³/s, as volumes at the node's pressure."""
        nodes = (*self._circuit.volume_nodes, *self._sources)
        inflows: dict[str, Array] = {node: np.asarray(0.0) for node in nodes}
        oil = self._oil(values)
        volumes = {node: self._conservation.flowing_volume(oil, self._gas_pressure(node, values)) for node in nodes}
        moments = [(component, self._moment(component, values)) for component in self._upstream]
        for component, now in moments:
            for flow, *ends in component.flows(now):
                origin, target = (node_at(component, "flows", end) for end in ends)
                leaving, arriving = _both_ends(flow, volumes[origin], volumes[target])
                inflows[origin] = inflows[origin] - leaving
                inflows[target] = inflows[target] + arriving
        for component, now in moments:
            for port, displaced in component.displacements(now).items():
                node = node_at(component, "displacements", port)
                growth = self._conservation.growth(now.pressure(port), _moving_walls(component, port, now))
                inflows[node] = inflows[node] + growth * displaced
        return inflows

    def _spaces(self, values: Values) -> dict[str, list[Space]]:
        """List the volumes of each node."""
        spaces: dict[str, list[Space]] = {node: [] for node in self._circuit.volume_nodes}
        for component in self._circuit.components:
            for space in component.volumes(self._moment(component, values)):
                spaces[node_at(component, "volumes", space.port)].append(space)
        return spaces

    def _capacity(self, node: str, spaces: Sequence[Space], values: Values) -> Array:
        """Return dV/dp of a node in m³/Pa [Jaiswal2021, eq. 42]."""
        compliance = self._oil(values).compliance_at(self._gas_pressure(node, values))
        return self._conservation.capacity(compliance, self._pressure(node, values), spaces)

    def _mass(self, values: Values) -> Array:
        """Return the mass of the oil in the volumes in kg."""
        oil, spaces = self._oil(values), self._spaces(values)
        masses = (
            held_mass(oil, self._pressure(node, values), self._gas_pressure(node, values), spaces[node])
            for node in self._circuit.volume_nodes
        )
        return sum(masses, start=np.asarray(0.0))

    def _initial_pressures(self, values: Values) -> list[Array]:
        return [self._initial_pressure(node, values) for node in self._circuit.volume_nodes]

    def _initial_pressure(self, node: str, values: Values) -> Array:
        if node in self._sources:
            return self._pressure(node, values)
        pressure = self._circuit.initial_pressures[node]
        if not isinstance(pressure, Balanced):
            return values[f"{node}.initial_pressure"]
        actuator = self._circuit.actuator(pressure.cylinder)
        return actuator.balanced_pressure(self._circuit.balanced_port(actuator), self._first_moment(actuator, values))


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


def _moving_walls(component: Component, port: str, now: Moment) -> Array | None:
    """Return the modulus in Pa of the walls between which something moves at a port; None where they are rigid.

    Raises
    ------
    DataError
        When there are several volumes, some with elastic walls: it is not said then which of them changes.
    """
    walls = [space.bulk_modulus for space in component.volumes(now) if space.port == port]
    if len(walls) > 1 and any(each is not None for each in walls):
        raise DataError(
            f"{component.type} '{component.name}': something moves at port '{port}', where it has {len(walls)} "
            "volumes; which of them changes is not known, so leave it one there, and make the others hoses"
        )
    return walls[0] if walls else None


def _named(
    components: Iterable[Component], quantities: Callable[[Component], Iterable[Quantity]]
) -> tuple[Quantity, ...]:
    """Return quantities of components with the components' names before theirs."""
    return tuple(belonging_to(each.name, quantity) for each in components for quantity in quantities(each))


def _stack(elements: Sequence[Array | float]) -> Array:
    """Stack scalars; there are none in a circuit whose nodes are all held by sources."""
    return np.stack(elements) if elements else np.zeros(0)
