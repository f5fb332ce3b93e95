"""Coordinates of every joint carry loads: of the tree, of joints that close loops, and of those that turn freely."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machine_of_parts import FORMULATIONS
from scipy.spatial.transform import Rotation

from mbsfmu import CoupledModel, DataError, Free, JointSensor, Mechanism, RigidBody
from mbsfmu.model.joint import Joint
from mbsfmu.parts import (
    Cylindrical,
    Fixed,
    JointDrive,
    JointSpringDamper,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)

AXES = {"axis": (1.0, 2.0, -0.5), "orientation": (0.3, -0.2, 0.5)}
JOINTS: dict[type[Joint], dict[str, Any]] = {
    Revolute: {**AXES, "angle": 0.4},
    Prismatic: {**AXES, "displacement": 0.1},
    Cylindrical: {**AXES, "angle": -0.3, "displacement": 0.1},
    Universal: {**AXES, "second_axis": (2.0, -1.0, 0.0), "angles": (0.4, -0.6)},
    Planar: {**AXES, "direction": (2.0, -1.0, 0.0), "angle": 0.5, "displacements": (0.1, -0.2)},
    Spherical: {"orientation": (0.3, -0.2, 0.5), "angles": (0.4, -0.5, 0.3)},
}


def hung(kind: type[Joint], *, cut: bool, reverse: bool = False) -> CoupledModel:
    """A body on a joint with a spring and a damper on each coordinate, in the tree or as what closes a loop."""
    ends = ("body.p", "ground.O") if reverse else ("ground.O", "body.p")
    joint = kind(name="joint", parent=ends[0], child=ends[1], cut=cut, **JOINTS[kind])
    names = [f"joint.{name}" for name in joint.coordinate_names]
    springs = tuple(
        JointSpringDamper(
            name=f"spring_{index}", joint=name, stiffness=30.0, damping=0.5, free_coordinate=0.05, preload=1.5
        )
        for index, name in enumerate(names)
    )
    mechanism = Mechanism(
        ground={"O": (0.1, 0.2, 0.3)},
        bodies=(
            RigidBody(
                name="body",
                mass=1.5,
                inertia=(0.2, 0.3, 0.25),
                centre=(0.1, 0.05, -0.1),
                points={"p": (0.2, -0.1, 0.1)},
            ),
        ),
        joints=(
            joint,
            *([Free(name="free", parent="ground.O", child="body.p", **start(joint, reverse))] if cut else []),
        ),
        forces=springs,
        sensors=tuple(JointSensor(name=f"sensor_{index}", joint=name) for index, name in enumerate(names)),
    )
    return CoupledModel(name="hung", systems={"mechanism": mechanism})


def start(joint: Joint, reverse: bool) -> dict[str, Any]:
    """Where a free joint puts the body that another joint puts at its start values."""
    turn, place = np.eye(3), np.zeros(3)
    for element in joint.elements:
        axis = np.array(element.axis) / np.linalg.norm(element.axis)
        place = place + turn @ axis * element.start * element.slides
        turn = turn @ Rotation.from_rotvec((not element.slides) * element.start * axis).as_matrix()
    turn = turn @ Rotation.from_rotvec(joint.orientation).as_matrix()
    if reverse:
        turn, place = turn.T, -turn.T @ place
    return {
        "orientation": tuple(Rotation.from_matrix(turn).as_rotvec().tolist()),
        "displacement": tuple(place.tolist()),
    }


@pytest.mark.parametrize("kind", JOINTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("reverse", [False, True])
def test_springs_in_a_joint_that_closes_a_loop_move_the_body_as_in_the_tree(kind: type[Joint], reverse: bool) -> None:
    """In the one the coordinates are those of the equations, in the other they are measured, with exact work."""
    tree, loop = (
        hung(kind, cut=cut, reverse=reverse).simulation(compiled=False, formulation=formulation).run(0.15)
        for cut, formulation in ((False, "double-step"), (True, "dca"))
    )
    assert np.ptp(tree["sensor_0.coordinate"]) > 0.01
    for name in (each for each in tree.names if each.startswith("sensor_")):
        np.testing.assert_allclose(loop[name], tree[name], atol=3e-4 * max(1.0, np.ptp(tree[name])), err_msg=name)
    assert np.max(np.abs(loop["energy.drift"])) < 3e-4


@pytest.mark.parametrize("kind", [Universal, Planar, Spherical], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_formulations_agree_on_springs_in_joints_of_several_coordinates(kind: type[Joint], formulation: str) -> None:
    reference = hung(kind, cut=False).simulation(compiled=False, formulation="dca").run(0.2)
    result = hung(kind, cut=False).simulation(compiled=False, formulation=formulation).run(0.2)
    for name in ("sensor_0.coordinate", "sensor_1.rate", "body.centre.z.position", "energy.dissipated"):
        np.testing.assert_allclose(result[name], reference[name], atol=1e-4, err_msg=name)


@pytest.mark.parametrize("axis", range(3))
def test_load_along_a_cardan_angle_is_the_gradient_of_the_angle(axis: int) -> None:
    """From rest J α = τ ∂θ/∂φ, the angles being those of SciPy's rotations turned a little about each axis."""
    inertia, load = np.diag([0.2, 0.3, 0.25]), 0.7
    angles = np.array([0.4, -0.5, 0.3])
    mechanism = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="body", mass=1.0, inertia=tuple(np.diag(inertia).tolist())),),
        joints=(Spherical(name="ball", parent="ground.O", child="body.origin", angles=tuple(angles.tolist())),),
        forces=(JointDrive(name="drive", joint=f"ball.cardan_angle.{'xyz'[axis]}"),),
    )
    simulation = CoupledModel(name="ball", systems={"mechanism": mechanism}).simulation(compiled=False, step=1e-4)
    simulation.set("drive.torque", load)
    simulation.initialize()
    simulation.step(0.0, 1e-4)
    turn, small = Rotation.from_euler("XYZ", angles), 1e-6
    gradient = [
        (
            (Rotation.from_rotvec(small * each) * turn).as_euler("XYZ")
            - (Rotation.from_rotvec(-small * each) * turn).as_euler("XYZ")
        )[axis]
        / (2.0 * small)
        for each in np.eye(3)
    ]
    frame = turn.as_matrix()
    expected = np.linalg.solve(frame @ inertia @ frame.T, load * np.array(gradient))
    spin = np.array([simulation.get(f"body.angular_velocity.{each}") for each in "xyz"])
    np.testing.assert_allclose(spin / 1e-4, expected, rtol=1e-5)


def test_coordinates_that_are_not_there_are_refused_in_words() -> None:
    body = RigidBody(name="body", mass=1.0, inertia=(1.0, 1.0, 1.0))

    def driven(joint: Joint, reference: str) -> None:
        Mechanism(
            ground={"O": (0.0, 0.0, 0.0)},
            bodies=(body,),
            joints=(joint,),
            forces=(JointDrive(name="drive", joint=reference),),
        )

    ends = {"name": "pin", "parent": "ground.O", "child": "body.origin"}
    with pytest.raises(
        DataError,
        match=r"joint-drive 'drive' needs a coordinate.*cylindrical, which has the coordinates displacement, angle",
    ):
        driven(Cylindrical(**ends), "pin")
    with pytest.raises(DataError, match=r"joint 'pin' has no coordinate 'angl'; did you mean 'angle'\?"):
        driven(Cylindrical(**ends), "pin.angl")
    with pytest.raises(DataError, match="joint 'pin' is fixed, which has none"):
        driven(Fixed(**ends), "pin")
    with pytest.raises(DataError, match=r"there is no joint 'pn'; did you mean 'pin'\?"):
        driven(Revolute(**ends), "pn.angle")
    with pytest.raises(DataError, match=r"a coordinate of a joint is written as joint, or joint.coordinate"):
        driven(Revolute(**ends), "pin.")
