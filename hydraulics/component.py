"""The base of components: data, ports, states, inputs, parameters and outputs, and the equations beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, IntEnum
from functools import cache
from math import inf
from typing import Annotated, ClassVar, NamedTuple

from pydantic import BeforeValidator, SerializeAsAny

from hydraulics.component_context import ComponentContext
from mbsfmu.modelling.data import DataError, Name, closest_match
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.kinds import Kinds
from mbsfmu.modelling.parameters import check_numbers
from mbsfmu.modelling.part import DynamicPart
from mbsfmu.modelling.quantity import Quantity

COMPONENTS: Kinds[Component] = Kinds("component")
"""All kinds of components by their types."""


class PortKind(Enum):
    """What a component does to the node at a port."""

    THROUGH = "lets oil through"
    FILLED = "adds a volume to it"
    CHAMBER = "adds a volume to it that may vanish"
    HELD = "holds it at a pressure"
    SENSED = "reads its pressure"
    DRAINED = "leaks into it"


Port = Annotated[Name, PortKind.THROUGH]
"""A field that names the node at a port through which oil flows."""
FilledPort = Annotated[Name, PortKind.FILLED]
"""A field that names the node that a volume belongs to."""
ChamberPort = Annotated[Name, PortKind.CHAMBER]
"""A field that names the node that a chamber belongs to, whose volume a piston changes and may close."""
HeldPort = Annotated[Name, PortKind.HELD]
"""A field that names the node that a source holds at a pressure."""
SensedPort = Annotated[Name, PortKind.SENSED]
"""A field that names a node whose pressure counts but which nothing flows into or out of, as a pilot line."""
OptionalPort = Annotated[Name | None, PortKind.THROUGH]
"""A field, with the default None, that names the node at a port through which oil flows where there is that port."""
OptionalSensedPort = Annotated[Name | None, PortKind.SENSED]
"""A field, with the default None, that names a node whose pressure counts where there is that port."""
OptionalDrainPort = Annotated[Name | None, PortKind.DRAINED]
"""A field, with the default None, that names the node that a case leaks into; another port may be there as well."""


class Stage(IntEnum):
    """Where a component stands on the way from sources to actuators; variables are listed in this order."""

    SOURCE = 0
    CONTROL = 1
    LINE = 2
    ACTUATOR = 3


class Flow(NamedTuple):
    """A flow between two ports; the same mass leaves and arrives (`hydraulics.conservation`).

    Attributes
    ----------
    flow
        In m³/s, by the volume upstream; positive from `origin` to `target`.
    origin, target
        Names of ports.
    """

    flow: Array
    origin: str
    target: str


class Space(NamedTuple):
    """A volume of oil at a port.

    Attributes
    ----------
    port
        Name of the port.
    volume
        In m³, at atmospheric pressure.
    bulk_modulus
        Of its walls in Pa; None where they are rigid. A wall in which something moves is given alone at its port.
    """

    port: str
    volume: Array
    bulk_modulus: Array | None = None


class Component(DynamicPart, abstract=True):
    """A component of a circuit.

    A class that derives from it is data, with fields that say what they are: a `Port`, or a number of the equations,
    as `Annotated[Positive, Parameter("m", "bore")]`. Its equations are pure NumPy functions of a `ComponentContext`,
    with no branch on a value and nothing written in place; quantities go by short names, without the component's.

    Raises
    ------
    DataError
        When a class lacks what its ports or quantities need, at its definition.
    """

    family = COMPONENTS
    stage: ClassVar[Stage] = Stage.LINE

    @classmethod
    def pairs(cls) -> tuple[tuple[str, str], ...]:
        """Return functions that a class has together: what there is, and what gives its values."""
        return (*super().pairs(), ("limited", "start_limits"), ("energy", "energy_rate"))

    @classmethod
    def check_class(cls) -> None:
        """Refuse a class without the functions that its ports need, or with parameters that are no numbers."""
        _check_ports(cls)
        super().check_class()
        check_numbers(cls)

    # -- what it has ----------------------------------------------------------------------------------------

    def ports(self) -> dict[str, str]:
        """Return the nodes by the names of the ports that it has."""
        return {port: node for port in port_kinds(type(self)) if (node := getattr(self, port)) is not None}

    def nodes(self, *kinds: PortKind) -> tuple[str, ...]:
        """Return the nodes at ports of some kinds; at all of them where none is named."""
        found = port_kinds(type(self))
        return tuple(node for port, node in self.ports().items() if not kinds or found[port] in kinds)

    def limited(self) -> tuple[Quantity, ...]:
        """Return what must lie within limits at the start."""
        return ()

    def highest_pressure(self, values: Mapping[str, float]) -> float:  # noqa: ARG002
        """Return up to which pressure in Pa, against vacuum, it pumps oil: infinite of a source without a bound.

        Parameters
        ----------
        values
            Its parameters and inputs by their short names.
        """
        return inf if self.stage is Stage.SOURCE else 0.0

    def relieving_pressure(self, values: Mapping[str, float]) -> float:  # noqa: ARG002
        """Return above which pressure in Pa it lets go what pumps give; infinite where it does not.

        Parameters
        ----------
        values
            Its parameters and inputs by their short names.
        """
        return inf

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return pairs of parameters, the second of which must be greater."""
        return ()

    # -- equations ------------------------------------------------------------------------------------------

    def flows(self, now: ComponentContext) -> Iterable[Flow]:  # noqa: ARG002
        """Return the flows between its ports."""
        return ()

    def displacements(self, now: ComponentContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return what moving walls push out of ports into their nodes, in m³/s.

        It is minus the rate of the volume at the port, as that is at atmospheric pressure.
        """
        return {}

    def volumes(self, now: ComponentContext) -> Iterable[Space]:  # noqa: ARG002
        """Return the volumes at its ports."""
        return ()

    def held_pressures(self, now: ComponentContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return the pressures in Pa, against vacuum, that it holds at ports."""
        return {}

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return the rates of its states."""
        return {}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:  # noqa: ARG002
        """Return its outputs."""
        return {}

    def energy(self, now: ComponentContext) -> Array | float:  # noqa: ARG002
        """Return what it stores in J beside the oil in volumes, as in a gas or a turning inertia."""
        return 0.0

    def energy_rate(self, now: ComponentContext) -> Array | float:  # noqa: ARG002
        """Return the rate of `energy` in W."""
        return 0.0

    def work_rate(self, now: ComponentContext) -> Array | float:  # noqa: ARG002
        """Return the power in W that comes neither from the circuit nor from what an actuator moves with.

        Such is that of a shaft that is an input. What flows and moving walls bring in, and what is lost, follows from
        these (`hydraulics.energy`).
        """
        return 0.0

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:  # noqa: ARG002
        """Return its states at the start, from parameters and pressures; inputs are not known yet."""
        return {state.name: state.start or 0.0 for state in self.states()}

    def start_limits(self, now: ComponentContext) -> Mapping[str, tuple[Array | float, Array | float, Array | float]]:  # noqa: ARG002
        """Return what each of `limited` is at the start, what it must exceed and what it may be at most."""
        return {}


class HydraulicActuator(Component, abstract=True):
    """A component that moves with a mechanism: it takes a motion and gives an effort.

    Attributes
    ----------
    motion
        Its inputs that the mechanism drives, all of them or none.
    effort
        Its output that acts on the mechanism.
    load
        Its parameter that is the effort at the start, where one of its pressures can be balanced with that.
    """

    stage: ClassVar[Stage] = Stage.ACTUATOR
    motion: ClassVar[tuple[str, ...]] = ("length", "velocity")
    effort: ClassVar[str] = "force"
    load: ClassVar[str | None] = None

    @property
    def moved(self) -> bool:
        """Whether it moves with something outside, and not as its own data say."""
        return True

    def loaded_ports(self) -> tuple[str, ...]:
        """Return the ports whose pressures carry its load."""
        return tuple(self.ports())

    def balanced_pressure(self, port: str, now: ComponentContext) -> Array:  # noqa: ARG002
        """Return the pressure in Pa at a port at which it carries its load at the start, given the other ports'.

        Raises
        ------
        DataError
            Where there is no such pressure.
        """
        raise DataError(f"{self.type} '{self.name}' has no load that the pressure at {port} could balance")

    def balance_advice(self, port: str, now: ComponentContext) -> str:  # noqa: ARG002
        """Return what to do where the pressure at a port that carries its load is none that oil has."""
        return f"{self.type} '{self.name}', which it balances, has a load that it cannot carry so"


AnyComponent = Annotated[SerializeAsAny[Component], BeforeValidator(COMPONENTS.made)]
"""The type of a field: any component, or a dictionary with the `type` of one."""


@cache
def port_kinds(kind: type[Component]) -> dict[str, PortKind]:
    """Return the ports of a class of components with their kinds."""
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
            PortKind.THROUGH: ("flows", "displacements"),
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


def node_at(component: Component, function: str, port: str) -> str:
    """Return the node at a port that a function named.

    Raises
    ------
    DataError
        When there is no such port.
    """
    ports = component.ports()
    if port not in ports:
        raise DataError(
            f"{component.type} '{component.name}': {function} names a port '{port}'; {closest_match(port, ports)}"
        )
    return ports[port]
