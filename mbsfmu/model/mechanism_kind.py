"""Mechanisms as systems of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mbsfmu.model.joint import AnyJoint
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.plausibility import implausible_numbers
from mbsfmu.model.reference_types import GROUND
from mbsfmu.model.system_kinds import SystemKind, register_system_kind
from mbsfmu.modelling import Condition


def _topology(mechanism: Mechanism) -> dict[str, Any]:
    """Return each body with the joint to its parent, outwards, and the joints that close loops."""
    topology, tree = mechanism.topology, []
    for body, tree_joint in zip(topology.bodies, topology.tree, strict=True):
        inner = GROUND if tree_joint.parent < 0 else topology.bodies[tree_joint.parent].name
        coordinates = [f"{body.name}.{name}" for name in tree_joint.joint.coordinate_names]
        tree.append({"body": body.name, "hangs_on": inner, **_joint(tree_joint.joint), "coordinates": coordinates})
    return {"tree": tree, "cuts": [_joint(joint) for joint in topology.cuts]}


def _joint(joint: AnyJoint) -> dict[str, str]:
    return {"joint": joint.name, "type": joint.type, "parent": joint.parent, "child": joint.child}


def _conditions(mechanism: Mechanism) -> Iterator[Condition]:
    for force in mechanism.forces:
        yield from (condition.of(force.name) for condition in force.conditions())


register_system_kind(
    SystemKind(
        "mechanism",
        Mechanism,
        "bodies",
        diagnostics=implausible_numbers,
        topology=_topology,
        conditions=_conditions,
    )
)
