"""Components in their circuit: the nodes at their ports, and checks of the results of their functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from hydraulics.circuit import Balanced, Circuit
from hydraulics.component import Component, HydraulicActuator, Space
from hydraulics.component_context import ComponentContext
from hydraulics.fluid import Fluid
from mbsfmu.modelling.answers import in_order, picked
from mbsfmu.modelling.data import DataError, closest_match
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.quantity import NamedValues


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
