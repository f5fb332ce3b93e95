"""The double-acting cylinder and its laws: areas, friction, end stops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from hydraulics.component import Actuator, ChamberPort, Space
from hydraulics.fluid import Array, NonNegative, Positive
from hydraulics.moment import Moment
from hydraulics.parameters import Parameter
from hydraulics.quantity import Quantity

ROUND_OFF = 1e-6
"""Share of its stroke by which a cylinder may begin beyond it."""


class Cylinder(Actuator):
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

    load: ClassVar[str | None] = "initial_load"
    type: Literal["cylinder"] = "cylinder"
    piston: ChamberPort
    rod: ChamberPort
    piston_diameter: Annotated[Positive, Parameter("m", "diameter of the piston", usual=(1e-3, 3.0))]
    rod_diameter: Annotated[Positive, Parameter("m", "diameter of the rod", usual=(1e-4, 3.0))]
    stroke: Annotated[Positive, Parameter("m", "stroke", usual=(1e-4, 50.0))]
    retracted_length: Annotated[Positive, Parameter("m", "length from end to end when fully retracted")]
    bulk_modulus: Annotated[Positive, Parameter("Pa", "bulk modulus", usual=(1e7, inf))]
    initial_length: Positive | None = None
    initial_load: Annotated[float, Parameter("N", "force at the start")] = 0.0
    viscous_friction: Annotated[NonNegative, Parameter("N.s/m", "viscous friction", tunable=True)] = 0.0
    coulomb_friction: Annotated[NonNegative, Parameter("N", "friction in motion", tunable=True)] = 0.0
    static_friction: Annotated[NonNegative, Parameter("N", "friction at breakaway", tunable=True)] = 0.0
    stribeck_velocity: Annotated[Positive, Parameter("m/s", "velocity of the Stribeck curve", tunable=True)] = 0.01
    smoothing_velocity: Annotated[
        Positive, Parameter("m/s", "velocity within which friction changes its sign", tunable=True)
    ] = 0.001
    stop_stiffness: Annotated[NonNegative, Parameter("N/m", "stiffness of the end stops")] = 1e8
    stop_damping: Annotated[NonNegative, Parameter("s/m", "damping of the end stops, relative to their force")] = 10.0

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

    # -- what it has ----------------------------------------------------------------------------------------

    def inputs(self) -> tuple[Quantity, ...]:
        """Return its motion; where nothing moves it, it rests at the length that is given, or at mid-stroke."""
        middle = self.retracted_length + 0.5 * self.stroke
        start = middle if self.initial_length is None else self.initial_length
        return (
            Quantity("length", "m", start, 0.0, description="end to end"),
            Quantity("velocity", "m/s", 0.0, description="rate of the length"),
        )

    def outputs(self) -> tuple[Quantity, ...]:
        """Return force, pressures, friction and power."""
        return (
            Quantity("force", "N", description="force that pushes the ends apart", shared=True),
            Quantity("pressure_piston", "Pa", description="pressure on the piston's side", shared=True),
            Quantity("pressure_rod", "Pa", description="pressure on the rod's side", shared=True),
            Quantity("friction", "N", description="friction, against the velocity"),
            Quantity("power", "W", description="power given to the mechanism"),
        )

    def limited(self) -> tuple[Quantity, ...]:
        """Return its length."""
        return (Quantity("length", "m"),)

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return that rods are thinner than their pistons."""
        return (("rod_diameter", "piston_diameter"),)

    # -- equations ------------------------------------------------------------------------------------------

    def displacements(self, now: Moment) -> Mapping[str, Array]:
        """Return that the moving piston makes room on one side and takes it on the other [Jaiswal2021, eq. 28]."""
        piston, rod = self._areas(now)
        velocity = now["velocity"]
        return {"piston": -piston * velocity, "rod": rod * velocity}

    def volumes(self, now: Moment) -> Iterable[Space]:
        """Return the volumes of the chambers [Jaiswal2021, eqs. 42 and 43]; beyond the end stops they stay empty.

        Eq. 43 as printed shrinks the piston's chamber when the cylinder extends, against eq. 44; with
        l₂ = l₂₀ + |s| − s₀ and l₂₀ = s₀ − l, the chamber is as long as the cylinder is beyond fully
        retracted.
        """
        piston, rod = self._areas(now)
        extended = now["length"] - now["retracted_length"]
        yield Space("piston", piston * np.maximum(extended, 0.0), now["bulk_modulus"])
        yield Space("rod", rod * np.maximum(now["stroke"] - extended, 0.0), now["bulk_modulus"])

    def evaluate_outputs(self, now: Moment) -> Mapping[str, Array]:
        """Return force, pressures, friction and power."""
        force, lost = self._force(now)
        return {
            "force": force,
            "pressure_piston": now.pressure("piston"),
            "pressure_rod": now.pressure("rod"),
            "friction": lost,
            "power": force * now["velocity"],
        }

    def start_limits(self, now: Moment) -> Mapping[str, tuple[Array, Array, Array]]:
        """Return that it begins within its stroke, but for round-off."""
        stroke, shortest = now["stroke"], now["retracted_length"]
        slack = ROUND_OFF * stroke
        return {"length": (now["length"], shortest - slack, shortest + stroke + slack)}

    def balanced_pressure(self, port: str, now: Moment) -> Array:
        """Return the pressure at which it carries its initial load, friction left aside [Jaiswal2021, sect. 5]."""
        piston, rod = self._areas(now)
        load = now["initial_load"]
        if port == "piston":
            return (load + now.pressure("rod") * rod) / piston
        return (now.pressure("piston") * piston - load) / rod

    def balance_advice(self, port: str, now: Moment) -> str:
        """Return by what it is pulled or pushed, and at which pressure of the other chamber it could bear that."""
        areas = dict(zip(("piston", "rod"), self._areas(now), strict=True))
        other = "rod" if port == "piston" else "piston"
        load = abs(now["initial_load"])
        return (
            f"{self.type} '{self.name}', which it balances, is {'pulled' if port == 'piston' else 'pushed'} with "
            f"{load:.6g} N; let the pressure at '{self.ports()[other]}' start above {load / areas[other]:.6g} Pa, or "
            f"balance that one and give '{self.ports()[port]}' a number"
        )

    def _areas(self, now: Moment) -> tuple[Array, Array]:
        return areas(now["piston_diameter"], now["rod_diameter"])

    def _force(self, now: Moment) -> tuple[Array, Array]:
        """Return the force [Jaiswal2021, eq. 29] and the friction in it, in N."""
        piston, rod = self._areas(now)
        velocity = now["velocity"]
        lost = friction(
            velocity,
            viscous=now["viscous_friction"],
            coulomb=now["coulomb_friction"],
            static=now["static_friction"],
            stribeck_velocity=now["stribeck_velocity"],
            smoothing_velocity=now["smoothing_velocity"],
        )
        stop = end_stop_force(
            now["length"] - now["retracted_length"],
            now["stroke"],
            velocity,
            now["stop_stiffness"],
            now["stop_damping"],
        )
        return now.pressure("piston") * piston - now.pressure("rod") * rod - lost + stop, lost


def areas(piston_diameter: Array, rod_diameter: Array) -> tuple[Array, Array]:
    """Return the areas in m² that the pressures act on, piston side and rod side."""
    quarter = 0.25 * np.pi
    return quarter * piston_diameter**2, quarter * (piston_diameter**2 - rod_diameter**2)


def friction(
    velocity: Array,
    *,
    viscous: Array | float,
    coulomb: Array | float,
    static: Array | float,
    stribeck_velocity: Array | float,
    smoothing_velocity: Array | float,
) -> Array:
    """Return the friction of the seals in N, against the velocity.

    Viscous friction and the Stribeck curve F_C + (F_S − F_C) exp(−(v/v_S)²), whose sign is smoothed by
    tanh(v/v_0).

    Parameters
    ----------
    velocity
        v in m/s.
    viscous
        In N s/m.
    coulomb, static
        F_C and F_S in N.
    stribeck_velocity, smoothing_velocity
        v_S and v_0 in m/s; positive.
    """
    curve = coulomb + (static - coulomb) * np.exp(-((velocity / stribeck_velocity) ** 2))
    return viscous * velocity + curve * np.tanh(velocity / smoothing_velocity)


def end_stop_force(
    chamber_length: Array,
    stroke: Array | float,
    velocity: Array,
    stiffness: Array | float,
    damping: Array | float,
) -> Array:
    """Return the force of the end stops in N, positive where it pushes the cylinder's ends apart.

    A stop that is pressed in by d gives k d max(0, 1 + D ḋ): nothing at first touch, and never a pull.

    Parameters
    ----------
    chamber_length
        Length of the piston-side chamber in m.
    stroke
        In m.
    velocity
        Rate of the length in m/s.
    stiffness
        k in N/m.
    damping
        D in s/m.
    """
    retracted = np.maximum(-chamber_length, 0.0)
    extended = np.maximum(chamber_length - stroke, 0.0)
    push = stiffness * retracted * np.maximum(1.0 - damping * velocity, 0.0)
    pull = stiffness * extended * np.maximum(1.0 + damping * velocity, 0.0)
    return push - pull
