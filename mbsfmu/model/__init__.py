"""What a machine is: bodies, joints, forces and the mechanism that they make."""

from mbsfmu.model.body import Beam, Body, Cuboid, Point, RigidBody, along
from mbsfmu.model.force import Actuator, JointDrive, JointSpringDamper, SpringDamper
from mbsfmu.model.joint import Cylindrical, Fixed, Free, Planar, Prismatic, Revolute, Spherical, Universal
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.topology import Topology

__all__ = [
    "Actuator",
    "Beam",
    "Body",
    "Cuboid",
    "Cylindrical",
    "Fixed",
    "Free",
    "JointDrive",
    "JointSpringDamper",
    "Mechanism",
    "Planar",
    "Point",
    "Prismatic",
    "Revolute",
    "RigidBody",
    "Spherical",
    "SpringDamper",
    "Topology",
    "Universal",
    "along",
]
