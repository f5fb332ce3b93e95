"""Built-in parts of mechanisms, each a class with its data and its equations."""

from mbsfmu.parts.applied_loads import AppliedForce, AppliedMoment
from mbsfmu.parts.couplings import Differential, Gear, LinearCoupling, Mimic, RackAndPinion
from mbsfmu.parts.joint_forces import JointDrive, JointSpringDamper
from mbsfmu.parts.joints import Cylindrical, Fixed, Free, Planar, Prismatic, Revolute, Spherical, Universal
from mbsfmu.parts.line_forces import Actuator, Line, SpringDamper
from mbsfmu.parts.sensors import DistanceSensor, JointSensor, OrientationSensor, PointSensor

__all__ = [
    "Actuator",
    "AppliedForce",
    "AppliedMoment",
    "Cylindrical",
    "Differential",
    "DistanceSensor",
    "Fixed",
    "Free",
    "Gear",
    "JointDrive",
    "JointSensor",
    "JointSpringDamper",
    "Line",
    "LinearCoupling",
    "Mimic",
    "OrientationSensor",
    "Planar",
    "PointSensor",
    "Prismatic",
    "RackAndPinion",
    "Revolute",
    "Spherical",
    "SpringDamper",
    "Universal",
]
