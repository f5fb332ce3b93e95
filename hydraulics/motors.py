"""Hydraulic motors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from hydraulics.component import Port, Stage
from hydraulics.component_context import ComponentContext
from hydraulics.displacement import DisplacementMachine, DrivenMachine
from mbsfmu.modelling.fields import Array, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity


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

    Its equations are those of `hydraulics.displacement`.

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
