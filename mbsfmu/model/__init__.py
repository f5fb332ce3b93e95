"""Data of machines: bodies, joints, forces, mechanisms and models."""

from mbsfmu.model.body import Beam, Body, Cuboid, Point, RigidBody, along
from mbsfmu.model.mechanism import Mechanism, Topology

__all__ = [
    "Beam",
    "Body",
    "Cuboid",
    "Mechanism",
    "Point",
    "RigidBody",
    "Topology",
    "along",
]
