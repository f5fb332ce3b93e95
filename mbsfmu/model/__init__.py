"""What a machine is: bodies, joints, forces and the mechanism that they make."""

from mbsfmu.model.body import Beam, Body, Cuboid, Point, RigidBody, along
from mbsfmu.model.force import Actuator, JointDrive, JointSpringDamper, SpringDamper
from mbsfmu.model.joint import Fixed, Prismatic, Revolute
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.model.topology import Topology

__all__ = [
    "Actuator",
    "Beam",
    "Body",
    "Cuboid",
    "Fixed",
    "JointDrive",
    "JointSpringDamper",
    "Mechanism",
    "Point",
    "Prismatic",
    "Revolute",
    "RigidBody",
    "SpringDamper",
    "Topology",
    "along",
]
