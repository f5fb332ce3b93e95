"""Base class of components: data, ports, variables, equations, and their evaluation context."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum, IntEnum
from functools import cache
from math import inf
from typing import Annotated, ClassVar, NamedTuple

from pydantic import BeforeValidator, SerializeAsAny

from hydraulics.fluid import Fluid
from mbsfmu.modelling.data import Array, DataError, Name, closest_match
from mbsfmu.modelling.parameters import NamedValues, Quantity, check_numbers
from mbsfmu.modelling.part import DynamicPart, Kinds


class ComponentContext:
    """Variables of a component by their short names, the pressures at its ports, and the oil.

    `now["orifice_diameter"]` is a parameter, a state or an input of the component.

    Parameters
    ----------
    owner
        Type and name of the component, for messages.
    name
        Name of the component.
    values
        The numbers of the circuit.
    ports
        The nodes by the names of the ports.
    pressure
        Returns the pressure at a node in Pa.
    oil
        The oil.
    later
        Names of its states and inputs, which are unknown during initialization.
    inflow
        Returns the flow rate into a node in m³/s; None if unknown.
    """

    def __init__(
        self,
        owner: str,
        name: str,
        values: NamedValues,
        ports: Mapping[str, str],
        pressure: Callable[[str], Array],
        oil: Fluid,
        later: Collection[str] = (),
        inflow: Callable[[str], Array] | None = None,
    ) -> None:
        self.oil = oil
        self._owner = owner
        self._name = name
        self._values = values
        self._ports = ports
        self._pressure = pressure
        self._later = later
        self._inflow = inflow

    def __getitem__(self, name: str) -> Array:
        try:
            return self._values[f"{self._name}.{name}"]
        except KeyError:
            if name in self._later:
                raise DataError(
                    f"{self._owner}: '{name}' is not known where states at the start are worked out; they follow from "
                    "parameters, and from pressures that do"
                ) from None
            known = [each.partition(".")[2] for each in self._values if each.startswith(f"{self._name}.")]
            raise DataError(f"{self._owner} has no number '{name}' here; {closest_match(name, known)}") from None

    def __contains__(self, name: object) -> bool:
        """Return whether the component has a parameter, state or input with a name; None counts as absent."""
        return f"{self._name}.{name}" in self._values

    def pressure(self, port: str) -> Array:
        """Return the pressure at a port in Pa, against vacuum."""
        return self._pressure(self._node(port))

    def inflow(self, port: str) -> Array:
        """Return the flow rate from all components into the node at a port, in m³/s at the density of the node.

        Only outputs may depend on it.
        """
        if self._inflow is None:
            raise DataError(f"{self._owner} asks for the inflow at '{port}', which outputs alone may depend on")
        return self._inflow(self._node(port))

    def _node(self, port: str) -> str:
        if port not in self._ports:
            raise DataError(f"{self._owner} has no port '{port}'; {closest_match(port, self._ports)}")
        return self._ports[port]


COMPONENTS: Kinds[Component] = Kinds("component")
"""All component classes by type."""


class PortKind(Enum):
    """What a component does to the node at a port."""

    THROUGH = "lets oil through"
    FILLED = "adds a volume to it"
    CHAMBER = "adds a volume to it that may vanish"
    HELD = "holds it at a pressure"
    SENSED = "reads its pressure"
    DRAINED = "leaks into it"


Port = Annotated[Name, PortKind.THROUGH]
"""Field type: node at a port through which oil flows."""
FilledPort = Annotated[Name, PortKind.FILLED]
"""Field type: node to which a volume belongs."""
ChamberPort = Annotated[Name, PortKind.CHAMBER]
"""Field type: node of a chamber, whose volume a piston changes and may close."""
HeldPort = Annotated[Name, PortKind.HELD]
"""Field type: node that a source holds at a pressure."""
SensedPort = Annotated[Name, PortKind.SENSED]
"""Field type: node whose pressure is read without flow, such as a pilot line."""
OptionalPort = Annotated[Name | None, PortKind.THROUGH]
"""Field type: optional node (default None) at a port through which oil flows."""
OptionalSensedPort = Annotated[Name | None, PortKind.SENSED]
"""Field type: optional node (default None) whose pressure is read without flow."""
OptionalDrainPort = Annotated[Name | None, PortKind.DRAINED]
"""Field type: optional node (default None) for case leakage; it may be the node of another port."""


class Stage(IntEnum):
    """Position of a component between sources and actuators; variables are listed in this order."""

    SOURCE = 0
    CONTROL = 1
    LINE = 2
    ACTUATOR = 3


class Flow(NamedTuple):
    """Flow between two ports; mass is conserved (`hydraulics.equations`).

    Attributes
    ----------
    flow
        In m³/s at the upstream density; positive from `origin` to `target`.
    origin, target
        Names of ports.
    """

    flow: Array
    origin: str
    target: str


class Space(NamedTuple):
    """Volume of oil at a port.

    Attributes
    ----------
    port
        Name of the port.
    volume
        In m³, at atmospheric pressure.
    bulk_modulus
        Of the walls in Pa; None if rigid. A volume with a moving wall must be the only one with elastic walls at its
        port.
    """

    port: str
    volume: Array
    bulk_modulus: Array | None = None


class Component(DynamicPart, abstract=True):
    """Base class of a circuit's components.

    A derived class is data. Its fields are a `Port`, or a parameter of the equations, declared as
    `Annotated[Positive, Parameter("m", "bore")]`. Its equations are pure NumPy functions of a `ComponentContext`,
    without branches on values and without in-place changes. Variables have short names, without the component's name.

    Raises
    ------
    DataError
        When a class lacks what its ports or quantities need, at its definition.
    """

    family = COMPONENTS
    stage: ClassVar[Stage] = Stage.LINE

    @classmethod
    def pairs(cls) -> tuple[tuple[str, str], ...]:
        """Return pairs of functions that a class must define together: a declaration, and the values."""
        return (
            *super().pairs(),
            ("limited", "start_limits"),
            ("event_indicators", "evaluate_event_indicators"),
            ("energy", "energy_rate"),
            ("discrete_states", "updates"),
            ("discrete_states", "initial_discrete"),
            ("discrete_states", "sample_period"),
        )

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class without the functions that its ports need, or with non-numeric parameters."""
        _check_ports(cls)
        super().check_class()
        check_numbers(cls)

    # -- what it has ----------------------------------------------------------------------------------------

    def ports(self) -> dict[str, str]:
        """Return the nodes by port name, without unused ports."""
        return {port: node for port in port_kinds(type(self)) if (node := getattr(self, port)) is not None}

    def nodes(self, *kinds: PortKind) -> tuple[str, ...]:
        """Return the nodes at ports of the given kinds; all nodes without an argument."""
        found = port_kinds(type(self))
        return tuple(node for port, node in self.ports().items() if not kinds or found[port] in kinds)

    def quantities(self) -> tuple[Quantity, ...]:
        """Return its variables."""
        return (*super().quantities(), *self.discrete_states())

    def limited(self) -> tuple[Quantity, ...]:
        """Return the variables that must be within limits at the start."""
        return ()

    def event_indicators(self) -> tuple[Quantity, ...]:
        """Return its event indicators, whose zeros are kinks or jumps of its equations, as where a stop is reached."""
        return ()

    def discrete_states(self) -> tuple[Quantity, ...]:
        """Return the states that change at multiples of `sample_period` alone."""
        return ()

    @property
    def sample_period(self) -> float:
        """Time in s between updates of the discrete states."""
        return inf

    @property
    def update_advice(self) -> str:
        """Clause of the message on updates that are not finite; empty if obvious."""
        return ""

    def highest_pressure(self, values: Mapping[str, float]) -> float:  # noqa: ARG002
        """Return the highest pressure in Pa, against vacuum, up to which it pumps; infinite without a limit.

        Parameters
        ----------
        values
            Its parameters and inputs by their short names.
        """
        return inf if self.stage is Stage.SOURCE else 0.0

    def relieving_pressure(self, values: Mapping[str, float]) -> float:  # noqa: ARG002
        """Return the pressure in Pa above which it relieves the pump; infinite for other components.

        Parameters
        ----------
        values
            Its parameters and inputs by their short names.
        """
        return inf

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return pairs of parameters, of which the second must be greater."""
        return ()

    # -- equations ------------------------------------------------------------------------------------------

    def flows(self, now: ComponentContext) -> Iterable[Flow]:  # noqa: ARG002
        """Return the flows between the ports."""
        return ()

    def displacements(self, now: ComponentContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return the flow rates that moving walls displace from ports into their nodes in m³/s.

        This is minus the rate of the port's volume at atmospheric pressure.
        """
        return {}

    def uptakes(self, now: ComponentContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return the flow rates from ports into the component's own storage in m³/s, as volume at atmospheric pressure.

        Mass is conserved where flows conserve it. The energy that a flow carries leaves the node with it.
        """
        return {}

    def stored_volume(self, now: ComponentContext) -> Array | float:  # noqa: ARG002
        """Return the oil in the component's own storage in m³, as volume at atmospheric pressure."""
        return 0.0

    def volumes(self, now: ComponentContext) -> Iterable[Space]:  # noqa: ARG002
        """Return the volumes at the ports."""
        return ()

    def held_pressures(self, now: ComponentContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return the pressures in Pa, against vacuum, at which it holds its ports."""
        return {}

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return the derivatives of the states."""
        return {}

    def updates(self, now: ComponentContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return the discrete states after an update."""
        return {}

    def initial_discrete(self, now: ComponentContext) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return the discrete states before the first update, from parameters and pressures."""
        return {}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return the outputs."""
        return {}

    def evaluate_event_indicators(self, now: ComponentContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return the event indicators."""
        return {}

    def energy(self, now: ComponentContext) -> Array | float:  # noqa: ARG002
        """Return the stored energy in J, except that of oil in volumes: of a gas or a rotating inertia, for example."""
        return 0.0

    def energy_rate(self, now: ComponentContext) -> Array | float:  # noqa: ARG002
        """Return the derivative of `energy` in W."""
        return 0.0

    def work_rate(self, now: ComponentContext) -> Array | float:  # noqa: ARG002
        """Return the power in W that comes neither from the circuit nor from the mechanism.

        An example is the power of a shaft whose speed is an input. The power of flows and moving walls, and the losses,
        follow from the other functions (`hydraulics.equations`).
        """
        return 0.0

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return the initial states from parameters and pressures; inputs are not known yet."""
        return {state.name: state.start or 0.0 for state in self.states()}

    def start_limits(self, now: ComponentContext) -> Mapping[str, tuple[Array | float, Array | float, Array | float]]:  # noqa: ARG002
        """Return for each of `limited` the initial value, the lower and the upper limit."""
        return {}


class HydraulicActuator(Component, abstract=True):
    """A component that receives a motion from a mechanism and returns a force or torque.

    Attributes
    ----------
    motion
        Names of the inputs that the mechanism drives, all of them or none.
    effort
        Name of the output that acts on the mechanism.
    load
        Name of the parameter with the initial force or torque, if a pressure can balance it.
    """

    stage: ClassVar[Stage] = Stage.ACTUATOR
    motion: ClassVar[tuple[str, ...]] = ("length", "velocity")
    effort: ClassVar[str] = "force"
    load: ClassVar[str | None] = None

    @property
    def moved(self) -> bool:
        """Whether the motion comes from outside, and not from the component's own data."""
        return True

    def loaded_ports(self) -> tuple[str, ...]:
        """Return the ports whose pressures carry the load."""
        return tuple(self.ports())

    def balanced_pressure(self, port: str, now: ComponentContext) -> Array:  # noqa: ARG002
        """Return the pressure in Pa at a port that balances the initial load, given the pressures of the other ports.

        Raises
        ------
        DataError
            Where there is no such pressure.
        """
        raise DataError(f"{self.type} '{self.name}' has no load that the pressure at {port} could balance")

    def balance_advice(self, port: str, now: ComponentContext) -> str:  # noqa: ARG002
        """Return advice for a balanced pressure that oil cannot have."""
        return f"{self.type} '{self.name}', which it balances, has a load that it cannot carry so"


AnyComponent = Annotated[SerializeAsAny[Component], BeforeValidator(COMPONENTS.made)]
"""Field type: any component, or a dictionary with the `type` of one."""


@cache
def port_kinds(kind: type[Component]) -> dict[str, PortKind]:
    """Return the ports of a component class with their kinds."""
    return {
        name: each for name, field in kind.model_fields.items() for each in field.metadata if isinstance(each, PortKind)
    }


def _check_ports(kind: type[Component]) -> None:
    """Refuse a class that lacks the functions that its ports need.

    Raises
    ------
    DataError
        When one is missing.
    """
    ports = port_kinds(kind)
    if not ports:
        raise DataError(f"class {kind.__name__}: a component needs a port, as `inlet: Port`")
    for port, role in ports.items():
        needed = {
            PortKind.THROUGH: ("flows", "displacements", "uptakes"),
            PortKind.FILLED: ("volumes",),
            PortKind.CHAMBER: ("volumes",),
            PortKind.HELD: ("held_pressures",),
            PortKind.SENSED: (),
            PortKind.DRAINED: ("flows",),
        }[role]
        if needed and not kind.gives(*needed):
            raise DataError(
                f"class {kind.__name__}: its port '{port}' {role.value}, but it has no {' or '.join(needed)}"
            )
