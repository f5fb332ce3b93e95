"""A machine with every built-in force and sensor, and what makes each of these a user's class, which is checked."""

from __future__ import annotations

from typing import Any, Literal

from mbsfmu import CoupledModel, Cylindrical, Force, Free, Mechanism, Prismatic, Revolute, RigidBody, Sensor, Spherical
from mbsfmu.io.signals import LinearSignal
from mbsfmu.parts import (
    Actuator,
    AppliedForce,
    AppliedMoment,
    Bushing,
    DistanceSensor,
    JointActuator,
    JointDrive,
    JointFriction,
    JointSensor,
    JointSpringDamper,
    JointStop,
    OrientationSensor,
    PlaneContact,
    PointSensor,
    SpringDamper,
)

FORMULATIONS = ("double-step", "penalty", "dca", "hdca", "dca-alm")

FORCES: tuple[Force, ...] = (
    Actuator(name="ram", start="trolley.origin", end="arm.centre"),
    JointDrive(name="motor", joint="rail"),
    JointActuator(name="winch", joint="hinge"),
    SpringDamper(name="strut", start="ground.floor", end="ball.p", stiffness=20.0, damping=1.0, free_length=0.8),
    JointSpringDamper(name="brake", joint="pivot", stiffness=5.0, damping=0.5, free_coordinate=0.2, preload=0.7),
    JointSpringDamper(name="slider", joint="pin.displacement", stiffness=50.0, damping=1.0, preload=2.0),
    JointFriction(
        name="rub", joint="pin.angle", coulomb_load=0.2, static_load=0.3, stribeck_rate=0.2, smoothing_velocity=0.05
    ),
    JointFriction(name="drag", joint="rail", coulomb_load=0.5, smoothing_velocity=0.05, damping=2.0),
    JointStop(name="cone", joint="socket.cardan_angle.y", lower=-0.05, upper=0.12, stiffness=20.0, damping=0.5),
    JointStop(name="floor", joint="flight.displacement.y", upper=0.62, stiffness=200.0, damping=0.1),
    Bushing(
        name="rubber",
        parent="arm.tip",
        child="ball.origin",
        stiffness=(20.0, 30.0, 25.0),
        turning_stiffness=(1.0, 2.0, 1.5),
        damping=(0.1, 0.2, 0.1),
        turning_damping=(0.02, 0.01, 0.03),
        orientation=(0.1, 0.3, -0.4),
        axes=(0.5, -0.2, 0.3),
    ),
    PlaneContact(
        name="soil",
        sphere="stone.p",
        plane="ground.floor",
        normal=(0.1, 1.0, 0.0),
        radius=1.6,
        stiffness=500.0,
        damping=0.2,
        friction=0.3,
        creep_speed=0.1,
    ),
    PlaneContact(
        name="deck",
        sphere="ball.p",
        plane="trolley.p",
        normal=(-0.2, 1.0, 0.3),
        radius=0.9,
        stiffness=80.0,
        damping=0.1,
        friction=0.2,
        creep_speed=0.1,
    ),
    AppliedForce(name="load", point="arm.tip"),
    AppliedForce(name="jet", point="ball.p", frame="body"),
    AppliedMoment(name="twist", point="ball.p"),
    AppliedMoment(name="wheel", point="arm.tip", frame="body"),
)


SENSORS: tuple[Sensor, ...] = (
    PointSensor(name="eye", point="ball.p", measures=("position", "velocity", "acceleration")),
    PointSensor(
        name="rider", point="ball.origin", relative_to="stay.end", measures=("position", "velocity", "acceleration")
    ),
    OrientationSensor(
        name="gyro",
        point="ball.origin",
        measures=("quaternion", "cardan_angle", "angular_velocity", "angular_acceleration"),
    ),
    OrientationSensor(
        name="camera",
        point="ball.origin",
        relative_to="arm.tip",
        axes="body",
        measures=("quaternion", "cardan_angle", "angular_velocity", "angular_acceleration"),
    ),
    DistanceSensor(name="tape", start="ground.floor", end="ball.p"),
    JointSensor(name="encoder", joint="pivot"),
)


def ramp(*values: float) -> LinearSignal:
    return LinearSignal(times=(0.0, 0.1, 0.3), values=values)


SIGNALS = {
    "ram.force": ramp(5.0, 0.0, 10.0),
    "winch.torque": ramp(0.2, 0.0, 0.4),
    "motor.force": ramp(0.0, 8.0, -3.0),
    "load.force.x": ramp(3.0, -2.0, 4.0),
    "load.force.y": ramp(0.0, -20.0, -20.0),
    "jet.force.z": ramp(0.0, 5.0, 1.0),
    "twist.moment.x": ramp(0.4, 0.0, 0.2),
    "wheel.moment.z": ramp(0.0, 1.0, -1.0),
}
"""What drives their inputs."""


def mechanism(*parts: Force | Sensor) -> Mechanism:
    """A trolley with an arm that carries a ball and closes a loop, and a body that floats."""
    return Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "wall": (1.4, 0.3, 0.0), "floor": (0.0, -1.0, 0.0)},
        bodies=(
            RigidBody(name="trolley", mass=4.0, inertia=(0.1, 0.1, 0.1), points={"p": (0.0, 0.1, 0.0)}),
            RigidBody(
                name="arm", mass=2.0, inertia=(0.02, 0.3, 0.3), centre=(0.5, 0.0, 0.0), points={"tip": (1.0, 0.0, 0.0)}
            ),
            RigidBody(name="ball", mass=0.5, inertia=(0.02, 0.03, 0.04), points={"p": (0.1, 0.05, -0.1)}),
            RigidBody(name="stay", mass=1.0, inertia=(0.05, 0.05, 0.05), points={"end": (0.5, 0.0, 0.0)}),
            RigidBody(name="stone", mass=1.0, inertia=(0.01, 0.02, 0.015), points={"p": (0.05, 0.1, 0.02)}),
        ),
        joints=(
            Prismatic(name="rail", parent="ground.O", child="trolley.origin", velocity=0.2),
            Revolute(name="pivot", parent="trolley.p", child="arm.origin", angle=0.567744, angular_velocity=0.152667),
            Spherical(
                name="socket",
                parent="arm.tip",
                child="ball.p",
                angles=(0.2, 0.1, 0.3),
                angular_velocity=(1.0, 0.3, -0.5),
            ),
            Revolute(name="hinge", parent="ground.wall", child="stay.origin", angle=2.4),
            Cylindrical(name="pin", parent="arm.tip", child="stay.end", cut=True),
            Free(
                name="flight",
                parent="ground.O",
                child="stone.origin",
                displacement=(0.4, 0.6, 0.5),
                velocity=(0.1, 0.4, 0.0),
            ),
        ),
        forces=tuple(part for part in parts if isinstance(part, Force)),
        sensors=tuple(part for part in parts if isinstance(part, Sensor)),
    )


def model(*parts: Force | Sensor) -> CoupledModel:
    """The machine with some forces, their inputs driven, and sensors."""
    names = [part.name for part in parts]
    signals = {f"machine.{name}": signal for name, signal in SIGNALS.items() if name.partition(".")[0] in names}
    return CoupledModel(name="parts", systems={"machine": mechanism(*parts)}, signals=signals, step=1e-3, stop_time=0.3)


def as_of_a_user(part: Any) -> Any:
    """Return the same part of a class that is no built-in one."""
    word = f"own-{part.type}"
    fields = {"__module__": __name__, "__annotations__": {"type": Literal[word]}, "type": word}
    kind = type(f"Own{type(part).__name__}", (type(part),), fields)
    return kind(**{name: getattr(part, name) for name in type(part).model_fields if name != "type"})
