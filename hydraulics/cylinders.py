"""Cylinders, double- and single-acting: chambers, friction, end stops, cushions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from math import inf
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

import numpy as np
from pydantic import model_validator

from hydraulics.component import ChamberPort, ComponentContext, Flow, HydraulicActuator, Space
from hydraulics.flow import throttle_coefficient
from hydraulics.fluid import ATMOSPHERIC_PRESSURE
from mbsfmu.modelling.conditions import Condition
from mbsfmu.modelling.data import Array, DataError, Measured, NonNegative, OptionalPositive, Positive
from mbsfmu.modelling.parameters import Parameter, Quantity, Role

CUSHION_DISCHARGE = 0.61
"""Discharge coefficient of a cushion orifice, sharp-edged [Merritt: Hydraulic Control Systems, 1967]."""


def ring(outer: Array, inner: Array | float) -> Array:
    """Return the annular area in m² between two diameters in m."""
    return 0.25 * np.pi * (outer**2 - inner**2)


def friction(
    velocity: Array,
    *,
    viscous: Array | float,
    coulomb: Array | float,
    static: Array | float,
    stribeck_velocity: Array | float,
    smoothing_velocity: Array | float,
) -> Array:
    """Return the seal friction in N, opposite to the velocity.

    Viscous friction and the Stribeck curve F_C + (F_S − F_C) exp(−(v/v_S)²), with the smoothed sign tanh(v/v_0).

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
    """Return the force of the end stops in N, positive where it extends the cylinder.

    A compression d gives the force k d max(0, 1 + D ḋ): zero at first contact, and never tensile.

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
    retracted, extended = pressed_in(chamber_length, stroke)
    push = stiffness * retracted * np.maximum(1.0 - damping * velocity, 0.0)
    pull = stiffness * extended * np.maximum(1.0 + damping * velocity, 0.0)
    return push - pull


def pressed_in(chamber_length: Array, stroke: Array | float) -> tuple[Array, Array]:
    """Return the compression of the end stops in m, retracted and extended."""
    return np.maximum(-chamber_length, 0.0), np.maximum(chamber_length - stroke, 0.0)


def cushion_pressure(way: Array, length: Array, flow: Array, diameter: Array, density: Array | float) -> Array:
    """Return the pressure rise in Pa of a chamber by its cushion.

    Over the cushion length a spear closes the outlet except for an orifice with the flow coefficient C. The remaining
    opening decreases as C / s, s = 1 − way / length, so that Δp = (s Q / C)². Inflow passes a check valve without
    pressure drop; outflow has none before the spear enters.

    Parameters
    ----------
    way
        Remaining stroke to the end in m.
    length
        Length of the cushion in m; positive.
    flow
        Q out of the chamber in m³/s.
    diameter
        Diameter of the orifice in m.
    density
        Density of the oil in kg/m³.
    """
    closed = np.clip(1.0 - way / length, 0.0, 1.0)
    coefficient = throttle_coefficient(CUSHION_DISCHARGE, diameter, density)
    return (closed * np.maximum(flow, 0.0) / coefficient) ** 2


ROUND_OFF = 1e-6
"""Relative to the stroke: how far a cylinder without end stops may start beyond its stroke."""
PRESSED_BY, PRESSED_IN = 1e8, 0.05
"""Bounds of an end stop loaded at the start: pressure on the piston in Pa, compression relative to the stroke."""


class Chamber(NamedTuple):
    """A chamber of a cylinder.

    Attributes
    ----------
    port
        Name of the port.
    area
        Area in m² that its pressure acts on.
    side
        1 if the chamber grows as the cylinder extends, -1 if it shrinks.
    """

    port: str
    area: Array
    side: int

    def room(self, extended: Array, stroke: Array) -> Array:
        """Return the length of the chamber in m: the remaining stroke towards its end, negative beyond the end stop."""
        return extended if self.side > 0 else stroke - extended


class AnyCylinder(HydraulicActuator, abstract=True):
    """Base of all cylinders: friction, soft end stops, and optional cushions.

    Attributes
    ----------
    stroke
        In m.
    retracted_length
        Length from end to end when fully retracted, in m.
    bulk_modulus
        Modulus of the walls in Pa.
    initial_length, initial_load
        Length in m and force in N at the start of an unconnected cylinder; mid-stroke without a length.
    viscous_friction
        In N s/m.
    coulomb_friction, static_friction
        Friction in motion and at breakaway in N.
    stribeck_velocity
        Decay velocity in m/s of the Stribeck curve from static to Coulomb friction.
    smoothing_velocity
        Velocity v₀ in m/s of the smoothed sign tanh(v/v₀).
    stop_stiffness
        Of both end stops in N/m.
    stop_damping
        Of both end stops in s/m, relative to their force.
    cushion_length
        Stroke in m before each end on which oil leaves the chamber through an orifice; None without cushions.
    cushion_orifice_diameter
        Diameter in m of that orifice at the end.
    """

    load: ClassVar[str | None] = "initial_load"
    stroke: Annotated[Positive, Parameter("m", "stroke", usual=(1e-4, 50.0))]
    retracted_length: Annotated[Positive, Parameter("m", "length from end to end when fully retracted")]
    bulk_modulus: Annotated[Positive, Parameter("Pa", "bulk modulus", usual=(1e7, inf))]
    initial_length: Annotated[Positive | None, Role.PARAMETER, Measured("m")] = None
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
    cushion_length: Annotated[OptionalPositive, Parameter("m", "length of both cushions", usual=(1e-4, 1.0))] = None
    cushion_orifice_diameter: Annotated[
        OptionalPositive, Parameter("m", "diameter of the orifice of a cushion", tunable=True, usual=(1e-4, 0.1))
    ] = None

    @model_validator(mode="after")
    def _moves_within_its_stroke(self) -> Self:
        longest = self.retracted_length + self.stroke
        if self.initial_length is not None and not self.retracted_length <= self.initial_length <= longest:
            raise ValueError(
                f"initial_length is {self.initial_length}; it must be between {self.retracted_length:g}, "
                f"fully retracted, and {longest:g}, fully extended"
            )
        cushion = ("cushion_length", "cushion_orifice_diameter")
        missing = [name for name in cushion if getattr(self, name) is None]
        if len(missing) == 1:
            raise ValueError(f"{missing[0]} is missing; a cushion has a length and an orifice")
        if self.cushion_length is not None and self.cushion_length > self.stroke:
            raise ValueError(f"cushion_length is {self.cushion_length}; it must be at most the stroke, {self.stroke}")
        return self

    @model_validator(mode="after")
    def _breaks_away(self) -> Self:
        if self.static_friction and self.static_friction < self.coulomb_friction:
            raise ValueError(
                f"static_friction is {self.static_friction}; it must be at least the Coulomb friction, "
                f"{self.coulomb_friction}"
            )
        if self.coulomb_friction and not self.static_friction:
            raise ValueError("static_friction is missing; with Coulomb friction it must be given too")
        return self

    # -- what it has ----------------------------------------------------------------------------------------

    @abstractmethod
    def chambers(self, now: ComponentContext) -> tuple[Chamber, ...]:
        """Return the chambers."""

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the motion inputs; their start is the initial length, or mid-stroke, at standstill."""
        middle = self.retracted_length + 0.5 * self.stroke
        start = middle if self.initial_length is None else self.initial_length
        return (
            Quantity("length", "m", start, 0.0, description="end to end"),
            Quantity("velocity", "m/s", 0.0, description="rate of the length"),
        )

    def outputs(self) -> tuple[Quantity, ...]:
        """Return force, chamber pressures, friction, power, and the pressure rise of cushions."""
        sides = [
            Quantity(f"pressure_{port}", "Pa", description=f"pressure on the {port}'s side", shared=True)
            for port in self.ports()
        ]
        rise = Quantity("cushion_pressure", "Pa", description="rise of the pressure in a chamber by its cushion")
        return (
            Quantity("force", "N", description="force that pushes the ends apart", shared=True),
            *sides,
            Quantity("friction", "N", description="friction, against the velocity"),
            Quantity("power", "W", description="power given to the mechanism"),
            *(() if self.cushion_length is None else (rise,)),
        )

    def limited(self) -> tuple[Quantity, ...]:
        """Return the length, which must be within limits at the start."""
        return (Quantity("length", "m"),)

    # -- equations ------------------------------------------------------------------------------------------

    def displacements(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the flow rates that the moving piston displaces from the chambers in m³/s [Jaiswal2021, eq. 28]."""
        return {port: -side * area * now["velocity"] for port, area, side in self.chambers(now)}

    def volumes(self, now: ComponentContext) -> Iterable[Space]:
        """Return the chamber volumes in m³ [Jaiswal2021, eqs. 42 and 43]; zero beyond the end stops.

        Eq. 43 as printed makes the piston-side chamber smaller when the cylinder extends, in contradiction to eq. 44.
        With l₂ = l₂₀ + |s| − s₀ and l₂₀ = s₀ − l, the chamber length is the extension from fully retracted.
        """
        for each in self.chambers(now):
            room = each.room(self._extended(now), now["stroke"])
            yield Space(each.port, each.area * np.maximum(room, 0.0), now["bulk_modulus"])

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return force, chamber pressures, friction, power, and the pressure rise of cushions."""
        force = self._force(now)
        rises = self._cushions(now)
        return {
            "force": force,
            **{f"pressure_{port}": now.pressure(port) for port in self.ports()},
            "friction": self._friction(now),
            "power": force * now["velocity"],
            **({"cushion_pressure": sum(rises, start=np.asarray(0.0))} if rises else {}),
        }

    def event_indicators(self) -> tuple[Quantity, ...]:
        """Return the distances to both ends, negative where an end stop is compressed."""
        return tuple(
            Quantity(f"{end}_gap", "m", description=f"remaining stroke to the {end} end")
            for end in ("retracted", "extended")
        )

    def evaluate_event_indicators(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the distances to both ends."""
        extended = self._extended(now)
        return {"retracted_gap": extended, "extended_gap": now["stroke"] - extended}

    def energy(self, now: ComponentContext) -> Array:
        """Return the elastic energy of the end stops in J."""
        retracted, extended = pressed_in(self._extended(now), now["stroke"])
        return 0.5 * now["stop_stiffness"] * (retracted**2 + extended**2)

    def energy_rate(self, now: ComponentContext) -> Array:
        """Return the power into the end stops in W."""
        retracted, extended = pressed_in(self._extended(now), now["stroke"])
        return now["stop_stiffness"] * (extended - retracted) * now["velocity"]

    def conditions(self) -> Iterator[Condition]:
        """Yield the conditions that an end stop is compressed."""
        numbers = {"retracted_length": self.retracted_length, "stroke": self.stroke}
        ends = {
            "retracted": {"length": -1.0, "retracted_length": 1.0},
            "extended": {"length": 1.0, "retracted_length": -1.0, "stroke": -1.0},
        }
        for end, weights in ends.items():
            yield Condition(
                f"{self.type} '{self.name}' reaches its {end} end stop",
                weights,
                ROUND_OFF * self.stroke,
                extent=", and compresses it by up to {most:.3g} m",
                numbers=numbers,
            )

    def start_limits(self, now: ComponentContext) -> Mapping[str, tuple[Array, Array, Array]]:
        """Return the limits of the initial length: the stroke, extended by the static compression of the end stops."""
        stroke, shortest = now["stroke"], now["retracted_length"]
        push = PRESSED_BY * reduce(np.maximum, [each.area for each in self.chambers(now)])
        stiffness = now["stop_stiffness"]
        pressed = np.minimum(push, PRESSED_IN * stroke * stiffness) / np.where(stiffness > 0.0, stiffness, 1.0)
        slack = np.maximum(pressed, ROUND_OFF * stroke)
        return {"length": (now["length"], shortest - slack, shortest + stroke + slack)}

    def pushed(self, now: ComponentContext) -> Array:
        """Return the force of the chamber pressures in N, positive where it extends the cylinder."""
        return sum(
            (side * (now.pressure(port) * area) for port, area, side in self.chambers(now)), start=np.asarray(0.0)
        )

    def _extended(self, now: ComponentContext) -> Array:
        """Return the extension from fully retracted in m."""
        return now["length"] - now["retracted_length"]

    def _cushions(self, now: ComponentContext) -> list[Array]:
        """Return the pressure rise in Pa of each chamber's cushion; empty without cushions."""
        if "cushion_length" not in now:
            return []
        length, diameter = now["cushion_length"], now["cushion_orifice_diameter"]
        return [
            cushion_pressure(
                each.room(self._extended(now), now["stroke"]),
                length,
                -each.side * each.area * now["velocity"],
                diameter,
                now.oil.density,
            )
            for each in self.chambers(now)
        ]

    def _friction(self, now: ComponentContext) -> Array:
        return friction(
            now["velocity"],
            viscous=now["viscous_friction"],
            coulomb=now["coulomb_friction"],
            static=now["static_friction"],
            stribeck_velocity=now["stribeck_velocity"],
            smoothing_velocity=now["smoothing_velocity"],
        )

    def _force(self, now: ComponentContext) -> Array:
        """Return the cylinder force in N [Jaiswal2021, eq. 29]."""
        stop = end_stop_force(
            self._extended(now), now["stroke"], now["velocity"], now["stop_stiffness"], now["stop_damping"]
        )
        force = self.pushed(now) - self._friction(now) + stop
        for (_, area, side), rise in zip(self.chambers(now), self._cushions(now), strict=False):
            force = force + side * area * rise
        return force


class Cylinder(AnyCylinder):
    """A double-acting cylinder with friction and soft end stops [Jaiswal2021, eqs. 28, 29, 42 and 43].

    Attributes
    ----------
    piston, rod
        Nodes of the piston-side and the rod-side chamber.
    piston_diameter, rod_diameter
        In m.
    through_rod_diameter
        Diameter in m of a rod on the piston's side as well; None without one.
    leakage
        Laminar, over the piston, in m³/(s Pa); None without any.
    """

    type: Literal["cylinder"] = "cylinder"
    piston: ChamberPort
    rod: ChamberPort
    piston_diameter: Annotated[Positive, Parameter("m", "diameter of the piston", usual=(1e-3, 3.0))]
    rod_diameter: Annotated[Positive, Parameter("m", "diameter of the rod", usual=(1e-4, 3.0))]
    through_rod_diameter: Annotated[
        OptionalPositive, Parameter("m", "diameter of the rod on the piston's side", usual=(1e-4, 3.0))
    ] = None
    leakage: Annotated[
        OptionalPositive, Parameter("m3/(s.Pa)", "laminar leakage over the piston", tunable=True, usual=(1e-18, 1e-8))
    ] = None

    @model_validator(mode="after")
    def _has_a_piston_between_two_chambers(self) -> Self:
        for name, whose in (("rod_diameter", "the rod's"), ("through_rod_diameter", "the through rod's")):
            diameter = getattr(self, name)
            if diameter is not None and self.piston_diameter <= diameter:
                raise ValueError(
                    f"piston_diameter is {self.piston_diameter}; it must be greater than {whose}, {diameter}"
                )
        if self.piston == self.rod:
            raise ValueError(f"piston and rod are both at node '{self.piston}'; they need a node each")
        return self

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return that each piston diameter must exceed its rod diameter."""
        through = () if self.through_rod_diameter is None else (("through_rod_diameter", "piston_diameter"),)
        return (("rod_diameter", "piston_diameter"), *through)

    def chambers(self, now: ComponentContext) -> tuple[Chamber, ...]:
        """Return the piston-side and the rod-side chamber."""
        piston, through = now["piston_diameter"], "through_rod_diameter" in now
        return (
            Chamber("piston", ring(piston, now["through_rod_diameter"] if through else 0.0), 1),
            Chamber("rod", ring(piston, now["rod_diameter"]), -1),
        )

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the leakage flow over the piston."""
        if "leakage" in now:
            yield Flow(now["leakage"] * (now.pressure("piston") - now.pressure("rod")), "piston", "rod")

    def balanced_pressure(self, port: str, now: ComponentContext) -> Array:
        """Return the pressure in Pa that balances the initial load without friction [Jaiswal2021, sect. 5]."""
        piston, rod = (each.area for each in self.chambers(now))
        load = now["initial_load"]
        if port == "piston":
            return (load + now.pressure("rod") * rod) / piston
        return (now.pressure("piston") * piston - load) / rod

    def balance_advice(self, port: str, now: ComponentContext) -> str:
        """Return advice: the load, and the pressure of the other chamber that could carry it."""
        areas = {each.port: each.area for each in self.chambers(now)}
        other = "rod" if port == "piston" else "piston"
        load = abs(now["initial_load"])
        return (
            f"{self.type} '{self.name}', which it balances, is {'pulled' if port == 'piston' else 'pushed'} with "
            f"{load:.6g} N; let the pressure at '{self.ports()[other]}' start above {load / areas[other]:.6g} Pa, or "
            f"balance that one and give '{self.ports()[port]}' a number"
        )


class SingleActingCylinder(AnyCylinder):
    """Cylinder extended by oil and retracted by a load or a spring; the rod side is open to the atmosphere.

    A plunger has the diameter of its rod. The force is (p − p_a) A − F₀ − k x at the extension x.

    Attributes
    ----------
    piston
        Node of the chamber.
    piston_diameter
        In m.
    spring_stiffness
        k in N/m; None for a constant spring force.
    spring_preload
        F₀ in N, fully retracted.
    """

    type: Literal["single-acting-cylinder"] = "single-acting-cylinder"
    piston: ChamberPort
    piston_diameter: Annotated[Positive, Parameter("m", "diameter of the piston", usual=(1e-3, 3.0))]
    spring_stiffness: Annotated[OptionalPositive, Parameter("N/m", "stiffness of the spring")] = None
    spring_preload: Annotated[NonNegative, Parameter("N", "force of the spring, fully retracted")] = 0.0

    def chambers(self, now: ComponentContext) -> tuple[Chamber, ...]:
        """Return the piston-side chamber."""
        return (Chamber("piston", ring(now["piston_diameter"], 0.0), 1),)

    def pushed(self, now: ComponentContext) -> Array:
        """Return the force of pressure, atmosphere and spring in N, positive where it extends the cylinder."""
        return super().pushed(now) - self._pulled(now)

    def energy(self, now: ComponentContext) -> Array:
        """Return the energy in J of end stops and spring, and of the displaced atmosphere."""
        extended = self._extended(now)
        return super().energy(now) + (self._constant(now) + 0.5 * self._stiffness(now) * extended) * extended

    def energy_rate(self, now: ComponentContext) -> Array:
        """Return the derivative of `energy` in W."""
        return super().energy_rate(now) + self._pulled(now) * now["velocity"]

    def balanced_pressure(self, port: str, now: ComponentContext) -> Array:  # noqa: ARG002
        """Return the pressure in Pa that balances the initial load without friction."""
        if "spring_stiffness" in now:
            raise DataError(
                f"{self.type} '{self.name}' has a spring, whose force at the start its length decides: let the "
                f"pressure at '{self.piston}' start at a number"
            )
        return (now["initial_load"] + self._constant(now)) / self.chambers(now)[0].area

    def balance_advice(self, port: str, now: ComponentContext) -> str:  # noqa: ARG002
        """Return advice: oil cannot pull."""
        return (
            f"{self.type} '{self.name}', which it balances, is pulled with {-now['initial_load']:.6g} N, "
            "and oil only pushes"
        )

    def _pulled(self, now: ComponentContext) -> Array:
        """Return the retracting force of atmosphere and spring in N."""
        return self._constant(now) + self._stiffness(now) * self._extended(now)

    def _constant(self, now: ComponentContext) -> Array:
        return ATMOSPHERIC_PRESSURE * self.chambers(now)[0].area + now["spring_preload"]

    def _stiffness(self, now: ComponentContext) -> Array | float:
        if "spring_stiffness" not in now:
            return 0.0
        return now["spring_stiffness"]
