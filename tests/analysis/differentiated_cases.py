"""Machines whose runs are differentiated: parameters with the shares by which they are moved, outputs, end in s."""

from __future__ import annotations

from collections.abc import Callable

from driven_crank import driven_crank

import mbsfmu
from mbsfmu import CoupledModel

CASES: dict[str, tuple[Callable[[], CoupledModel], dict[str, float], list[str], float]] = {
    "tree": (
        lambda: mbsfmu.models.built_in("pendulum-3").with_values({"link_1.angular_velocity_start": 2.0}),
        {"link_2.mass": 1e-3, "gravity.y": 1e-3, "link_1.angular_velocity_start": 1e-3},
        ["link_3.angle", "link_3.angular_velocity", "link_1.angular_acceleration"],
        0.3,
    ),
    "valve": (
        lambda: mbsfmu.models.built_in("four-bar"),
        {"boom.mass": 1e-3, "link.length": 1e-4, "valve.flow_coefficient": 1e-3, "rocker.angle_start": 1e-3},
        ["boom.angle", "boom.angular_velocity", "cylinder.pressure_piston"],
        1.06,
    ),
    "loop": (
        lambda: mbsfmu.models.built_in("loop-8"),
        {"link_3.inertia_zz": 1e-3, "link_2.mass": 1e-3},
        ["link_1.angle", "link_5.angular_velocity"],
        0.1,
    ),
    "redundant loop": (
        lambda: mbsfmu.models.built_in("bennett"),
        {"gravity.x": 1e-3},
        ["link_1.angle", "link_2.angle"],
        0.1,
    ),
    "prescribed motion": (driven_crank, {"crank.length": 1e-4}, ["slider.displacement", "energy.work"], 0.1),
    "references": (
        lambda: mbsfmu.models.built_in("stewart-platform"),
        {"plate.inertia_xx": 1e-2, "plate.joint_0.x": 1e-4},
        ["plate.displacement.z", "plate.cardan_angle.x"],
        0.05,
    ),
}
