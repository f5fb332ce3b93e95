"""Displacement machines: what a turning shaft moves of oil, and what oil turns a shaft with.

A shaft at ω moves x D ω of oil from the first port to the second, D being the displacement by radian and x the share of
it that is in use. The oil turns the shaft with x D Δp, Δp = p₁ − p₂: a machine is a motor where both have one sign, and
a pump where they have not. What is lost is laminar leakage and torque [W. E. Wilson: Positive-Displacement Pumps and
Fluid Motors, Pitman, 1950; D. McCandlish, R. E. Dorey: The mathematical modelling of hydrostatic units, Proceedings of
the Institution of Mechanical Engineers 198 B (1984)]:

    Q = x D ω + k Δp,   T = x D Δp − c ω − (C D |Δp| + T_c) sgn ω,

where k, c and C D stand for what the papers write by the viscosity, D C_s / μ, D C_v μ and D C_f, and friction goes by
the whole displacement. The shaft's power T ω and the losses k Δp², c ω² and (C D |Δp| + T_c) |ω| are what the oil
gives, Q Δp, but for the work that it takes to compress it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf, pi
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from hydraulics.component import Component, Flow, HydraulicActuator, OptionalDrainPort
from hydraulics.component_context import ComponentContext
from mbsfmu.modelling.data import DataError
from mbsfmu.modelling.fields import Array, NonNegative, OptionalPositive, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity

LARGEST_DISPLACEMENT = 1.0
"""Displacement in m³ by turn above that of any machine."""


class DisplacementMachine(Component, abstract=True):
    """What pumps and motors have in common.

    Attributes
    ----------
    ends
        Names of the ports from which and to which it moves oil when it turns forwards.
    displacement
        D in m³/rad; `catalogue_displacement` gives it from that by turn.
    leakage
        k in m³/(s Pa), between the two ports; `catalogue_leakage` gives it from a volumetric efficiency.
    viscous_friction
        c in N m s/rad.
    pressure_friction
        C, the share of the torque D Δp that friction takes: 1/η − 1 of a pump and 1 − η of a motor with a
        hydromechanical efficiency of η.
    coulomb_friction
        T_c in N m.
    smoothing_velocity
        Angular velocity of the machine's own shaft in rad/s within which friction changes its sign.
    gear_ratio
        Turns of the machine's own shaft for one of the shaft whose angular velocity and torque it tells.
    drain
        Node that its case leaks into, a tank's as a rule; None where the case does not leak.
    drain_leakage
        From each of both ports into the case, in m³/(s Pa).
    """

    ends: ClassVar[tuple[str, str]]
    displacement: Annotated[Positive, Parameter("m3/rad", "displacement by radian", usual=(1e-9, 0.1))]
    leakage: Annotated[
        NonNegative, Parameter("m3/(s.Pa)", "laminar leakage between the ports", tunable=True, usual=(0.0, 1e-8))
    ] = 0.0
    viscous_friction: Annotated[NonNegative, Parameter("N.m.s/rad", "viscous friction", tunable=True)] = 0.0
    pressure_friction: Annotated[
        float,
        Field(ge=0, lt=1),
        Parameter("1", "share of the torque of the pressures that friction takes", tunable=True),
    ] = 0.0
    coulomb_friction: Annotated[NonNegative, Parameter("N.m", "friction at any pressure", tunable=True)] = 0.0
    smoothing_velocity: Annotated[
        Positive, Parameter("rad/s", "angular velocity within which friction changes its sign", tunable=True)
    ] = 0.5
    gear_ratio: Annotated[
        Positive, Parameter("1", "turns of its own shaft for one of the shaft outside", usual=(1e-3, 1e4))
    ] = 1.0
    drain: OptionalDrainPort = None
    drain_leakage: Annotated[
        OptionalPositive,
        Parameter("m3/(s.Pa)", "laminar leakage of each port into the case", tunable=True, usual=(1e-18, 1e-8)),
    ] = None

    @model_validator(mode="after")
    def _drains_somewhere(self) -> Self:
        if (self.drain is None) != (self.drain_leakage is None):
            given, missing = ("drain_leakage", "drain") if self.drain is None else ("drain", "drain_leakage")
            raise ValueError(f"{given} is {getattr(self, given)}, but {missing} is missing; both are given or none")
        return self

    # -- equations ------------------------------------------------------------------------------------------

    def share(self, now: ComponentContext) -> Array | float:  # noqa: ARG002
        """Return x, the share of the displacement that is in use."""
        return 1.0

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return what it displaces, and what leaks."""
        first, second = self.ends
        yield Flow(self._displaced(now), first, second)
        yield Flow(now["leakage"] * self._drop(now), first, second)
        for port in self.ends if "drain_leakage" in now else ():
            yield Flow(now["drain_leakage"] * (now.pressure(port) - now.pressure("drain")), port, "drain")

    def _turning(self, now: ComponentContext) -> Array:
        """Return the angular velocity of the shaft outside in rad/s."""
        return now["angular_velocity"]

    def _speed(self, now: ComponentContext) -> Array:
        """Return ω of its own shaft in rad/s."""
        return now["gear_ratio"] * self._turning(now)

    def _drop(self, now: ComponentContext) -> Array:
        """Return Δp in Pa."""
        first, second = self.ends
        return now.pressure(first) - now.pressure(second)

    def _displaced(self, now: ComponentContext) -> Array:
        """Return x D ω in m³/s."""
        return self.share(now) * now["displacement"] * self._speed(now)

    def _through(self, now: ComponentContext) -> Array:
        """Return the flow Q from the first port to the second in m³/s."""
        return self._displaced(now) + now["leakage"] * self._drop(now)

    def _friction(self, now: ComponentContext) -> Array:
        """Return the torque in N m that friction takes of its own shaft, against its turning."""
        speed = self._speed(now)
        dry = now["pressure_friction"] * now["displacement"] * np.abs(self._drop(now)) + now["coulomb_friction"]
        return now["viscous_friction"] * speed + dry * np.tanh(speed / now["smoothing_velocity"])

    def _torque(self, now: ComponentContext) -> Array:
        """Return the torque in N m on the shaft outside, along its turning."""
        own = self.share(now) * now["displacement"] * self._drop(now) - self._friction(now)
        return now["gear_ratio"] * own


class DrivenMachine(DisplacementMachine, HydraulicActuator, abstract=True):
    """A machine whose shaft turns with something else: a joint of a mechanism, by a signal, or at a speed.

    Attributes
    ----------
    speed
        Angular velocity of the shaft in rad/s, whatever torque that takes; None where it is an input.
    """

    motion: ClassVar[tuple[str, ...]] = ("angular_velocity",)
    effort: ClassVar[str] = "torque"
    speed: Annotated[
        float | None, Parameter("rad/s", "angular velocity of the shaft", tunable=True, usual=(-1e3, 1e3))
    ] = None

    @property
    def moved(self) -> bool:
        """Whether its angular velocity is an input."""
        return self.speed is None

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the shaft's angular velocity where that is not given."""
        turning = Quantity("angular_velocity", "rad/s", 0.0, description="angular velocity of the shaft")
        return (turning,) if self.moved else ()

    def outputs(self) -> tuple[Quantity, ...]:
        """Return torque, flow and power."""
        first, second = self.ends
        return (
            Quantity("torque", "N.m", description="torque on the shaft, along its rotation", shared=True),
            Quantity("flow", "m3/s", description=f"flow from {first} to {second}, by the volume upstream"),
            Quantity("power", "W", description="power given to the shaft"),
        )

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return torque, flow and power."""
        torque = self._torque(now)
        return {"torque": torque, "flow": self._through(now), "power": torque * self._turning(now)}

    def work_rate(self, now: ComponentContext) -> Array | float:
        """Return the power in W of what keeps its speed; what drives its input tells its own."""
        return -self._torque(now) * self._turning(now) if "speed" in now else 0.0

    def _turning(self, now: ComponentContext) -> Array:
        return now["speed"] if "speed" in now else now["angular_velocity"]


def catalogue_displacement(volume: float) -> float:
    """Return the displacement in m³/rad of a machine that moves a volume in m³ by turn.

    Raises
    ------
    DataError
        When it is not positive and finite, or in another unit by its magnitude.
    """
    _check_positive("catalogue_displacement", volume=volume)
    if volume > LARGEST_DISPLACEMENT:
        raise DataError(
            f"catalogue_displacement: volume is {volume:g} m3; it must be at most {LARGEST_DISPLACEMENT:g}, "
            f"and {volume:g} cm3 are {volume:g}e-6 m3"
        )
    return volume / (2.0 * pi)


def catalogue_leakage(displacement: float, speed: float, pressure: float, efficiency: float) -> float:
    """Return the leakage in m³/(s Pa) of a machine from a point of its catalogue, k = D ω (1 − η) / Δp.

    Parameters
    ----------
    displacement
        D in m³/rad.
    speed
        ω at the point in rad/s.
    pressure
        Δp at the point in Pa.
    efficiency
        Volumetric efficiency η of a pump at the point: the share of what it displaces that it delivers.

    Raises
    ------
    DataError
        When one of them is not positive and finite, or the efficiency greater than 1.
    """
    _check_positive(
        "catalogue_leakage", displacement=displacement, speed=speed, pressure=pressure, efficiency=efficiency
    )
    if efficiency > 1.0:
        raise DataError(f"catalogue_leakage: efficiency is {efficiency:g}; it must be at most 1, and 95 % are 0.95")
    return displacement * speed * (1.0 - efficiency) / pressure


def _check_positive(function: str, **values: float) -> None:
    for name, value in values.items():
        if not 0.0 < value < inf:
            raise DataError(f"{function}: {name} is {value}; it must be positive and finite")
