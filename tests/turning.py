"""Mechanisms turned as a whole: ground points, axes and gravity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from mbsfmu import CoupledModel, Mechanism

VECTORS = ("axis", "second_axis", "direction")
"""Directions that a joint gives in its parent's frame."""
FREE_VECTORS = ("displacement", "velocity", "angular_velocity")
"""The same of a joint that turns freely."""


def turned(mechanism: Mechanism, rotation: Rotation) -> Mechanism:
    """Return the mechanism turned about the inertial origin."""

    def along(vector: Any) -> list[float]:
        return list(rotation.apply(vector))

    data: dict[str, Any] = mechanism.to_dict()
    data["gravity"] = along(mechanism.gravity)
    for name, point in mechanism.ground.items():
        data["ground"][name] = along(point)
    for joint, entry in zip(mechanism.joints, data["joints"], strict=True):
        orientation = Rotation.from_rotvec(joint.orientation)
        if joint.parent.partition(".")[0] == "ground":
            free = joint.type in ("spherical", "free")
            assert not free or not np.any(joint.angles), "Cardan angles are about axes of the ground"
            for key in (*VECTORS, *(FREE_VECTORS if free else ())):
                if hasattr(joint, key):
                    entry[key] = along(getattr(joint, key))
            entry["orientation"] = list((rotation * orientation).as_rotvec())
        elif joint.child.partition(".")[0] == "ground":
            entry["orientation"] = list((orientation * rotation.inv()).as_rotvec())
    return Mechanism.from_dict(data)


def turned_model(model: CoupledModel, rotation: Rotation) -> CoupledModel:
    """Return the model with all its mechanisms turned."""
    data = model.to_dict()
    for name, system in model.systems.items():
        if isinstance(system, Mechanism):
            data["systems"][name] = turned(system, rotation).to_dict()
    return CoupledModel.from_dict(data)


def vectors(values: dict[str, NDArray[np.float64]], suffixes: tuple[str, ...]) -> dict[str, NDArray[np.float64]]:
    """Return quantities that have an x, y and z, by their names with `*` in place of these; the last axis is xyz."""
    found: dict[str, NDArray[np.float64]] = {}
    for name in values:
        for suffix in suffixes:
            if name.endswith(suffix.replace("*", "x")):
                stem = name.removesuffix(suffix.replace("*", "x"))
                found[stem + suffix] = np.stack([values[stem + suffix.replace("*", axis)] for axis in "xyz"], axis=-1)
    return found
