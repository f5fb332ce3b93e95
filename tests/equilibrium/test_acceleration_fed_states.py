"""Stability where states follow accelerations."""

from __future__ import annotations

import numpy as np

from mbsfmu import CoupledModel, FirstOrder, JointDrive, JointSpringDamper, Mechanism, Prismatic, RigidBody


def test_states_that_accelerations_feed_are_in_the_stability() -> None:
    """m q̈ + c q̇ + k q = x, τ ẋ = g q̈ − x: the roots of its characteristic polynomial, one pair of which grows."""
    mass, stiffness, damping, gain, lag = 20.0, 300.0, 5.0, 4.0, 0.3
    slide = Mechanism(
        gravity=(0.0, 0.0, 0.0),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(RigidBody(name="car", mass=mass, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="rail", parent="ground.O", child="car.origin"),),
        forces=(
            JointSpringDamper(name="spring", joint="rail", stiffness=stiffness, damping=damping),
            JointDrive(name="drive", joint="rail"),
        ),
    )
    filtered = FirstOrder(gain=gain, time_constant=lag, input_unit="m/s2", output_unit="N")
    model = CoupledModel(
        name="fed",
        systems={"m": slide, "filter": filtered},
        connections=[("m.car.acceleration", "filter.input"), ("filter.output", "m.drive.force")],
    )
    found = model.equilibrium()
    exact = np.roots([mass * lag, mass + damping * lag - gain, damping + stiffness * lag, stiffness])
    np.testing.assert_allclose(np.sort_complex(found.eigenvalues), np.sort_complex(exact), rtol=1e-9)
    assert found.stable is False
    np.testing.assert_allclose(np.sort_complex(model.linearize().eigenvalues), np.sort_complex(exact), rtol=1e-9)
