"""Rotating inertias outside mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from mbsfmu.model.block import Block
from mbsfmu.model.numbers import Numbers
from mbsfmu.model.reference_types import NonNegative, Positive
from mbsfmu.modelling import Array, Name, Parameter, Quantity


class Shaft(Block):
    """Shaft in fixed bearings: J ω̇ = Σ T − d ω.

    The inputs are torques, the outputs `angle`, `angular_velocity` and `kinetic_energy`.

    Attributes
    ----------
    inertia
        J in kg m².
    damping
        d in N m s/rad.
    torques
        Names of the inputs, torques in N m, positive in forward rotation.
    initial_angle, initial_speed
        At the start in rad and rad/s.
    """

    type: Literal["shaft"] = "shaft"
    inertia: Annotated[Positive, Parameter("kg.m2", "moment of inertia")]
    damping: Annotated[NonNegative, Parameter("N.m.s/rad", "damping of the bearings", tunable=True)] = 0.0
    torques: Annotated[tuple[Name, ...], Field(min_length=1)] = ("torque",)
    initial_angle: Annotated[float, Parameter("rad", "angle at the start")] = 0.0
    initial_speed: Annotated[float, Parameter("rad/s", "angular velocity at the start")] = 0.0

    def states(self) -> tuple[Quantity, ...]:
        """Return angle and angular velocity."""
        return (
            Quantity("turned", "rad", description="angle, as a state"),
            Quantity("speed", "rad/s", description="angular velocity, as a state"),
        )

    def inputs(self) -> tuple[Quantity, ...]:
        """Return the torque inputs."""
        return tuple(Quantity(name, "N.m", 0.0, description="torque on the shaft") for name in self.torques)

    def outputs(self) -> tuple[Quantity, ...]:
        """Return the outputs of motion and energy."""
        return (
            Quantity("angle", "rad", description="angle", shared=True),
            Quantity("angular_velocity", "rad/s", description="angular velocity", shared=True),
            Quantity("kinetic_energy", "J", minimum=0.0, description="kinetic energy", shared=True),
        )

    def initial_states(self, now: Numbers) -> Mapping[str, Array]:
        """Return the initial angle and angular velocity."""
        return {"turned": now["initial_angle"], "speed": now["initial_speed"]}

    def rates(self, now: Numbers) -> Mapping[str, Array]:
        """Return angular velocity and acceleration."""
        total = sum((now[name] for name in self.torques), start=-now["damping"] * now["speed"])
        return {"turned": now["speed"], "speed": total / now["inertia"]}

    def evaluate_outputs(self, now: Numbers) -> Mapping[str, Array]:
        """Return angle, angular velocity and kinetic energy."""
        return {
            "angle": now["turned"],
            "angular_velocity": now["speed"],
            "kinetic_energy": 0.5 * now["inertia"] * now["speed"] ** 2,
        }
