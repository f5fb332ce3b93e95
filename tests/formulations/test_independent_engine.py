"""Accelerations against engines that share no code with ours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import mbsfmu
from mbsfmu.formulations.equilibrium import accelerations
from mbsfmu.formulations.functions import SystemFunctions
from mbsfmu.formulations.mechanism_system import MechanismSystem
from mbsfmu.formulations.system import starts
from mbsfmu.model import Mechanism, Prismatic, Revolute, RigidBody

pinocchio = pytest.importorskip("pinocchio")


def random_tree(seed: int, bodies: int = 6) -> Mechanism:
    """A spatial tree of hinges and slides with skew axes, turned frames and full inertia tensors."""
    random = np.random.default_rng(seed)
    made, joints = [], []
    for index in range(bodies):
        a = random.normal(size=(3, 3))
        inertia = a @ a.T + np.eye(3)
        inertia += np.eye(3) * np.trace(inertia)  # satisfies the triangle inequality in any axes
        made.append(
            RigidBody(
                name=f"body_{index}",
                mass=random.uniform(0.5, 3.0),
                inertia=tuple(np.diag(inertia)),
                products_of_inertia=(inertia[0, 1], inertia[0, 2], inertia[1, 2]),
                centre=tuple(random.normal(size=3)),
                points={"next": tuple(random.normal(size=3)), "here": tuple(random.normal(size=3))},
            )
        )
        parent = "ground.O" if index == 0 else f"body_{random.integers(index)}.next"
        kind = Revolute if random.random() < 0.6 else Prismatic
        joints.append(
            kind(
                name=f"joint_{index}",
                parent=parent,
                child=f"body_{index}.here",
                axis=tuple(random.normal(size=3)),
                orientation=tuple(random.normal(size=3)),
            )
        )
    return Mechanism(gravity=(0.3, -9.81, 1.0), ground={"O": (0.1, 0.2, 0.3)}, bodies=tuple(made), joints=tuple(joints))


def as_pinocchio(mechanism: Mechanism) -> pinocchio.Model:
    """The same tree, its frames placed by hand."""
    model = pinocchio.Model()
    model.gravity.linear = np.array(mechanism.gravity)
    ids = {"ground": 0}
    frames = {"ground": pinocchio.SE3.Identity()}  # body frame in the frame of its Pinocchio joint
    topology = mechanism.topology
    for body, tree_joint in zip(topology.bodies, topology.tree, strict=True):
        joint = tree_joint.joint
        inner = joint.parent.split(".")[0]
        place = np.array(mechanism.point(joint.parent).position)
        axis = np.array(joint.axis) / np.linalg.norm(joint.axis)
        kind = (
            pinocchio.JointModelRevoluteUnaligned
            if isinstance(joint, Revolute)
            else pinocchio.JointModelPrismaticUnaligned
        )
        placement = frames[inner] * pinocchio.SE3(np.eye(3), place)
        ids[body.name] = model.addJoint(ids[inner], kind(*axis), placement, joint.name)
        turn = Rotation.from_rotvec(joint.orientation).as_matrix()
        here = np.array(mechanism.point(joint.child).position)
        frames[body.name] = pinocchio.SE3(turn, -turn @ here)
        jxy, jxz, jyz = body.products_of_inertia
        jxx, jyy, jzz = body.inertia
        tensor = np.array([[jxx, jxy, jxz], [jxy, jyy, jyz], [jxz, jyz, jzz]])
        inertia = pinocchio.Inertia(body.mass, np.array(body.centre.position), tensor)
        model.appendBodyToJoint(ids[body.name], inertia, frames[body.name])
    return model


@pytest.mark.parametrize("seed", range(8))
def test_open_tree_against_pinocchio(seed: int) -> None:
    mechanism = random_tree(seed)
    model = as_pinocchio(mechanism)
    data = model.createData()
    functions = SystemFunctions(MechanismSystem(mechanism))
    functions.parameters[:] = starts(functions.system.parameters)
    random = np.random.default_rng(seed + 100)
    order = [model.joints[model.getJointId(t.joint.name)].idx_q for t in mechanism.topology.tree]
    for _ in range(3):
        q, v = random.normal(size=(2, len(order)))
        functions.coordinates[:], functions.velocities[:] = q, v
        ours, _, _ = accelerations(functions)
        there_q, there_v = np.empty_like(q), np.empty_like(v)
        there_q[order], there_v[order] = q, v
        theirs = pinocchio.aba(model, data, there_q, there_v, np.zeros(len(order)))[order]
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9 * np.max(np.abs(theirs)))


def cartesian_four_bar(angles: np.ndarray, rates: np.ndarray, force: float) -> np.ndarray:
    """Angular accelerations of the four-bar in absolute coordinates (x, y, φ) with Lagrange multipliers.

    Written for this test from the geometry alone: every joint is two equations between points.
    """
    lengths, masses = np.array([9.0, np.sqrt(2.0), 2.0]), np.array([225.0, 35.0, 50.0])
    phi, omega = np.cumsum(angles), np.cumsum(rates)
    along = np.stack([np.cos(phi), np.sin(phi)], axis=1)
    across = np.stack([-np.sin(phi), np.cos(phi)], axis=1)
    # Joints: (body, distance of its point from its centre along its axis), -1 for the ground.
    joints = [
        ((-1, 0.0), (0, -4.5)),
        ((0, -1.5), (1, -lengths[1] / 2)),
        ((1, lengths[1] / 2), (2, -1.0)),
        ((2, 1.0), (-1, 0.0)),
    ]
    mass = np.diag(np.concatenate([[m, m, m * length**2 / 12] for m, length in zip(masses, lengths, strict=True)]))
    jacobian, right = np.zeros((8, 9)), np.zeros(8)
    for row, ends in enumerate(joints):
        for sign, (body, arm) in zip((1.0, -1.0), ends, strict=True):
            if body >= 0:
                jacobian[2 * row : 2 * row + 2, 3 * body : 3 * body + 2] = sign * np.eye(2)
                jacobian[2 * row : 2 * row + 2, 3 * body + 2] = sign * arm * across[body]
                right[2 * row : 2 * row + 2] += sign * arm * omega[body] ** 2 * along[body]
    origin = np.zeros(2)
    start = [origin, origin + 3.0 * along[0]]
    start.append(start[1] + lengths[1] * along[1])
    centre = start[2] + 1.0 * along[2]
    push = (centre - [0.0, -2.0]) / np.linalg.norm(centre - [0.0, -2.0]) * force
    load = np.concatenate([[0.0, -m * 9.81, 0.0] for m in masses])
    load[6:8] += push
    matrix = np.block([[mass, jacobian.T], [jacobian, np.zeros((8, 8))]])
    absolute = np.linalg.solve(matrix, np.concatenate([load, right]))[[2, 5, 8]]
    return np.diff(absolute, prepend=0.0)


@pytest.mark.parametrize("boom", [-0.2, 0.0, 0.3])
def test_closed_loop_against_absolute_coordinates(boom: float) -> None:
    simulation = mbsfmu.models.four_bar().simulation_of("mechanism")
    simulation.set("boom.angle_start", boom)
    simulation.set("rocker.angular_velocity_start", 0.7)
    simulation.set("cylinder.force", 9000.0)
    simulation.initialize()
    names = ("boom", "link", "rocker")
    angles = np.array([simulation.get(f"{name}.angle") for name in names])
    rates = np.array([simulation.get(f"{name}.angular_velocity") for name in names])
    assert np.max(np.abs(rates)) > 0.1
    expected = cartesian_four_bar(angles, rates, 9000.0)
    ours = [simulation.get(f"{name}.angular_acceleration") for name in names]
    np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-9)
