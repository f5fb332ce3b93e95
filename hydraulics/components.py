"""The components of a circuit: plain validated data. Ports are names of nodes."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hydraulics.data import Data, Name
from hydraulics.fluid import NonNegative, Positive

LAMINAR_PRESSURE = 2e5
"""Pressure drop in Pa below which flow counts as laminar [Jaiswal2021, sect. 3.1]."""


class PressureSource(Data):
    """A pump with constant pressure.

    Attributes
    ----------
    node
        The node that it holds at its pressure.
    pressure
        In Pa, against vacuum.
    """

    type: Literal["pressure-source"] = "pressure-source"
    name: Name
    node: Name
    pressure: NonNegative


class Tank(Data):
    """A tank with constant pressure.

    Attributes
    ----------
    node
        The node that it holds at its pressure.
    pressure
        In Pa, against vacuum.
    """

    type: Literal["tank"] = "tank"
    name: Name
    node: Name
    pressure: NonNegative = 1e5


class Hose(Data):
    """A hose with elastic walls.

    Attributes
    ----------
    node
        The node whose volume it adds to.
    volume
        In m³.
    bulk_modulus
        Modulus of its walls in Pa.
    """

    type: Literal["hose"] = "hose"
    name: Name
    node: Name
    volume: Positive
    bulk_modulus: Positive


class Volume(Data):
    """A volume with rigid walls, such as a manifold.

    Attributes
    ----------
    node
        The node whose volume it adds to.
    volume
        In m³.
    """

    type: Literal["volume"] = "volume"
    name: Name
    node: Name
    volume: Positive


class Throttle(Data):
    """A sharp-edged orifice between two nodes [Jaiswal2021, eqs. 24 and 25].

    Attributes
    ----------
    inlet, outlet
        Nodes; flow from inlet to outlet counts as positive.
    orifice_diameter
        In m.
    discharge_coefficient
        Flow discharge coefficient C_d.
    laminar_pressure
        Pressure drop in Pa below which the flow is laminar.
    """

    type: Literal["throttle"] = "throttle"
    name: Name
    inlet: Name
    outlet: Name
    orifice_diameter: Positive
    discharge_coefficient: Positive
    laminar_pressure: Positive = LAMINAR_PRESSURE


class DirectionalValve(Data):
    """A 4/3 directional control valve with first-order spool [Jaiswal2021, eqs. 26 and 27].

    A positive spool position joins supply to a and b to tank, a negative one supply to b and a to tank.

    Attributes
    ----------
    supply, tank, a, b
        Nodes of its ports.
    flow_coefficient
        C_vd in m³/(s V √Pa).
    time_constant
        τ of the spool in s.
    command_limit
        The command saturates at plus and minus this one, in V.
    dead_band
        Spool position in V up to which the edges overlap and stay closed.
    laminar_pressure
        Pressure drop in Pa below which the flow is laminar.
    initial_spool
        Spool position at the start in V.
    """

    type: Literal["directional-valve"] = "directional-valve"
    name: Name
    supply: Name
    tank: Name
    a: Name
    b: Name
    flow_coefficient: Positive
    time_constant: Positive
    command_limit: Positive = 10.0
    dead_band: NonNegative = 0.0
    laminar_pressure: Positive = LAMINAR_PRESSURE
    initial_spool: float = 0.0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if abs(self.initial_spool) > self.command_limit:
            raise ValueError(
                f"initial_spool is {self.initial_spool}; it must be within the command limit of {self.command_limit} V"
            )
        return self


class Cylinder(Data):
    """A double-acting cylinder with friction and soft end stops [Jaiswal2021, eqs. 28, 29, 42 and 43].

    Attributes
    ----------
    piston, rod
        Nodes of the chambers on the piston's and on the rod's side.
    piston_diameter, rod_diameter
        In m.
    stroke
        In m.
    retracted_length
        Length from end to end when fully retracted, in m.
    bulk_modulus
        Modulus of the walls in Pa.
    initial_length, initial_load
        Length in m and force in N at the start, where nothing else gives them; mid-stroke without a length.
    viscous_friction
        In N s/m.
    coulomb_friction, static_friction
        Friction in motion and at breakaway in N.
    stribeck_velocity
        Velocity in m/s at which friction has fallen from static to Coulomb.
    smoothing_velocity
        Velocity in m/s within which the friction's sign changes.
    stop_stiffness
        Of both end stops in N/m.
    stop_damping
        Of both end stops in s/m, relative to their force.
    """

    type: Literal["cylinder"] = "cylinder"
    name: Name
    piston: Name
    rod: Name
    piston_diameter: Positive
    rod_diameter: Positive
    stroke: Positive
    retracted_length: Positive
    bulk_modulus: Positive
    initial_length: Positive | None = None
    initial_load: float = 0.0
    viscous_friction: NonNegative = 0.0
    coulomb_friction: NonNegative = 0.0
    static_friction: NonNegative = 0.0
    stribeck_velocity: Positive = 0.01
    smoothing_velocity: Positive = 0.001
    stop_stiffness: NonNegative = 1e8
    stop_damping: NonNegative = 10.0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.piston_diameter <= self.rod_diameter:
            raise ValueError(
                f"piston_diameter is {self.piston_diameter}; it must be greater than the rod's, {self.rod_diameter}"
            )
        if self.static_friction and self.static_friction < self.coulomb_friction:
            raise ValueError(
                f"static_friction is {self.static_friction}; it must be at least the Coulomb friction, "
                f"{self.coulomb_friction}"
            )
        if self.coulomb_friction and not self.static_friction:
            raise ValueError("static_friction is missing; with Coulomb friction it must be given too")
        if self.piston == self.rod:
            raise ValueError(f"piston and rod are both at node '{self.piston}'; they need a node each")
        longest = self.retracted_length + self.stroke
        if self.initial_length is not None and not self.retracted_length <= self.initial_length <= longest:
            raise ValueError(
                f"initial_length is {self.initial_length}; it must be between {self.retracted_length:g}, "
                f"fully retracted, and {longest:g}, fully extended"
            )
        return self


AnyComponent = Annotated[
    PressureSource | Tank | Hose | Volume | Throttle | DirectionalValve | Cylinder,
    Field(discriminator="type"),
]


def ports(component: AnyComponent) -> tuple[str, ...]:
    """Return the nodes of a component."""
    if isinstance(component, Throttle):
        return component.inlet, component.outlet
    if isinstance(component, DirectionalValve):
        return component.supply, component.tank, component.a, component.b
    if isinstance(component, Cylinder):
        return component.piston, component.rod
    return (component.node,)
