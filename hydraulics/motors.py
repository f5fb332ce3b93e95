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
    """A motor with a fixed displacement.

    Attributes
    ----------
    a, b
        Nodes; flow from a to b turns it forwards.
    """

    stage: ClassVar[Stage] = Stage.ACTUATOR
    ends: ClassVar[tuple[str, str]] = ("a", "b")
    a: Port
    b: Port


class Motor(_TwoWayMotor, DrivenMachine):
    """A hydraulic motor whose shaft is that of something else, a joint of a mechanism, say.

    Its laws are those of `hydraulics.displacement`.

    Attributes
    ----------
    initial_load
        Torque in N m on the shaft at the start, where pressures are balanced with it.
    """

    load: ClassVar[str | None] = "initial_load"
    type: Literal["motor"] = "motor"
    initial_load: Annotated[float, Parameter("N.m", "torque at the start")] = 0.0

    def loaded_ports(self) -> tuple[str, ...]:
        """Return the ports of its displacement."""
        return self.ends

    def balanced_pressure(self, port: str, now: ComponentContext) -> Array:
        """Return the pressure at which it carries its initial load, friction left aside."""
        drop = now["initial_load"] / (now["gear_ratio"] * now["displacement"])
        return now.pressure("b") + drop if port == "a" else now.pressure("a") - drop


class InertialMotor(_TwoWayMotor):
    """A hydraulic motor with a rotating inertia of its own and a load: J ω̇ = T − T_load.

    Attributes
    ----------
    inertia
        J in kg m² about the shaft outside the gear, the motor's own included.
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
        """Return the torque of the load."""
        return (Quantity("load", "N.m", 0.0, description="torque of the load, against forward rotation"),)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return torque, flow and power."""
        return (
            Quantity("torque", "N.m", description="torque that the motor has on the shaft, friction taken off"),
            Quantity("flow", "m3/s", description="flow from a to b, by the volume upstream"),
            Quantity("power", "W", description="power given to the load"),
        )

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return the angular acceleration in rad/s²."""
        return {"angular_velocity": self._left(now) / now["inertia"]}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        """Return torque, flow and power."""
        power = now["load"] * now["angular_velocity"]
        return {"torque": self._torque(now), "flow": self._through(now), "power": power}

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        """Return the angular velocity at the start."""
        return {"angular_velocity": now["initial_velocity"]}

    def energy(self, now: ComponentContext) -> Array:
        """Return the energy of the turning inertia in J."""
        return 0.5 * now["inertia"] * now["angular_velocity"] ** 2

    def energy_rate(self, now: ComponentContext) -> Array:
        """Return the power in W that speeds it up."""
        return self._left(now) * now["angular_velocity"]

    def _left(self, now: ComponentContext) -> Array:
        """Return the torque in N m that is left to speed it up."""
        return self._torque(now) - now["load"]

    def work_rate(self, now: ComponentContext) -> Array:
        """Return what the load brings in in W, minus the power given to it."""
        return -now["load"] * now["angular_velocity"]
