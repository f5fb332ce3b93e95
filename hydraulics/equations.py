"""The equations of a circuit as pure functions of its states, inputs and parameters, and its energy balance.

Energy balance of a circuit: stored, supplied, delivered and dissipated energy.

Isothermal oil is barotropic: its volume v (`hydraulics.fluid`, relative to that of the oil at atmospheric pressure p_a)
is a function of its pressure p. Its internal energy is the work of compression, u = −∫ p dv from p_a, and a flow
carries the enthalpy h = u + p v, dh = v dp [L. D. Landau, E. M. Lifshitz: Fluid Mechanics, 2nd ed., 1987, §§ 2 and 6]:

    h = h_a + K_oil (1 − e) + α p_a ln(g / p_a),   or with a polytropic index  + α n / (n − 1) (r g − p_a).

A node of volumes Vᵢ contains Σ Vᵢ wᵢ (u / v) in its oil, and Σ Vᵢ (p² − p_a²) / 2 Kᵢ in its walls. If mass is
conserved, a flow rate j at p_a carries j h into its node. The rate of the node's energy is then

    Ė = Σ j h − p Σ V̇ᵢ − Σ V̇ᵢ (p − p_a)² / 2 Kᵢ.

The second term is the work on the moving walls. The third one is the error of wall work of `hydraulics.equations`:
walls newly exposed by a piston are strained without work. It counts as dissipated, and is recovered when the piston
returns. A flow from p₁ to p₂ dissipates j (h₁ − h₂), about Q Δp. If a piston keeps moving after it has closed its
chamber, the node equations create oil. Its energy beyond its work, (w − 1) p + w u / v per volume, counts as a negative
loss. If a component displaces oil into a node without a volume of its own there, the oil comes from outside, with its
energy.

Flows that conserve volume [Jaiswal2021, eq. 22] carry p Q, and dissipate Q Δp. Oil arrives without its internal energy
u / v, and leaves without it. The energy created in this way is, with the flow Vᵢ / Kᵢ ṗ into walls,

    (u / v) Σ (V̇ᵢ + Vᵢ ṗ / K) + Σ V̇ᵢ (p² − p_a²) / 2 Kᵢ,

and it counts as a negative loss, a fraction of about p / 2 K of the power through cylinders. With these terms, for
either law,

    stored + dissipated + delivered − supplied

is constant except for the integration error. A transmission line stores the energy of linear acoustics: the pressures
times the flows into it, less its friction. Flows carry enthalpy to it; the difference, a fraction p / 2 K of that
power, counts as dissipated, and is negative where the line takes up oil. The loss of a component is the power of its
flows, of its moving walls and its `work_rate`, minus the power to a mechanism, minus `energy_rate`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from sys import float_info
from typing import NamedTuple

import numpy as np

from hydraulics.circuit import Balanced, Circuit
from hydraulics.component import Component, ComponentContext, HydraulicActuator, Space
from hydraulics.fluid import ATMOSPHERIC_PRESSURE, ISOTHERMAL, Conserved, Fluid, Mixture, oil_parameters
from mbsfmu.modelling.data import Array, DataError, closest_match
from mbsfmu.modelling.parameters import NamedValues, Quantity, belonging_to, parameters_of, places
from mbsfmu.modelling.part import in_order, picked


class LocatedComponent:
    """A component with the nodes at its ports.

    Parameters
    ----------
    component
        The component.

    Attributes
    ----------
    component
        As given.
    name
        Its name.
    owner
        Type and name, for messages.
    ports
        Nodes by port.
    """

    def __init__(self, component: Component) -> None:
        self.component = component
        self.name = component.name
        self.owner = f"{component.type} '{component.name}'"
        self.ports = component.ports()

    @cached_property
    def _later(self) -> tuple[str, ...]:
        """Names of its variables, of which states and inputs are unknown during initialization."""
        return tuple(each.name for each in self.component.quantities())

    def context(
        self,
        values: NamedValues,
        pressure: Callable[[str], Array],
        oil: Fluid,
        inflow: Callable[[str], Array] | None = None,
    ) -> ComponentContext:
        """Return its evaluation context; arguments as of `ComponentContext`."""
        return ComponentContext(self.owner, self.name, values, self.ports, pressure, oil, self._later, inflow)

    def node(self, function: str, port: str) -> str:
        """Return the node at a port that a function has named.

        Raises
        ------
        DataError
            When there is no such port.
        """
        if port not in self.ports:
            raise DataError(f"{self.owner}: {function} names a port '{port}'; {closest_match(port, self.ports)}")
        return self.ports[port]

    def held_pressure(self, node: str, now: ComponentContext) -> Array:
        """Return the pressure in Pa at which a source holds a node."""
        held = self.component.held_pressures(now)
        return held[next(port for port, each in self.ports.items() if each == node)]

    def rates(self, now: ComponentContext) -> list[Array | float]:
        """Return the derivatives of its states, in their order."""
        return in_order(self.owner, "rates", self.component.states(), self.component.rates(now))

    def outputs(self, now: ComponentContext) -> list[Array | float]:
        """Return its outputs, in their order."""
        return in_order(self.owner, "evaluate_outputs", self.component.outputs(), self.component.evaluate_outputs(now))

    def event_indicators(self, now: ComponentContext) -> list[Array | float]:
        """Return its event indicators, in their order."""
        declared = self.component.event_indicators()
        return in_order(
            self.owner, "evaluate_event_indicators", declared, self.component.evaluate_event_indicators(now)
        )

    def initial_states(self, now: ComponentContext) -> list[Array | float]:
        """Return its initial states, in their order."""
        return in_order(self.owner, "initial_states", self.component.states(), self.component.initial_states(now))

    def updates(self, now: ComponentContext) -> list[Array | float]:
        """Return its discrete states after an update, in their order."""
        return in_order(self.owner, "updates", self.component.discrete_states(), self.component.updates(now))

    def initial_discrete(self, now: ComponentContext) -> list[Array | float]:
        """Return its discrete states before the first update, in their order."""
        given = self.component.initial_discrete(now)
        return in_order(self.owner, "initial_discrete", self.component.discrete_states(), given)

    def start_limits(self, now: ComponentContext) -> list[Array | float]:
        """Return for each of its limited variables the initial value, lower and upper limit, one after the other."""
        limits = picked(self.owner, "start_limits", self.component.limited(), self.component.start_limits(now))
        return [number for limit in limits for number in limit]

    def walls(self, port: str, spaces: tuple[Space, ...]) -> Array | None:
        """Return the bulk modulus in Pa of the walls around a moving part at a port; None if rigid.

        Raises
        ------
        DataError
            If there are several volumes, some with elastic walls, so that the moving one is ambiguous.
        """
        walls = [space.bulk_modulus for space in spaces]
        if len(walls) > 1 and any(each is not None for each in walls):
            raise DataError(
                f"{self.owner}: something moves at port '{port}', where it has {len(walls)} volumes; which of them "
                "changes is not known, so leave it one there, and make the others hoses"
            )
        return walls[0] if walls else None

    def delivered(self, now: ComponentContext, outputs: ComponentContext) -> Array | float:
        """Return the power in W that an actuator delivers to its mechanism; zero of others.

        Parameters
        ----------
        now, outputs
            Its evaluation contexts, the second one of outputs.
        """
        component = self.component
        if not isinstance(component, HydraulicActuator):
            return 0.0
        velocity = component.motion[-1]
        if velocity not in {each.name for each in component.inputs()}:
            return 0.0
        return component.evaluate_outputs(outputs)[component.effort] * now[velocity]


class BalancedPort:
    """A port of an actuator whose initial pressure balances its load.

    Parameters
    ----------
    actuator, port
        The actuator in its circuit, and the port.
    """

    def __init__(self, actuator: LocatedComponent, port: str) -> None:
        assert isinstance(actuator.component, HydraulicActuator)
        self.actuator, self._component, self._port = actuator, actuator.component, port

    def pressure(self, now: ComponentContext) -> Array:
        """Return the initial pressure in Pa."""
        return self._component.balanced_pressure(self._port, now)

    def advice(self, now: ComponentContext) -> str:
        """Return advice on an initial pressure outside its limits; empty if obvious."""
        return self._component.balance_advice(self._port, now)


class LocatedCircuit:
    """The components of a circuit with their places in it, worked out once.

    Parameters
    ----------
    circuit
        The circuit.

    Attributes
    ----------
    components
        In the order of the circuit.
    downstream, upstream
        Sources first, and actuators first.
    volume_nodes, held_nodes
        Nodes with a volume, and nodes held by sources.
    sources
        Sources by node.
    oil
        Data of the oil.
    """

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self.oil = circuit.oil
        self.components = tuple(LocatedComponent(each) for each in circuit.components)
        self.downstream = tuple(sorted(self.components, key=lambda each: each.component.stage))
        self.upstream = tuple(sorted(self.components, key=lambda each: -each.component.stage))
        self.volume_nodes = circuit.volume_nodes
        self._named = {each.name: each for each in self.components}
        self.sources = {node: self._named[source.name] for node, source in circuit.source_nodes.items()}
        self.held_nodes = tuple(self.sources)

    def located(self, component: Component) -> LocatedComponent:
        """Return a component with its place."""
        return self._named[component.name]

    @cached_property
    def balanced(self) -> dict[str, BalancedPort]:
        """Ports that balance the load of an actuator at the start, by node."""
        found = {}
        for node, pressure in self._circuit.initial_pressures.items():
            if isinstance(pressure, Balanced):
                actuator = self._named[pressure.actuator]
                assert isinstance(actuator.component, HydraulicActuator)
                found[node] = BalancedPort(actuator, self._circuit.balanced_port(actuator.component))
        return found


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


PRESSURE_NOMINAL = 1e6
"""Nominal value of a pressure in Pa."""
_COMPRESSION = "pressure that oil without air would have; below zero where oil is missing"
_CAVITATING = "pressure of oil without air, which bears tension as no real oil does"
"""Message on pressures of oil without air."""
_MASS = Quantity(
    "oil.mass", "kg", description="mass of the oil in volumes and lines, what sources and tanks hold left aside"
)
_SCALARS = "energy", "energy_rate", "work_rate", "stored_volume"
"""Functions of components that return one number."""
_NONE = np.zeros(0)
"""Discrete states of a circuit without any."""


class CircuitEquations:
    """Derivatives and outputs of a circuit: pressures and component states, forces, flow rates.

    The net flow into a node changes its pressure. The functions take arrays of numbers or of symbols and do not branch
    on values.

    Parameters
    ----------
    circuit
        The circuit.

    Attributes
    ----------
    states
        Compressions of the volume nodes, or pressures if the oil has no air; then states of components.
    discrete
        Discrete states of components.
    sampled
        The components that have some, each with the index of its first one.
    inputs, outputs
        Those of the components, pressures that are not states, and the oil mass.
    event_indicators
        Those of components.
    limited
        Pressures and other variables that must be within limits at the start.
    parameters
        All physical parameters of the components.
    """

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self.located = LocatedCircuit(circuit)
        downstream = [each.component for each in self.located.downstream]
        self._has_air = circuit.oil.air_content > 0.0
        nodes = circuit.volume_nodes
        self._pressures = tuple(
            Quantity(
                f"{node}.pressure",
                "Pa",
                minimum=circuit.oil.vapour_pressure,
                nominal=PRESSURE_NOMINAL,
                description="pressure" if self._has_air else _CAVITATING,
            )
            for node in nodes
        )
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
            *(replace(state, start=None) for state in _named(downstream, lambda component: component.states())),
        )
        self.discrete = _named(downstream, lambda component: component.discrete_states())
        counts = [len(component.discrete_states()) for component in downstream]
        self.sampled = tuple(
            (each, sum(counts[:index])) for index, each in enumerate(self.located.downstream) if counts[index]
        )
        self.inputs = _named(downstream, lambda component: component.inputs())
        self.outputs = (
            *_named((each.component for each in self.located.upstream), lambda component: component.outputs()),
            *(self._pressures if self._has_air else ()),
            *((_MASS,) if nodes else ()),
        )
        self.event_indicators = _named(downstream, lambda component: component.event_indicators())
        held = (Quantity(f"{source.name}.pressure", "Pa") for source in self.located.sources.values() if self._has_air)
        self.limited = (*self._pressures, *held, *_named(downstream, lambda component: component.limited()))
        computed = {}
        if self._has_air:
            gas_pressures = tuple(Quantity(f"{node}.gas_pressure", "Pa") for node in nodes)
            computed = {"gas_pressures": gas_pressures, "pressures": self._pressures}
        given = {"states": self.states, "inputs": self.inputs, "parameters": self.parameters}
        self._places = places(**given, discrete=self.discrete, **computed)

    # -- functions ------------------------------------------------------------------------------------------

    def rates(self, states: Array, inputs: Array, parameters: Array, discrete: Array = _NONE) -> Array:
        """Return the derivatives of the states, of pressures in Pa/s [Jaiswal2021, eq. 22], shape (k,).

        Flows are conserved between nodes; see `hydraulics.equations`.
        """
        now = self.snapshot(states, inputs, parameters, discrete)
        fluids = [now.pressure_rate(node) * self._slope(node, now) for node in now.volume_nodes]
        own: list[Array | float] = []
        for each in self.located.downstream:
            own += each.rates(now.moment(each))
        return _stack([*fluids, *own])

    def updates(self, states: Array, inputs: Array, parameters: Array, discrete: Array) -> Array:
        """Return the discrete states after an update of all of them, shape (d,)."""
        now = self.snapshot(states, inputs, parameters, discrete)
        return _stack([state for each, _ in self.sampled for state in each.updates(now.moment(each))])

    def evaluate_outputs(self, states: Array, inputs: Array, parameters: Array, discrete: Array = _NONE) -> Array:
        """Return the outputs, shape (number of outputs,)."""
        now = self.snapshot(states, inputs, parameters, discrete)
        outputs: list[Array | float] = []
        for each in now.upstream:
            outputs += each.outputs(now.output_context(each))
        if self._has_air:
            outputs += [now.pressure(node) for node in self._circuit.volume_nodes]
        if self._circuit.volume_nodes:
            outputs.append(self._mass(now))
        return _stack(outputs)

    def evaluate_event_indicators(self, states: Array, inputs: Array, parameters: Array, discrete: Array) -> Array:
        """Return the event indicators, shape (number of event indicators,)."""
        now = self.snapshot(states, inputs, parameters, discrete)
        return _stack([gap for each in self.located.downstream for gap in each.event_indicators(now.moment(each))])

    def initial_states(self, parameters: Array) -> Array:
        """Return the initial states, shape (k,)."""
        now = self._starting(parameters=parameters)
        pressures = [now.pressure(node) for node in self._circuit.volume_nodes]
        if (mixture := now.oil.mixture) is not None:
            pressures = [mixture.compression(pressure - now.oil.vapour_pressure) for pressure in pressures]
        own: list[Array | float] = []
        for each in self.located.downstream:
            own += each.initial_states(now.moment(each))
        return _stack([*pressures, *own])

    def initial_discrete(self, parameters: Array) -> Array:
        """Return the discrete states before the first update, shape (d,)."""
        now = self._starting(parameters=parameters)
        return _stack([state for each, _ in self.sampled for state in each.initial_discrete(now.moment(each))])

    def start_limits(self, inputs: Array, parameters: Array) -> Array:
        """Return for each of `limited` the initial value, lower and upper limit, shape (3 k,).

        Pressures must exceed the vapour pressure; with air those of sources too.
        """
        now = self._starting(inputs=inputs, parameters=parameters)
        limits: list[Array | float] = []
        for node in (*now.volume_nodes, *(now.held_nodes if self._has_air else ())):
            limits += [now.pressure(node), now.oil.vapour_pressure, np.asarray(float_info.max)]
        for each in self.located.downstream:
            limits += each.start_limits(now.moment(each))
        return _stack(limits)

    def start_advice(self, limited: int, parameters: Array) -> str:
        """Return advice on one of `limited`, by its index, that starts outside its limits; empty if obvious."""
        nodes = self.located.volume_nodes
        balanced = self.located.balanced.get(nodes[limited]) if limited < len(nodes) else None
        if balanced is None:
            return ""
        return balanced.advice(self._starting(parameters=parameters).moment(balanced.actuator))

    def answers(
        self, component: Component, states: Array, inputs: Array, parameters: Array, discrete: Array = _NONE
    ) -> dict[str, list[Array | float]]:
        """Return the names of the values of each component function, by the function's name."""
        snapshot, located = self.snapshot(states, inputs, parameters, discrete), self.located.located(component)
        now, with_outputs = snapshot.moment(located), snapshot.output_context(located)
        spaces = list(component.volumes(now))
        starting = self._starting(parameters=parameters).moment(located)
        beginning = self._starting(inputs=inputs, parameters=parameters).moment(located)
        return {
            "flows": [flow.flow for flow in component.flows(now)],
            "displacements": list(component.displacements(now).values()),
            "volumes": [number for space in spaces for number in space[1:] if number is not None],
            "held_pressures": list(component.held_pressures(now).values()),
            "uptakes": list(component.uptakes(now).values()),
            "rates": list(component.rates(now).values()),
            "updates": list(component.updates(now).values()),
            **{name: [getattr(component, name)(now)] for name in _SCALARS},
            "evaluate_outputs": list(component.evaluate_outputs(with_outputs).values()),
            "evaluate_event_indicators": list(component.evaluate_event_indicators(now).values()),
            "initial_states": list(component.initial_states(starting).values()),
            "initial_discrete": list(component.initial_discrete(starting).values()),
            "start_limits": [number for limit in component.start_limits(beginning).values() for number in limit],
        }

    def moving_volumes(
        self, component: Component, states: Array, inputs: Array, parameters: Array, discrete: Array = _NONE
    ) -> dict[str, tuple[Array, Array]]:
        """Return the volume at each port of a component in m³, and its displaced flow rate in m³/s."""
        now = self.snapshot(states, inputs, parameters, discrete).moment(self.located.located(component))
        pushed = component.displacements(now)
        volumes: dict[str, Array] = {}
        for space in component.volumes(now):
            volumes[space.port] = volumes.get(space.port, np.asarray(0.0)) + space.volume
        return {port: (volume, pushed.get(port, np.asarray(0.0))) for port, volume in volumes.items()}

    @property
    def orderings(self) -> tuple[tuple[int, int], ...]:
        """Pairs of parameter indices, of which the second parameter must be greater."""
        names = [parameter.name for parameter in self.parameters]
        return tuple(
            (names.index(f"{component.name}.{smaller}"), names.index(f"{component.name}.{greater}"))
            for component in self._circuit.components
            for smaller, greater in component.orderings()
        )

    def snapshot(self, states: Array, inputs: Array, parameters: Array, discrete: Array = _NONE) -> CircuitState:
        """Return the circuit state for given states, inputs, parameters and discrete states."""
        groups = {"states": states, "inputs": inputs, "parameters": parameters, "discrete": discrete}
        now = CircuitState(self.located, NamedValues(self._places, **groups))
        if not self._has_air:
            return now
        oil = now.oil
        assert oil.mixture is not None
        gas = _stack([oil.mixture.gas_pressure(states[index]) for index in range(len(self._pressures))])
        groups |= {"gas_pressures": gas, "pressures": oil.vapour_pressure + gas}
        return CircuitState(self.located, NamedValues(self._places, **groups))

    def _slope(self, node: str, now: CircuitState) -> Array | float:
        """Return the derivative of the compression state with respect to pressure."""
        return 1.0 if now.oil.mixture is None else now.oil.mixture.slope(now.gas_pressure(node))

    def _mass(self, now: CircuitState) -> Array:
        """Return the oil mass in volumes and components in kg."""
        masses = (
            held_mass(now.oil, now.pressure(node), now.gas_pressure(node), now.spaces[node])
            for node in self._circuit.volume_nodes
        )
        stored = (each.component.stored_volume(now.moment(each)) for each in now.upstream)
        held = sum(masses, start=np.asarray(0.0))
        return held + now.oil.density * sum(stored, start=np.asarray(0.0))

    def _starting(self, **groups: Array) -> StartingSnapshot:
        return StartingSnapshot(self.located, NamedValues(self._places, **groups))


def _named(
    components: Iterable[Component], quantities: Callable[[Component], Iterable[Quantity]]
) -> tuple[Quantity, ...]:
    """Return variables of components with the component name as prefix."""
    return tuple(belonging_to(each.name, quantity) for each in components for quantity in quantities(each))


def _stack(elements: Sequence[Array | float]) -> Array:
    """Stack scalars; an empty array for a circuit whose nodes are all held by sources."""
    return np.stack(elements) if elements else np.zeros(0)


def _energy(name: str, description: str) -> Quantity:
    return Quantity(f"hydraulic_energy.{name}", "J", description=description)


class CircuitEnergies:
    """Energies of a circuit and the powers that change them.

    Parameters
    ----------
    equations
        The equations of the circuit.

    Attributes
    ----------
    integrals
        Energies that are integrals over time, and the energy stored at the start.
    outputs
        Energies computed from states and integrals.
    """

    integrals = (
        _energy("supplied", "energy supplied by sources and by external drives"),
        _energy("delivered", "work delivered by actuators"),
        _energy("dissipated", "energy lost in flows and friction"),
        _energy("start", "energy stored at the start"),
    )
    outputs = (
        _energy("stored", "energy in compressed oil, in walls and in components"),
        _energy("drift", "energy balance error: stored + dissipated + delivered - supplied, minus the start value"),
    )

    def __init__(self, equations: CircuitEquations) -> None:
        self._equations = equations

    def powers(self, *given: Array) -> Array:
        """Return the derivatives of `integrals` in W, shape (4,).

        Parameters
        ----------
        given
            States, inputs, parameters and discrete states, as for `CircuitEquations.snapshot`.
        """
        now = self._equations.snapshot(*given)
        supplied = _total(each.component.work_rate(now.moment(each)) for each in now.upstream)
        supplied = supplied - _total(now.intakes[node] * now.carried_energy(node) for node in now.held_nodes)
        for push in now.pushes:
            if not push.spaces:
                held = now.brought_energy(push.node) if push.node in now.held_nodes else 0.0
                supplied = supplied + push.displaced * (now.brought_energy(push.node) - now.pressure(push.node) - held)
        delivered = _total(each.delivered(now.moment(each), now.output_context(each)) for each in now.upstream)
        storing = _total(each.component.energy_rate(now.moment(each)) for each in now.upstream)
        storing = storing + _total(now.stored_power(node) for node in now.volume_nodes)
        return np.stack([supplied, delivered, supplied - delivered - storing, np.asarray(0.0)])

    def initial_integrals(self, *given: Array) -> Array:
        """Return the initial values of `integrals` in J, shape (4,); arguments: see `powers`."""
        none = np.asarray(0.0)
        return np.stack([none, none, none, self._stored(*given)])

    def evaluate_outputs(self, integrals: Array, *given: Array) -> Array:
        """Return the `outputs` in J, shape (2,); other arguments: see `powers`."""
        stored = self._stored(*given)
        supplied, delivered, dissipated, start = (integrals[index] for index in range(len(self.integrals)))
        return np.stack([stored, stored + dissipated + delivered - supplied - start])

    def _stored(self, *given: Array) -> Array:
        now = self._equations.snapshot(*given)
        stored = _total(each.component.energy(now.moment(each)) for each in now.upstream)
        return stored + _total(now.stored_energy(node) for node in now.volume_nodes)


def _total(powers: Iterable[Array | float]) -> Array:
    total = np.asarray(0.0)
    for power in powers:
        total = total + power
    return total


# -- conservation laws of flows between nodes, and the compliance of nodes ---------------------------------------------
# A flow rate Q is volumetric at the upstream density. If mass is conserved, it carries Q / v₁ of oil, where v is the
# specific volume relative to that of oil without air at atmospheric pressure (`hydraulics.fluid`). It arrives as the
# flow rate Q v₂ / v₁. A node contains
#
#     m = ρ Σ Vᵢ wᵢ / v,   wᵢ = 1 + (p − p_a) / Kᵢ,
#
# where Vᵢ are its volumes at atmospheric pressure, and Kᵢ the bulk moduli of their walls, which expand by wᵢ. The
# derivative of this mass is the equation of the node. The total mass of all nodes therefore changes by sources and
# tanks only, independent of motion and number of cycles:
#
#     Σ (Vᵢ wᵢ / K + Vᵢ / Kᵢ) ṗ = Q − Σ wᵢ V̇ᵢ.
#
# A moving wall, such as a piston, displaces volume in an expanded bore: V̇ᵢ wᵢ. Without this factor a chamber with
# elastic walls would lose oil with each cycle of pressure and stroke. The force is nevertheless the pressure times
# the unexpanded area. The resulting error of the wall work is a fraction p / Kᵢ of it, 0.03 % at 100 bar and 31.5
# GPa.
#
# If volume is conserved [Jaiswal2021, eqs. 22, 23 and 42], a flow arrives unchanged except for its air, Q (1 + α r₂)
# / (1 + α r₁), and walls take Vᵢ / Kᵢ of it without expanding. A flow over Δp then loses the fraction Δp / K_oil of
# itself.


class Push(NamedTuple):
    """Displacement of a port's node by the moving walls of a component.

    Attributes
    ----------
    owner
        Name of the component.
    node
        The node at the port.
    displaced
        In m³/s, at atmospheric pressure.
    growth
        Expansion w of the walls around the moving part.
    spaces
        The volumes of the component at the port.
    """

    owner: str
    node: str
    displaced: Array
    growth: Array | float
    spaces: tuple[Space, ...]

    @property
    def volume(self) -> Array:
        """Volume at the port in m³; zero where a piston has closed its chamber."""
        return sum((space.volume for space in self.spaces), start=np.asarray(0.0))

    @property
    def walls(self) -> Array | None:
        """Bulk modulus in Pa of the walls around the moving part; None if rigid."""
        return self.spaces[0].bulk_modulus if self.spaces else None


class NodeChange(NamedTuple):
    """Quantities that change the energy of a node.

    Attributes
    ----------
    pressure, gas_pressure
        In Pa, against vacuum and against the pressure of vapour.
    spaces
        Its volumes.
    intake
        Inflow in m³/s, by the measure of `flowing_volume`.
    pushes
        Displacements by moving walls.
    pressure_rate
        ṗ in Pa/s.
    """

    pressure: Array
    gas_pressure: Array
    spaces: Sequence[Space]
    intake: Array
    pushes: Sequence[Push]
    pressure_rate: Array


class Conservation(ABC):
    """Base of the conservation laws."""

    @abstractmethod
    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array | None:
        """Return the volume of the conserved measure at a gas pressure in Pa; None if it is independent of pressure.

        The measure is the same at both ends of a flow.
        """

    @abstractmethod
    def carried_energy(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return the energy that a flow carries in J/m³ of the measure of `flowing_volume`, at pressures in Pa."""

    @abstractmethod
    def energy_density(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return the energy density of oil in J/m³ at a pressure and a gas pressure in Pa."""

    @abstractmethod
    def stored_power(self, oil: Fluid, change: NodeChange) -> Array:
        """Return the rate of the energy of a node in W; see `hydraulics.equations`."""

    @abstractmethod
    def rise(self, pressure: Array) -> Array | float:
        """Return the pressure in Pa minus that at which walls have their given size."""

    def growth(self, pressure: Array, walls: Array | None) -> Array | float:
        """Return the expansion w of walls with a bulk modulus in Pa at a pressure in Pa; 1 for rigid walls."""
        return 1.0 if walls is None else 1.0 + self.rise(pressure) / walls

    def held(self, pressure: Array, spaces: Sequence[Space]) -> tuple[Array, Array]:
        """Return the expanded volume in m³ at a pressure in Pa, and its wall compliance in m³/Pa."""
        whole = walls = np.asarray(0.0)
        for space in spaces:
            whole = whole + space.volume
            if space.bulk_modulus is not None:
                walls = walls + space.volume / space.bulk_modulus
        return whole + self.rise(pressure) * walls, walls

    def capacity(self, compliance: Array | float, pressure: Array, spaces: Sequence[Space]) -> Array:
        """Return the hydraulic capacitance of volumes in m³/Pa [Jaiswal2021, eq. 42].

        Parameters
        ----------
        compliance
            Reciprocal 1 / K of the fluid's bulk modulus in 1/Pa.
        pressure
            In Pa, against vacuum.
        spaces
            The volumes.
        """
        held, walls = self.held(pressure, spaces)
        return held * compliance + walls


class MassConservation(Conservation):
    """Conservation of mass."""

    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array:
        """Return the relative volume v."""
        return oil.relative_volume_at(gas_pressure)

    def carried_energy(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:  # noqa: ARG002
        """Return the enthalpy h."""
        return oil.enthalpy_at(gas_pressure)

    def energy_density(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return u / v."""
        return oil.enthalpy_at(gas_pressure) / oil.relative_volume_at(gas_pressure) - pressure

    def stored_power(self, oil: Fluid, change: NodeChange) -> Array:
        """Return the power of flows, the work of moving walls, and the strain energy of newly exposed walls."""
        pressure, gas_pressure, _, intake, pushes, _ = change
        enthalpy = oil.enthalpy_at(gas_pressure)
        power = intake * enthalpy
        for push in pushes:
            brought = push.growth * (enthalpy / oil.relative_volume_at(gas_pressure))
            if push.spaces:
                work = pressure if push.walls is None else pressure + 0.5 * self.rise(pressure) ** 2 / push.walls
                brought = np.where(push.volume > 0.0, work, brought)
            power = power + push.displaced * brought
        return power

    def rise(self, pressure: Array) -> Array:
        """Return p − p_a."""
        return pressure - ATMOSPHERIC_PRESSURE


class VolumeConservation(Conservation):
    """Conservation of volume, except for that of the air, as in [Jaiswal2021]; walls do not expand."""

    def flowing_volume(self, oil: Fluid, gas_pressure: Array) -> Array | None:
        """Return 1 + α r."""
        return None if oil.mixture is None else oil.mixture.expansion_by_air(gas_pressure)

    def carried_energy(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return p per volume at p."""
        volume = self.flowing_volume(oil, gas_pressure)
        return pressure if volume is None else pressure * volume

    def energy_density(self, oil: Fluid, pressure: Array, gas_pressure: Array) -> Array:
        """Return u / v; without air ∫ p dp / K, which differs by a fraction p / K only and is simpler."""
        if oil.mixture is None:
            return wall_energy(pressure) / oil.bulk_modulus
        return oil.enthalpy_at(gas_pressure) / oil.relative_volume_at(gas_pressure) - pressure

    def stored_power(self, oil: Fluid, change: NodeChange) -> Array:
        """Return p Q − p V̇, the energy of oil that the flow did not carry, and that of newly exposed walls."""
        pressure, gas_pressure, spaces, intake, pushes, pressure_rate = change
        power = intake * self.carried_energy(oil, pressure, gas_pressure)
        made = wider = np.asarray(0.0)
        for push in pushes:
            power = power + push.displaced * pressure
            if push.spaces:
                room = np.where(push.volume > 0.0, push.displaced, 0.0)
                wider = wider - room
                if push.walls is not None:
                    made = made - room * (wall_energy(pressure) / push.walls)
        if oil.mixture is not None:
            held, _ = self.held(pressure, spaces)
            wider = wider + held * oil.compliance_at(gas_pressure) * pressure_rate
        return power + made + wider * self.energy_density(oil, pressure, gas_pressure)

    def rise(self, pressure: Array) -> float:  # noqa: ARG002
        """Return zero."""
        return 0.0


CONSERVATIONS: dict[Conserved, Conservation] = {
    "mass": MassConservation(),
    "volume": VolumeConservation(),
}
"""Conservation laws by the option of `Oil.conserves`."""


def held_mass(oil: Fluid, pressure: Array, gas_pressure: Array, spaces: Sequence[Space]) -> Array:
    """Return the mass in kg of the oil in volumes, for either conservation law.

    Parameters
    ----------
    oil
        The oil.
    pressure, gas_pressure
        In Pa, against vacuum and against the pressure of vapour.
    spaces
        The volumes.
    """
    volume, _ = CONSERVATIONS["mass"].held(pressure, spaces)
    return oil.density * volume / oil.relative_volume_at(gas_pressure)


def wall_energy(pressure: Array) -> Array:
    """Return the energy of elastic walls per volume and per 1 / K, in Pa²."""
    return 0.5 * (pressure**2 - ATMOSPHERIC_PRESSURE**2)
