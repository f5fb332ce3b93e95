"""Accelerations of a loop against an engine that shares no code with ours; trees are in test_joints.py."""

from __future__ import annotations

import numpy as np
import pytest

import mbsfmu


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
