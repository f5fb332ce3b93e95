"""The same mechanism with parent and child of every joint exchanged moves alike."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from spatial import GRAVITY, KINDS, random_axes, random_body, vector

from mbsfmu import CoupledModel, Mechanism
from mbsfmu.model.joint import AnyJoint
from mbsfmu.parts import (
    Cylindrical,
    Fixed,
    Free,
    JointDrive,
    JointSpringDamper,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    SpringDamper,
    Universal,
)
from mbsfmu.tracing.workspace import Floats

TIGHT = {"solver": "dop853", "relative_tolerance": 1e-10, "absolute_tolerance": 1e-10, "step": 0.05}


def pair(kind: type, seed: int = 3) -> Mechanism:
    """A body on a hinge, and one on it by a joint of a kind, in motion; a spring between them and the ground."""
    random = np.random.default_rng(seed)
    one, two = random_body(random, "one"), random_body(random, "two")
    first = Revolute(
        name="first", parent="ground.O", child="one.here", axis=vector(random), angle=0.4, angular_velocity=-0.8
    )
    rates = {
        Revolute: {"angle": 0.5, "angular_velocity": 1.2},
        Prismatic: {"displacement": 0.5, "velocity": 1.2},
        Cylindrical: {"displacement": 0.3, "velocity": -0.7, "angle": 0.5, "angular_velocity": 1.2},
        Universal: {"angles": (0.5, -0.4), "angular_velocities": (1.2, 0.9)},
        Planar: {"displacements": (0.5, -0.4), "velocities": (1.2, 0.9), "angle": 0.7, "angular_velocity": 1.5},
        Spherical: {"angular_velocity": (0.9, -2.0, 1.2)},
        Free: {"displacement": (0.2, 0.4, -0.3), "velocity": (1.2, 0.9, 0.4), "angular_velocity": (0.9, -2.0, 1.2)},
        Fixed: {},
    }[kind]
    second = kind(
        name="second",
        parent="one.next",
        child="two.here",
        orientation=vector(random),
        **random_axes(random, kind),
        **rates,
    )
    forces: list = [
        SpringDamper(name="spring", start="ground.O", end="two.next", stiffness=20.0, damping=1.0, free_length=1.0),
        JointSpringDamper(name="first_spring", joint="first", stiffness=3.0, damping=0.5),
    ]
    if kind in (Revolute, Prismatic):
        forces.append(JointSpringDamper(name="second_spring", joint="second", stiffness=4.0, damping=0.7))
        forces.append(JointDrive(name="drive", joint="second"))
    return Mechanism(
        gravity=GRAVITY, ground={"O": (0.1, 0.2, 0.3)}, bodies=(one, two), joints=(first, second), forces=tuple(forces)
    )


def exchanged(joint: AnyJoint) -> AnyJoint:
    """The joint seen from its child: the inverse transformation at the start, and the parent's motion from there."""
    turn = Rotation.from_rotvec(joint.orientation)
    back = turn.inv()
    data = {"name": joint.name, "parent": joint.child, "child": joint.parent, "orientation": tuple(back.as_rotvec())}
    axis = tuple(back.apply(joint.axis)) if hasattr(joint, "axis") else ()
    match joint:
        case Fixed():
            return Fixed(**data)
        case Revolute():
            return Revolute(**data, axis=axis, angle=-joint.angle, angular_velocity=-joint.angular_velocity)
        case Prismatic():
            return Prismatic(**data, axis=axis, displacement=-joint.displacement, velocity=-joint.velocity)
        case Cylindrical():
            names = ("displacement", "velocity", "angle", "angular_velocity")
            return Cylindrical(**data, axis=axis, **{name: -getattr(joint, name) for name in names})
        case Universal():
            # What was the child's axis is the parent's now.
            return Universal(
                **data,
                axis=tuple(back.apply(joint.second_axis)),
                second_axis=axis,
                angles=(-joint.angles[1], -joint.angles[0]),
                angular_velocities=(-joint.angular_velocities[1], -joint.angular_velocities[0]),
            )
        case Planar():
            normal = np.array(joint.axis) / np.linalg.norm(joint.axis)
            first = np.array(joint.direction) / np.linalg.norm(joint.direction)
            basis = np.stack([first, np.cross(normal, first)], axis=1)
            there, moving = basis @ joint.displacements, basis @ joint.velocities
            turned = Rotation.from_rotvec(-joint.angle * normal)
            place = -turned.apply(there)
            motion = -turned.apply(moving - np.cross(joint.angular_velocity * normal, there))
            return Planar(
                **data,
                axis=axis,
                direction=tuple(back.apply(joint.direction)),
                displacements=tuple(basis.T @ place),
                velocities=tuple(basis.T @ motion),
                angle=-joint.angle,
                angular_velocity=-joint.angular_velocity,
            )
    angular = np.array(joint.angular_velocity)
    data["angular_velocity"] = tuple(-back.apply(angular))
    if isinstance(joint, Spherical):
        return Spherical(**data)
    assert isinstance(joint, Free)
    there, moving = np.array(joint.displacement), np.array(joint.velocity)
    place, motion = -back.apply(there), -back.apply(moving - np.cross(angular, there))
    return Free(**data, displacement=tuple(place), velocity=tuple(motion))


@cache
def motion(kind: type, formulation: str, *, exchange: bool) -> Floats:
    """Centres of mass and energies of the bodies over half a second; the joint's drive pushes them apart alike."""
    mechanism = pair(kind)
    if exchange:
        joints = tuple(exchanged(joint) for joint in mechanism.joints)
        mechanism = mechanism.model_copy(update={"joints": joints})
        mechanism = Mechanism.from_dict(mechanism.to_dict())
    assert all(joint.reversed == exchange for joint in mechanism.topology.tree)
    simulation = CoupledModel(name="pair", systems={"mechanism": mechanism}).simulation(
        formulation=formulation, compiled=False, **TIGHT
    )
    if kind in (Revolute, Prismatic):
        simulation.set("drive.torque" if kind is Revolute else "drive.force", -2.0 if exchange else 2.0)
    result = simulation.run(0.5)
    centres = [f"{body}.centre.{axis}.position" for body in ("one", "two") for axis in "xyz"]
    return np.stack([result[name] for name in (*centres, "energy.kinetic", "energy.potential", "energy.dissipated")])


@pytest.mark.parametrize("formulation", ["dca", "hdca"])
@pytest.mark.parametrize("kind", KINDS)
def test_parent_and_child_exchanged(kind: type, formulation: str) -> None:
    straight = motion(kind, "double-step", exchange=False)
    assert np.min(np.ptp(straight[:6], axis=1)) > 1e-2
    np.testing.assert_allclose(motion(kind, formulation, exchange=True), straight, rtol=0.0, atol=1e-7)
    np.testing.assert_allclose(motion(kind, "double-step", exchange=True), straight, rtol=0.0, atol=1e-7)
