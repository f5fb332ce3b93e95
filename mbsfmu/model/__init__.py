"""What a machine is: bodies, joints and the mechanism that they make with forces."""

from mbsfmu.model.body import Beam, Body, Cuboid, Point, RigidBody, along
from mbsfmu.model.joint import Cylindrical, Fixed, Free, Planar, Prismatic, Revolute, Spherical, Universal
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.topology import Topology

__all__ = [
    "Beam",
    "Body",
    "Cuboid",
    "Cylindrical",
    "Fixed",
    "Free",
    "Mechanism",
    "Planar",
    "Point",
    "Prismatic",
    "Revolute",
    "RigidBody",
    "Spherical",
    "Topology",
    "Universal",
    "along",
]
