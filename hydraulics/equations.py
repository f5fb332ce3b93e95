"""The equations of a circuit as pure functions of its states, inputs and parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from sys import float_info

import numpy as np

from hydraulics.circuit import Balanced, Circuit
from hydraulics.component import Component
from hydraulics.conservation import held_mass
from hydraulics.fluid import oil_parameters
from hydraulics.located_component import LocatedCircuit
from hydraulics.snapshot import CircuitState, StartingSnapshot
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.parameters import parameters_of
from mbsfmu.modelling.quantity import NamedValues, Quantity, belonging_to, places

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

        Flows are conserved between nodes; see `hydraulics.conservation`.
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
