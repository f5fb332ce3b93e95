"""Pumps and motors: flow rate and torque of displacement machines with their losses.

Displacement machines: flow rate and torque of pumps and motors with their losses.

A shaft at ω displaces x D ω of oil from the first port to the second, with the displacement D per radian and the
displacement fraction x. The oil exerts the torque x D Δp, Δp = p₁ − p₂. The machine is a motor if ω and the torque have
the same sign, otherwise a pump. Losses are laminar leakage and friction torque [W. E. Wilson: Positive-Displacement
Pumps and Fluid Motors, Pitman, 1950; D. McCandlish, R. E. Dorey: The mathematical modelling of hydrostatic units,
Proceedings of the Institution of Mechanical Engineers 198 B (1984)]:

    Q = x D ω + k Δp,   T = x D Δp − c ω − (C D |Δp| + T_c) sgn ω,

where k, c and C D are the papers' D C_s / μ, D C_v μ and D C_f, and friction is proportional to the full displacement.
The shaft power T ω plus the losses k Δp², c ω² and (C D |Δp| + T_c) |ω| equal the hydraulic power Q Δp, except for the
work of compression.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from math import inf, pi
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from hydraulics.component import (
    Component,
    ComponentContext,
    Flow,
    HydraulicActuator,
    OptionalDrainPort,
    Port,
    SensedPort,
    Stage,
)
from mbsfmu.modelling.data import Array, DataError, NonNegative, OptionalPositive, Positive
from mbsfmu.modelling.parameters import Parameter, Quantity

LARGEST_DISPLACEMENT = 1.0
"""Upper bound of the displacement in m³ per revolution of any machine."""


class DisplacementMachine(Component, abstract=True):
    """Base of pumps and motors.

    Attributes
    ----------
    ends
        Names of the ports: oil moves from the first to the second in forward rotation.
    displacement
        D in m³/rad; see `catalogue_displacement` for the value from m³ per revolution.
    leakage
        k in m³/(s Pa), between the two ports; `catalogue_leakage` gives it from a volumetric efficiency.
    viscous_friction
        c in N m s/rad.
    pressure_friction
        C, friction as a fraction of D Δp: 1/η − 1 for a pump and 1 − η for a motor with hydromechanical efficiency
        η.
    coulomb_friction
        T_c in N m.
    smoothing_velocity
        Angular velocity ω₀ of the machine's own shaft in rad/s for the smoothed sign of friction.
    gear_ratio
        Revolutions of the machine's own shaft per revolution of the external shaft, to which speed and torque refer.
    drain
        Node of the case drain, usually a tank; None without case leakage.
    drain_leakage
        Leakage coefficient from each port into the case in m³/(s Pa).
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
        """Return the displacement fraction x."""
        return 1.0

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the displaced flow and the leakage flows."""
        first, second = self.ends
        yield Flow(self._displaced(now), first, second)
        yield Flow(now["leakage"] * self._drop(now), first, second)
        for port in self.ends if "drain_leakage" in now else ():
            yield Flow(now["drain_leakage"] * (now.pressure(port) - now.pressure("drain")), port, "drain")

    def _turning(self, now: ComponentContext) -> Array:
        """Return the angular velocity of the external shaft in rad/s."""
        return now["angular_velocity"]

    def _speed(self, now: ComponentContext) -> Array:
        """Return the angular velocity ω of the machine's own shaft in rad/s."""
        return now["gear_ratio"] * self._turning(now)

    def _drop(self, now: ComponentContext) -> Array:
        """Return the pressure difference Δp in Pa."""
        first, second = self.ends
        return now.pressure(first) - now.pressure(second)

    def _displaced(self, now: ComponentContext) -> Array:
        """Return the displaced flow rate x D ω in m³/s."""
        return self.share(now) * now["displacement"] * self._speed(now)

    def _through(self, now: ComponentContext) -> Array:
        """Return the flow rate Q from the first port to the second in m³/s."""
        return self._displaced(now) + now["leakage"] * self._drop(now)

    def _friction(self, now: ComponentContext) -> Array:
        """Return the friction torque on the machine's own shaft in N m, opposite to its rotation."""
        speed = self._speed(now)
        dry = now["pressure_friction"] * now["displacement"] * np.abs(self._drop(now)) + now["coulomb_friction"]
        return now["viscous_friction"] * speed + dry * np.tanh(speed / now["smoothing_velocity"])

    def _torque(self, now: ComponentContext) -> Array:
        """Return the torque on the external shaft in N m, in its direction of rotation."""
        own = self.share(now) * now["displacement"] * self._drop(now) - self._friction(now)
        return now["gear_ratio"] * own


class DrivenMachine(DisplacementMachine, HydraulicActuator, abstract=True):
    """A machine whose shaft speed is imposed: by a joint of a mechanism, by a signal, or as a constant.

    Attributes
    ----------
    speed
        Constant angular velocity of the shaft in rad/s; None if it is an input.
    """

    motion: ClassVar[tuple[str, ...]] = ("angular_velocity",)
    effort: ClassVar[str] = "torque"
    speed: Annotated[
        float | None, Parameter("rad/s", "angular velocity of the shaft", tunable=True, usual=(-1e3, 1e3))
    ] = None

    @property
    def moved(self) -> bool:
        """Whether the angular velocity is an input."""
        return self.speed is None

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the angular velocity of the shaft if it is not constant."""
        turning = Quantity("angular_velocity", "rad/s", 0.0, description="angular velocity of the shaft")
        return (turning,) if self.moved else ()

    def outputs(self) -> tuple[Quantity, ...]:
        """Return torque, flow rate and power."""
        first, second = self.ends
        return (
            Quantity("torque", "N.m", description="torque on the shaft, along its rotation", shared=True),
            Quantity("flow", "m3/s", description=f"flow from {first} to {second}, by the volume upstream"),
            Quantity("power", "W", description="power given to the shaft"),
        )

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return torque, flow rate and power."""
        torque = self._torque(now)
        return {"torque": torque, "flow": self._through(now), "power": torque * self._turning(now)}

    def work_rate(self, now: ComponentContext) -> Array | float:
        """Return the power in W that keeps a constant speed; the source of an input accounts for its own power."""
        return -self._torque(now) * self._turning(now) if "speed" in now else 0.0

    def _turning(self, now: ComponentContext) -> Array:
        return now["speed"] if "speed" in now else now["angular_velocity"]


def catalogue_displacement(volume: float) -> float:
    """Return the displacement in m³/rad from the volume in m³ per revolution.

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
    """Return the leakage coefficient in m³/(s Pa) from a catalogue point, k = D ω (1 − η) / Δp.

    Parameters
    ----------
    displacement
        D in m³/rad.
    speed
        ω at the point in rad/s.
    pressure
        Δp at the point in Pa.
    efficiency
        Volumetric efficiency η of a pump at the point: delivered flow divided by displaced flow.

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


_Swash = Annotated[float, Field(ge=-1, le=1)]
_PRESSURES = (1e5, 1e9)
"""Bounds in Pa of pump pressure settings."""


class AnyPump(DrivenMachine, abstract=True):
    """Base of all pumps.

    Attributes
    ----------
    inlet, outlet
        Nodes; it pumps from inlet to outlet when it turns forwards.
    """

    stage: ClassVar[Stage] = Stage.SOURCE
    ends: ClassVar[tuple[str, str]] = ("inlet", "outlet")
    inlet: Port
    outlet: Port


class Pump(AnyPump):
    """Fixed-displacement pump; its equations are those of `hydraulics.displacement_machines`."""

    type: Literal["pump"] = "pump"


class DisplacedPump(AnyPump, abstract=True):
    """Variable-displacement pump, by a swash plate for example, with a first-order lag: τ ẋ = x_c − x.

    Attributes
    ----------
    time_constant
        τ in s.
    minimum_swash, maximum_swash
        Limits of the displacement fraction x; the second one limits the flow rate.
    """

    time_constant: Annotated[Positive, Parameter("s", "time constant of the swash", tunable=True, usual=(1e-4, 10.0))]
    minimum_swash: Annotated[_Swash, Parameter("1", "least share of the displacement", tunable=True)] = 0.0
    maximum_swash: Annotated[_Swash, Parameter("1", "greatest share of the displacement", tunable=True)] = 1.0

    @model_validator(mode="after")
    def _has_a_way(self) -> Self:
        if self.minimum_swash >= self.maximum_swash:
            raise ValueError(
                f"minimum_swash is {self.minimum_swash}; it must be less than maximum_swash, {self.maximum_swash}"
            )
        return self

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return that the largest displacement must exceed the least."""
        return (("minimum_swash", "maximum_swash"),)

    def states(self) -> tuple[Quantity, ...]:
        """Return the swash position."""
        return (Quantity("swash", "1", nominal=1.0, description="displacement fraction"),)

    @abstractmethod
    def wanted(self, now: ComponentContext) -> Array:
        """Return the swash position that the control demands, before saturation."""

    def share(self, now: ComponentContext) -> Array:
        """Return the swash position."""
        return now["swash"]

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the derivative of the swash position in 1/s."""
        return {"swash": (self._limited(now) - now["swash"]) / now["time_constant"]}

    def _limited(self, now: ComponentContext) -> Array:
        return np.clip(self.wanted(now), now["minimum_swash"], now["maximum_swash"])


class VariablePump(DisplacedPump):
    """Pump whose displacement follows a command; with a negative minimum it pumps in both directions.

    Attributes
    ----------
    initial_swash
        Share of the displacement at the start.
    """

    type: Literal["variable-pump"] = "variable-pump"
    initial_swash: Annotated[_Swash, Parameter("1", "share of the displacement at the start")] = 0.0

    @model_validator(mode="after")
    def _starts_within_its_way(self) -> Self:
        if not self.minimum_swash <= self.initial_swash <= self.maximum_swash:
            raise ValueError(
                f"initial_swash is {self.initial_swash}; it must be between {self.minimum_swash} and "
                f"{self.maximum_swash}, the least and the greatest"
            )
        return self

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the command, and the angular velocity of the shaft if it is not constant."""
        told = "share of the displacement; saturates at its limits"
        bounds = self.minimum_swash, self.maximum_swash
        command = Quantity("command", "1", 0.0, *bounds, description=told, saturates=True)
        return (command, *super().inputs())

    def wanted(self, now: ComponentContext) -> Array:
        """Return the command."""
        return now["command"]

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the initial swash position."""
        return {"swash": now["initial_swash"]}


class RegulatedPump(DisplacedPump, abstract=True):
    """Pump whose displacement follows from pressures; the swash starts in static equilibrium.

    Attributes
    ----------
    cut_off
        Outlet pressure in Pa, against vacuum, at which the displacement is zero.
    cut_off_range
        Pressure range in Pa below the cut-off over which the displacement falls from its maximum.
    maximum_torque
        Torque limit D x Δp in N m, which limits the power at a given speed; None without this
        control.
    """

    cut_off: Annotated[Positive, Parameter("Pa", "pressure at zero displacement", tunable=True, usual=_PRESSURES)]
    cut_off_range: Annotated[Positive, Parameter("Pa", "pressure range of the cut-off", tunable=True, usual=(1e3, 1e8))]
    maximum_torque: Annotated[OptionalPositive, Parameter("N.m", "torque limit", tunable=True, usual=(1e-2, 1e6))] = (
        None
    )

    def highest_pressure(self, values: Mapping[str, float]) -> float:
        """Return the cut-off pressure in Pa, at which the displacement is zero."""
        return values["cut_off"]

    def wanted(self, now: ComponentContext) -> Array:
        """Return the largest displacement fraction that cut-off and torque limit allow."""
        swash = (now["cut_off"] - now.pressure("outlet")) / now["cut_off_range"]
        if "maximum_torque" not in now:
            return swash
        # In terms of the torque at full displacement, which may be zero.
        whole = -now["displacement"] * self._drop(now)
        return np.minimum(swash, 1.0 / np.maximum(whole / now["maximum_torque"], 1.0))

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the static swash position at the initial pressures."""
        return {"swash": self._limited(now)}


class CompensatedPump(RegulatedPump):
    """Pressure-compensated pump: it destrokes near its cut-off pressure, x_c = (p_cut-off − p) / Δp_cut-off."""

    type: Literal["compensated-pump"] = "compensated-pump"


class LoadSensingPump(RegulatedPump):
    """Load-sensing pump: pressure margin above the load within its cut-off, x_c = (p_load + margin − p) / Δp_margin.

    Attributes
    ----------
    load_sense
        Node whose pressure is that of the load.
    margin
        Outlet pressure minus load pressure at zero displacement, in Pa.
    margin_range
        Reduction of the margin at full displacement, in Pa.
    """

    type: Literal["load-sensing-pump"] = "load-sensing-pump"
    load_sense: SensedPort
    margin: Annotated[Positive, Parameter("Pa", "margin above the load", tunable=True, usual=(1e4, 1e8))]
    margin_range: Annotated[
        Positive, Parameter("Pa", "reduction of the margin at full displacement", tunable=True, usual=(1e3, 1e8))
    ]

    def wanted(self, now: ComponentContext) -> Array:
        """Return the largest displacement fraction that margin, cut-off and torque limit allow."""
        above = now.pressure("outlet") - now.pressure("load_sense")
        return np.minimum((now["margin"] - above) / now["margin_range"], super().wanted(now))


class _TwoWayMotor(DisplacementMachine, abstract=True):
    """Base of motors with fixed displacement.

    Attributes
    ----------
    a, b
        Nodes; flow from a to b drives it forwards.
    """

    stage: ClassVar[Stage] = Stage.ACTUATOR
    ends: ClassVar[tuple[str, str]] = ("a", "b")
    a: Port
    b: Port


class Motor(_TwoWayMotor, DrivenMachine):
    """Hydraulic motor whose shaft is driven by another system, a joint of a mechanism for example.

    Its equations are those of `hydraulics.displacement_machines`.

    Attributes
    ----------
    initial_load
        Torque in N m on the shaft at the start, for balanced pressures.
    """

    load: ClassVar[str | None] = "initial_load"
    type: Literal["motor"] = "motor"
    initial_load: Annotated[float, Parameter("N.m", "torque at the start")] = 0.0

    def loaded_ports(self) -> tuple[str, ...]:
        """Return the ports of the displacement."""
        return self.ends

    def balanced_pressure(self, port: str, now: ComponentContext) -> Array:
        """Return the pressure in Pa that balances the initial load without friction."""
        drop = now["initial_load"] / (now["gear_ratio"] * now["displacement"])
        return now.pressure("b") + drop if port == "a" else now.pressure("a") - drop


class InertialMotor(_TwoWayMotor):
    """Hydraulic motor with rotating inertia and a load torque: J ω̇ = T − T_load.

    Attributes
    ----------
    inertia
        J in kg m² about the external shaft, including that of the motor.
    initial_velocity
        ω in rad/s at the start.
    """

    type: Literal["inertial-motor"] = "inertial-motor"
    inertia: Annotated[Positive, Parameter("kg.m2", "inertia about the shaft", usual=(1e-8, 1e9))]
    initial_velocity: Annotated[float, Parameter("rad/s", "angular velocity at the start")] = 0.0

    def states(self) -> tuple[Quantity, ...]:
        """Return the angular velocity."""
        return (Quantity("angular_velocity", "rad/s", nominal=10.0, description="angular velocity of the shaft"),)

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the load torque."""
        return (Quantity("load", "N.m", 0.0, description="torque of the load, against forward rotation"),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return torque, flow rate and power."""
        return (
            Quantity("torque", "N.m", description="torque that the motor has on the shaft, friction taken off"),
            Quantity("flow", "m3/s", description="flow from a to b, by the volume upstream"),
            Quantity("power", "W", description="power given to the load"),
        )

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the angular acceleration in rad/s²."""
        return {"angular_velocity": self._left(now) / now["inertia"]}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return torque, flow rate and power."""
        power = now["load"] * now["angular_velocity"]
        return {"torque": self._torque(now), "flow": self._through(now), "power": power}

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the initial angular velocity."""
        return {"angular_velocity": now["initial_velocity"]}

    def energy(self, now: ComponentContext) -> Array:
        """Return the kinetic energy in J."""
        return 0.5 * now["inertia"] * now["angular_velocity"] ** 2

    def energy_rate(self, now: ComponentContext) -> Array:
        """Return the power in W that accelerates the inertia."""
        return self._left(now) * now["angular_velocity"]

    def _left(self, now: ComponentContext) -> Array:
        """Return the accelerating torque in N m."""
        return self._torque(now) - now["load"]

    def work_rate(self, now: ComponentContext) -> Array:
        """Return the power of the load in W, minus the power delivered to it."""
        return -now["load"] * now["angular_velocity"]
